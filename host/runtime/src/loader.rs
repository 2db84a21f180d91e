//! Loads components: compiles, links, reads the manifest, and checks the
//! grants.

use std::collections::BTreeSet;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use parking_lot::Mutex;
use rayon::{ThreadPool, ThreadPoolBuilder};
use sha2::{Digest as _, Sha256};
use tokio::sync::oneshot;
use wasmtime::Engine;
use wasmtime::component::{Component as Compiled, Linker};

use super::bindings::Area;
use super::code_cache::CodeCache;
use super::component::Component;
use super::exports::Exports;
use super::generations;
use super::host_call_recorder::{HasHostCallRecorder, HostCallRecorder};
use super::imports::Imports;
use super::instance::CallState;
use super::time_slice::lower_priority;
use super::{LoadError, LoadedArea, RuntimeState, Settings, compiler, engine, parts, settings};
use assurance_core::domain::manifest::Capability;

/// State that is needed to load components but not to call them.
pub(super) struct Loader {
    engine: Engine,
    pub(super) cache: Option<CodeCache>,
    linker: Linker<CallState>,
    /// Linker for components that import WASI.
    linker_with_wasi: Linker<CallState>,
    /// Threads that compile with lower priority, so that deployments do not
    /// slow down requests. They end when no compilation uses them, because the
    /// allocator keeps memory of idle threads.
    compilers: Mutex<Weak<ThreadPool>>,
}

impl Loader {
    pub(super) fn new(engine: Engine, cache: Option<CodeCache>) -> anyhow::Result<Self> {
        let mut linker = Linker::new(&engine);
        Area::add_to_linker::<_, HasHostCallRecorder>(&mut linker, |state| {
            HostCallRecorder(state)
        })?;
        generations::add_earlier_to_linker(&mut linker)?;
        let mut linker_with_wasi = linker.clone();
        wasmtime_wasi::p2::add_to_linker_async(&mut linker_with_wasi)?;
        Ok(Self { engine, cache, linker, linker_with_wasi, compilers: Mutex::default() })
    }

    pub(super) async fn load(
        self: Arc<Self>,
        shared: Arc<RuntimeState>,
        bytes: Arc<[u8]>,
        grants: impl FnOnce(&str) -> BTreeSet<Capability> + Send,
    ) -> Result<LoadedArea, LoadError> {
        let max = settings::bytes(shared.settings.config.limits.max_component_bytes);
        if bytes.len() > max {
            return Err(LoadError::TooLarge { bytes: bytes.len(), max });
        }
        let state = shared.clone();
        let compiled =
            self.clone().in_background(move |here| here.compile(&state.settings, &bytes)).await??;
        self.link_and_describe(shared, compiled, grants).await
    }

    /// Loads a component from cached machine code; `None` if it is not cached.
    pub(super) async fn load_cached(
        self: Arc<Self>,
        shared: Arc<RuntimeState>,
        digest: String,
        grants: impl FnOnce(&str) -> BTreeSet<Capability> + Send,
    ) -> Result<Option<LoadedArea>, LoadError> {
        match self.clone().in_background(move |here| here.kept(&digest)).await? {
            Some(compiled) => self.link_and_describe(shared, compiled, grants).await.map(Some),
            None => Ok(None),
        }
    }

    /// Links a component and reads its manifest.
    async fn link_and_describe(
        &self,
        shared: Arc<RuntimeState>,
        compiled: CompiledComponent,
        grants: impl FnOnce(&str) -> BTreeSet<Capability> + Send,
    ) -> Result<LoadedArea, LoadError> {
        let imports = Imports::of(&self.engine, &compiled.component)?;
        let exports = self.link(&compiled.component, &imports)?;
        let places = engine::pool_places(&compiled.component);
        let code = Component::new(exports, shared, compiled.digest.clone(), places);
        let manifest =
            code.describe().await.map_err(LoadError::Describe)?.map_err(LoadError::Manifest)?;
        imports.check(&manifest, &grants(&manifest.name))?;
        Ok(LoadedArea {
            digest: compiled.digest,
            manifest,
            code: Arc::new(code),
            generation: imports.generation.version(),
            imports: imports.names,
            compiled_in: compiled.took,
        })
    }

