//! WebAssembly: the only crate that uses wasmtime.
//!
//! A component is compiled, its imports are checked against the operator's
//! grants, and its manifest is read. Then it can be called. Each call has a new
//! instance with its own memory limit, deadline and budgets. A guest cannot
//! stop the host or delay other calls.

mod backtrace;
mod bindings;
mod capability;
mod cause;
mod code_cache;
mod compiler;
mod component;
mod convert;
mod engine;
mod exports;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod generations;
mod host_call_recorder;
mod imports;
mod instance;
mod limits;
mod loader;
mod log;
mod parts;
mod replay;
mod settings;
mod time_slice;
mod trap;
mod wasi;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use jiff::tz::TimeZoneDatabase;
use tempfile::TempDir;

use self::limits::TotalInstanceMemory;
use self::loader::Loader;
use self::settings::CallLimits;
use self::time_slice::LowPriorityExecutor;
use assurance_core::area_log::AreaLogs;
use assurance_core::budgets::Budgets;
use assurance_core::config::{AreaCallLimits, Config};
use assurance_core::domain::manifest::{Capability, Manifest};
use assurance_core::domain::time::Clock;
use assurance_core::secrets::Keys;
use assurance_outside::egress::Egress;
use assurance_outside::mail::Mailer;
use assurance_work::{AreaCode, CallError};

pub use code_cache::CodeCache;
pub use compiler::{COMMAND as COMPILE_COMMAND, compile_here, this_program};
pub use settings::Settings;

/// Niceness of the thread for requests after their first time slice. They get
/// about a tenth of a busy processor. Not less, because on SQLite such a call may
/// hold the write lock.
const REQUEST_NICENESS: i32 = 10;
/// Niceness of the thread for jobs after their first time slice. Nobody waits for
/// them, but they must finish even on a busy machine.
const JOB_NICENESS: i32 = 5;

/// Compiles and runs components. There is one for the process; clones share it.
#[derive(Clone)]
pub struct Runtime {
    loader: Arc<Loader>,
    shared: Arc<RuntimeState>,
    /// Folder for compiled code of an offline command; removed when the last
    /// clone is dropped.
    _scratch: Option<Arc<TempDir>>,
}

/// A loaded component that can be called.
#[derive(Clone)]
pub struct LoadedArea {
    /// SHA-256 of the component, lower-case hex.
    pub digest: String,
    /// Manifest that `describe` returned.
    pub manifest: Manifest,
    /// Code of the component, with which its exports are called.
    pub code: Arc<dyn AreaCode>,
    /// Version of the contract that the component was built for, shown to
    /// operators.
    pub generation: &'static str,
    /// Names of all imports of the component.
    pub imports: Vec<String>,
    /// Duration of compiling; `None` if the machine code was cached.
    pub compiled_in: Option<Duration>,
}

/// Reason why a component is not loaded. The text is for the sender of the
/// component.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The component exceeds the size limit.
    #[error("the component has {bytes} bytes; the limit is {max}")]
    TooLarge {
        /// Size of the component, in bytes.
        bytes: usize,
        /// Maximum size, in bytes.
        max: usize,
    },
    /// The bytes are not a valid component.
    #[error("not a valid component: {0}")]
    NotAComponent(String),
    /// Compiling the component exceeds a limit.
    #[error(
        "compiling the component takes more than {memory_bytes} bytes of memory, {cpu:?} of \
         processor time or {wall:?} in all (runtime.max_compile_memory_bytes, \
         runtime.max_compile_cpu_ms, runtime.max_compile_ms); split large functions, or let the \
         operator raise the limit"
    )]
    TooCostly {
        /// Memory limit of the compiler, in bytes.
        memory_bytes: u64,
        /// Processor time limit of the compiler.
        cpu: Duration,
        /// Total time limit of the compiler.
        wall: Duration,
    },
    /// The component was built for another WIT world.
    #[error("not a component of the world assurance:area/area: {0}")]
    WrongWorld(String),
    /// The component was built for an unsupported generation of the contract.
    #[error(
        "the component was built for generation {found} of the contract assurance:area; this \
         service supports {spoken}. Build it again with area-sdk {newest}, or deploy it to a version of \
         the service that supports {found}"
    )]
    UnknownGeneration {
        /// Generation of the contract that the component was built for.
        found: String,
        /// Generations that this host supports, as a list.
        spoken: String,
        /// Current generation of the contract, which is also the SDK's version.
        newest: &'static str,
    },
    /// The component requests capabilities that are not granted.
    #[error(
        "area {area:?} asks for {}, which it is not granted; add that to areas.grants.{area}, in \
         the service's configuration or in areas.toml next to the components; list all \
         capabilities of the area there, because its entry replaces \"*\"",
        quoted(capabilities)
    )]
    MissingGrant {
        /// Name of the area from the manifest.
        area: String,
        /// Names, as in the contract, of the requested capabilities that are
        /// not granted.
        capabilities: Vec<&'static str>,
    },
    /// The call of `describe` failed.
    #[error("`describe` failed: {}", with_rule_of_describe(.0))]
    Describe(CallError),
    /// The manifest is invalid.
    #[error("the manifest is not valid: {0}")]
    Manifest(String),
    /// An internal error of the host.
    #[error("internal error of the host: {0:#}")]
    Host(anyhow::Error),
}

