//! From bytes to something that can be called: compiled, linked, asked what
//! it is, and held against what its operator grants.

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
use super::cache::Cache;
use super::component::Component;
use super::exports::Exports;
use super::generations;
use super::imports::Imports;
use super::instance::CallState;
use super::overstay::lower_priority;
use super::transcript::{Transcribed, Transcriber};
use super::{LoadError, Loaded, Settings, Shared, compiler, parts};
use crate::domain::manifest::Capability;

/// What loading needs and calling does not.
pub(super) struct Loader {
    engine: Engine,
    pub(super) cache: Option<Cache>,
    linker: Linker<CallState>,
    /// For components that import something of WASI.
    linker_with_wasi: Linker<CallState>,
    /// Threads of lower priority: what is deployed while serving takes no time
    /// from requests that want it. They end with the last component that they
    /// compile: the allocator keeps what an idle thread has freed.
    compilers: Mutex<Weak<ThreadPool>>,
    niceness: i32,
}

impl Loader {
    pub(super) fn new(engine: Engine, cache: Option<Cache>, niceness: i32) -> anyhow::Result<Self> {
        let mut linker = Linker::new(&engine);
        Area::add_to_linker::<_, Transcribed>(&mut linker, |state| Transcriber(state))?;
        generations::add_earlier_to_linker(&mut linker)?;
        let mut linker_with_wasi = linker.clone();
        wasmtime_wasi::p2::add_to_linker_async(&mut linker_with_wasi)?;
        Ok(Self { engine, cache, linker, linker_with_wasi, compilers: Mutex::default(), niceness })
    }

    pub(super) async fn load(
        self: Arc<Self>,
        shared: Arc<Shared>,
        bytes: Arc<[u8]>,
        grants: impl FnOnce(&str) -> BTreeSet<Capability> + Send,
    ) -> Result<Loaded, LoadError> {
        let max = shared.settings.max_component_bytes;
        if bytes.len() > max {
            return Err(LoadError::TooLarge { bytes: bytes.len(), max });
        }
        let settings = shared.settings.clone();
        let compiled =
            self.clone().in_background(move |here| here.compile(&settings, &bytes)).await??;
        self.asked(shared, compiled, grants).await
    }

    /// What is kept as machine code; nothing, where its component is needed.
    pub(super) async fn load_kept(
        self: Arc<Self>,
        shared: Arc<Shared>,
        digest: String,
        grants: impl FnOnce(&str) -> BTreeSet<Capability> + Send,
    ) -> Result<Option<Loaded>, LoadError> {
        match self.clone().in_background(move |here| here.kept(digest)).await? {
            Ok(compiled) => self.asked(shared, compiled, grants).await.map(Some),
            Err(_) => Ok(None),
        }
    }

    /// Linked, and asked what it is.
    async fn asked(
        &self,
        shared: Arc<Shared>,
        compiled: Machine,
        grants: impl FnOnce(&str) -> BTreeSet<Capability> + Send,
    ) -> Result<Loaded, LoadError> {
        let imports = Imports::of(&self.engine, &compiled.component)?;
        let exports = self.link(&compiled.component, &imports)?;
        let code = Component::new(exports, shared, compiled.digest.clone());
        let manifest =
            code.describe().await.map_err(LoadError::Describe)?.map_err(LoadError::Manifest)?;
        imports.check(&manifest, &grants(&manifest.name))?;
        Ok(Loaded {
            digest: compiled.digest,
            manifest,
            code: Arc::new(code),
            generation: imports.generation.version(),
            imports: imports.names,
            compiled_in: compiled.took,
        })
    }

    /// Runs what takes long where it may.
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
            // Whoever wanted it may be gone.
            drop(done.send(result));
        });
        drop(compilers);
        outcome.await.context("the compiler did not come to an end").map_err(LoadError::Host)
    }

    /// The threads that compile, started if there are none.
    fn compilers(&self) -> anyhow::Result<Arc<ThreadPool>> {
        let mut running = self.compilers.lock();
        if let Some(compilers) = running.upgrade() {
            return Ok(compilers);
        }
        let compilers = Arc::new(compilers(self.niceness)?);
        *running = Arc::downgrade(&compilers);
        Ok(compilers)
    }

    /// From the cache, or by compiling.
    fn compile(&self, settings: &Settings, bytes: &[u8]) -> Result<Machine, LoadError> {
        let digest = match self.kept(hex::encode(Sha256::digest(bytes))) {
            Ok(machine) => return Ok(machine),
            Err(digest) => digest,
        };
        parts::check(bytes).map_err(LoadError::NotAComponent)?;
        let begun = Instant::now();
        if let (Some(program), Some(cache)) = (&settings.compiler, &self.cache) {
            let code = compiler::compile_apart(program, settings, bytes)?;
            cache.store_code(&digest, &code).map_err(LoadError::Host)?;
            let component = cache
                .load(&self.engine, &digest)
                .context("what the compiler made cannot be loaded")
                .map_err(LoadError::Host)?;
            return Ok(Machine { component, digest, took: Some(begun.elapsed()) });
        }
        let component = Compiled::from_binary(&self.engine, bytes)
            .map_err(|error| LoadError::NotAComponent(format!("{error:#}")))?;
        let took = Some(begun.elapsed());
        if let Some(Err(error)) = self.cache.as_ref().map(|c| c.store(&digest, &component)) {
            tracing::warn!(%error, area.digest = %digest, "a compiled component is not kept");
        }
        Ok(Machine { component, digest, took })
    }

    /// From the cache; or the digest back.
    fn kept(&self, digest: String) -> Result<Machine, String> {
        match self.cache.as_ref().and_then(|cache| cache.load(&self.engine, &digest)) {
            Some(component) => Ok(Machine { component, digest, took: None }),
            None => Err(digest),
        }
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

/// As many as there are processors; a compiler that panics leaves its caller
/// without an answer, and the others alone.
fn compilers(niceness: i32) -> anyhow::Result<ThreadPool> {
    ThreadPoolBuilder::new()
        .thread_name(|number| format!("compiler-{number}"))
        .start_handler(move |_| lower_priority(niceness))
        .panic_handler(|_| ())
        .build()
        .context("cannot start the threads that compile")
}

/// A component as machine code.
struct Machine {
    component: Compiled,
    digest: String,
    took: Option<Duration>,
}