    /// Runs long work on one of the compiler threads.
    async fn in_background<T: Send + 'static>(
        self: Arc<Self>,
        work: impl FnOnce(&Self) -> T + Send + 'static,
    ) -> Result<T, LoadError> {
        let (done, outcome) = oneshot::channel();
        let here = self.clone();
        let compilers = self.compilers().map_err(LoadError::Host)?;
        let kept = Arc::clone(&compilers);
        compilers.spawn(move || {
            let result = work(&here);
            drop(kept);
            // The caller may have been cancelled.
            drop(done.send(result));
        });
        drop(compilers);
        outcome.await.context("the compiler failed").map_err(LoadError::Host)
    }

    /// Returns the compiler threads; starts them if there are none.
    fn compilers(&self) -> anyhow::Result<Arc<ThreadPool>> {
        let mut running = self.compilers.lock();
        if let Some(compilers) = running.upgrade() {
            return Ok(compilers);
        }
        let compilers = Arc::new(compilers()?);
        *running = Arc::downgrade(&compilers);
        Ok(compilers)
    }

    /// Returns the machine code of a component from the cache, or compiles the
    /// component.
    fn compile(&self, settings: &Settings, bytes: &[u8]) -> Result<CompiledComponent, LoadError> {
        let digest = hex::encode(Sha256::digest(bytes));
        if let Some(compiled) = self.kept(&digest) {
            return Ok(compiled);
        }
        parts::check(bytes).map_err(LoadError::NotAComponent)?;
        let begun = Instant::now();
        if let (Some(program), Some(cache)) = (&settings.compiler, &self.cache) {
            let code = compiler::compile_in_child(program, settings, bytes)?;
            let component = self.keep(cache, &digest, &code)?;
            return Ok(CompiledComponent { component, digest, took: Some(begun.elapsed()) });
        }
        let component = Compiled::from_binary(&self.engine, bytes)
            .map_err(|error| LoadError::NotAComponent(format!("{error:#}")))?;
        let took = Some(begun.elapsed());
        if let Some(Err(error)) = self.cache.as_ref().map(|c| c.store(&digest, &component)) {
            tracing::warn!(%error, area.digest = %digest, "cannot store a compiled component in the cache");
        }
        Ok(CompiledComponent { component, digest, took })
    }

    /// Stores the machine code from the compiler's child process in the cache,
    /// and loads it.
    fn keep(&self, cache: &CodeCache, digest: &str, code: &[u8]) -> Result<Compiled, LoadError> {
        cache.store_code(digest, code).map_err(LoadError::Host)?;
        let loaded = cache
            .try_load(&self.engine, digest)
            .context("what the compiler made cannot be read")
            .map_err(LoadError::Host)?;
        // The child process does not check whether the component fits into this
        // engine's pool.
        loaded.map_err(|error| {
            cache.forget(digest);
            LoadError::NotAComponent(format!("{error:#}"))
        })
    }

    /// Loads the machine code of a component from the cache; `None` if it is not
    /// cached.
    fn kept(&self, digest: &str) -> Option<CompiledComponent> {
        let component = self.cache.as_ref()?.load(&self.engine, digest)?;
        Some(CompiledComponent { component, digest: digest.to_owned(), took: None })
    }

    pub(super) fn link(
        &self,
        component: &Compiled,
        imports: &Imports,
    ) -> Result<Exports, LoadError> {
        let linker = if imports.wasi { &self.linker_with_wasi } else { &self.linker };
        linker
            .instantiate_pre(component)
            .and_then(|linked| Exports::of(component, linked))
            .map_err(|error| LoadError::WrongWorld(format!("{error:#}")))
    }
}

/// Starts the compiler threads, one for each processor. If a compiler panics,
/// only its caller gets no result.
fn compilers() -> anyhow::Result<ThreadPool> {
    ThreadPoolBuilder::new()
        .thread_name(|number| format!("compiler-{number}"))
        .start_handler(|_| lower_priority(compiler::NICENESS))
        .panic_handler(|_| ())
        .build()
        .context("cannot start the threads that compile")
}

/// A compiled component with its digest, and the duration of compiling (`None`
/// if it was cached).
struct CompiledComponent {
    component: Compiled,
    digest: String,
    took: Option<Duration>,
}