/// Returns the text of an error of `describe` with the rule that a manifest
/// must be returned at once. A panic explains itself.
fn with_rule_of_describe(error: &CallError) -> String {
    match error {
        CallError::Panic(cause) => cause.clone(),
        _ => {
            format!("{error}; it must return the manifest at once, without calling host functions")
        }
    }
}

fn quoted(names: &[&str]) -> String {
    let names = names.iter().map(|name| format!("`{name}`"));
    names.collect::<Vec<_>>().join(" and ")
}

/// Returns all capabilities that can be granted.
#[must_use]
pub fn every_capability() -> BTreeSet<Capability> {
    Capability::IMPORTED.iter().copied().collect()
}

impl Runtime {
    /// Creates the runtime with its engine. A process needs only one.
    pub fn new(
        settings: Settings,
        keys: &Keys,
        clock: Clock,
        egress: Egress,
        mail: Mailer,
    ) -> anyhow::Result<Self> {
        trap::describe_metrics();
        let engine = engine::start(&settings)?;
        let max_memory = settings::bytes(settings.config.runtime.max_total_memory_bytes);
        let cache = settings.cache_dir.as_deref();
        let cache = cache.map(|dir| CodeCache::open(dir, &keys.derive("compiled-cache"), &engine));
        let loader = Arc::new(Loader::new(engine, cache.transpose()?)?);
        let shared = Arc::new(RuntimeState {
            long_requests: LowPriorityExecutor::start("long-requests", REQUEST_NICENESS)?,
            long_jobs: LowPriorityExecutor::start("long-jobs", JOB_NICENESS)?,
            memory: Arc::new(TotalInstanceMemory::new(max_memory)),
            budgets: Arc::new(Budgets::new(settings.config.budgets.clone())),
            area_logs: Arc::new(AreaLogs::new(clock)),
            areas: ArcSwap::from_pointee(settings.config.areas.limits.clone()),
            zones: TimeZoneDatabase::bundled(),
            egress,
            mail,
            settings,
        });
        Ok(Self { loader, shared, _scratch: None })
    }

    /// Creates a runtime for commands that run a component without a service,
    /// with random keys and without network access. A child process compiles if
    /// the settings name a compiler; its output is in a folder that is removed
    /// with the runtime.
    pub fn offline(settings: Settings) -> anyhow::Result<Self> {
        let mail = Mailer::new(&Config::default())?;
        let keys = Keys::new(rand::random());
        let scratch = settings.compiler.is_some().then(tempfile::tempdir).transpose()?;
        let settings = settings.offline(scratch.as_ref().map(TempDir::path));
        let made = Self::new(settings, &keys, Clock::System, Egress::closed(), mail)?;
        Ok(Self { _scratch: scratch.map(Arc::new), ..made })
    }

    /// Returns the budgets of areas and workspaces.
    #[must_use]
    pub fn budgets(&self) -> &Budgets {
        &self.shared.budgets
    }

    /// Returns the areas' logs: the last log lines and faults of their guests.
    #[must_use]
    pub fn area_logs(&self) -> &AreaLogs {
        &self.shared.area_logs
    }

    /// Returns the cache of compiled components; `None` if there is none.
    #[must_use]
    pub fn cache(&self) -> Option<&CodeCache> {
        self.loader.cache.as_ref()
    }

    /// Changes the limits of single calls, by area, for calls that begin from
    /// now on. Memory limits above the maximum at start have no effect.
    pub fn set_limits(&self, areas: BTreeMap<String, AreaCallLimits>) {
        self.shared.areas.store(Arc::new(areas));
    }

    /// Compiles a component, reads its manifest, and checks that it imports
    /// only what it requests and `grants` returns. `grants` gets the area's
    /// name from the manifest.
    pub async fn load(
        &self,
        bytes: Arc<[u8]>,
        grants: impl FnOnce(&str) -> BTreeSet<Capability> + Send,
    ) -> Result<LoadedArea, LoadError> {
        self.loader.clone().load(self.shared.clone(), bytes, grants).await
    }

    /// Loads a cached component without its bytes; `None` if it is not cached.
    pub async fn load_cached(
        &self,
        digest: &str,
        grants: impl FnOnce(&str) -> BTreeSet<Capability> + Send,
    ) -> Result<Option<LoadedArea>, LoadError> {
        self.loader.clone().load_cached(self.shared.clone(), digest.to_owned(), grants).await
    }
}

/// State of the runtime that all calls share.
struct RuntimeState {
    settings: Settings,
    long_requests: LowPriorityExecutor,
    long_jobs: LowPriorityExecutor,
    memory: Arc<TotalInstanceMemory>,
    budgets: Arc<Budgets>,
    area_logs: Arc<AreaLogs>,
    /// Current limits of single calls, by name of the area.
    areas: ArcSwap<BTreeMap<String, AreaCallLimits>>,
    zones: TimeZoneDatabase,
    egress: Egress,
    mail: Mailer,
}

impl RuntimeState {
    fn limits_of(&self, area: &str) -> CallLimits {
        self.settings.call_limits(self.areas.load().get(area).copied().unwrap_or_default())
    }
}
