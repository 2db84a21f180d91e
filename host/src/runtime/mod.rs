//! WebAssembly: the only module that knows wasmtime.
//!
//! A component is compiled, checked against what its operator grants, asked
//! what it is, and from then on called: each call in a fresh instance with a
//! memory cap, a deadline and budgets of its own. Whatever a guest does, the
//! host goes on, and other calls are not held up.

mod bindings;
mod cache;
mod capability;
mod compiler;
mod component;
mod convert;
mod engine;
mod exports;
mod generations;
mod imports;
mod instance;
mod limits;
mod loader;
mod log;
mod overstay;
mod parts;
mod replay;
mod settings;
mod transcript;
mod trap;
mod wasi;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use jiff::tz::TimeZoneDatabase;

use self::limits::SharedMemory;
use self::loader::Loader;
use self::overstay::Overstayers;
use self::settings::CallLimits;
use crate::budgets::Budgets;
use crate::config::{AreaLimits, Config};
use crate::domain::manifest::{Capability, Manifest};
use crate::domain::time::Clock;
use crate::egress::Egress;
use crate::journal::Journals;
use crate::mail::{self, Mail};
use crate::secrets::Keys;
use crate::work::{AreaCode, CallError};

pub use cache::Cache;
pub use compiler::{COMMAND as COMPILE_COMMAND, CompileLimits, Job as CompileJob, compile_here};
pub use settings::Settings;

/// Compiles and runs components. One for the process; a clone is the same one.
#[derive(Clone)]
pub struct Runtime {
    loader: Arc<Loader>,
    shared: Arc<Shared>,
}

/// A component, checked and ready to be called.
#[derive(Clone)]
pub struct Loaded {
    /// SHA-256 of the component, lower-case hex.
    pub digest: String,
    /// What it said it is.
    pub manifest: Manifest,
    /// Runs it.
    pub code: Arc<dyn AreaCode>,
    /// The generation of the contract that it speaks, for the operator.
    pub generation: &'static str,
    /// Everything it imports, as it names it.
    pub imports: Vec<String>,
    /// How long compiling took; nothing where the compiled form was cached.
    pub compiled_in: Option<Duration>,
}

/// Why a component is not loaded. The text is for whoever sent it.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// Larger than an operator allows.
    #[error("the component has {bytes} bytes; at most {max} are taken")]
    TooLarge {
        /// Its size.
        bytes: usize,
        /// The largest size taken.
        max: usize,
    },
    /// No component, or not a valid one.
    #[error("not a valid component: {0}")]
    NotAComponent(String),
    /// Compiling it takes more than it may.
    #[error(
        "compiling the component takes more than {memory_bytes} bytes of memory, {cpu:?} of \
         processor time or {wall:?} in all (runtime.max_compile_memory_bytes, \
         runtime.max_compile_cpu_ms, runtime.max_compile_ms); split large functions, or let the \
         operator raise the limit"
    )]
    TooCostly {
        /// Memory that the compiler may use.
        memory_bytes: u64,
        /// Processor time that it may use.
        cpu: Duration,
        /// Time that it may take.
        wall: Duration,
    },
    /// A component of another world.
    #[error("not a component of the world assurance:area/area: {0}")]
    WrongWorld(String),
    /// A component for a generation of the contract that is not spoken here.
    #[error(
        "the component was built for generation {found} of the contract assurance:area; this \
         service speaks {spoken}. Build it again with area-sdk {newest}, or deploy it to a version of \
         the service that speaks {found}"
    )]
    UnknownGeneration {
        /// What it was built for.
        found: String,
        /// What is spoken, as a list.
        spoken: String,
        /// The current one, which is the SDK's version too.
        newest: &'static str,
    },
    /// It asks for what it was not granted.
    #[error(
        "area {area:?} asks for the capability `{capability}`, which it is not granted \
         (areas.grants.{area})"
    )]
    MissingGrant {
        /// What the component calls itself.
        area: String,
        /// What it lacks, by its name in the contract.
        capability: &'static str,
    },
    /// It could not say what it is.
    #[error("`describe` failed: {0}; it may do nothing but answer with the manifest, at once")]
    Describe(CallError),
    /// What it said it is does not hold together.
    #[error("the manifest is not valid: {0}")]
    Manifest(String),
    /// The host's own mistake.
    #[error("host fault: {0:#}")]
    Host(anyhow::Error),
}

/// Everything that areas can be granted.
#[must_use]
pub fn every_capability() -> BTreeSet<Capability> {
    imports::ALL.into()
}

impl Runtime {
    /// Sets the engine up; the process needs one.
    pub fn new(
        settings: Settings,
        keys: &Keys,
        clock: Clock,
        egress: Egress,
        mail: Mail,
    ) -> anyhow::Result<Self> {
        let engine = engine::start(&settings)?;
        let cache = match &settings.cache_dir {
            Some(dir) => Some(Cache::open(dir, &keys.derive("compiled-cache"), &engine)?),
            None => None,
        };
        let loader = Arc::new(Loader::new(engine, cache, settings.compile_niceness)?);
        let shared = Arc::new(Shared {
            long_requests: Overstayers::start("long-requests", settings.request_niceness)?,
            long_jobs: Overstayers::start("long-jobs", settings.job_niceness)?,
            memory: Arc::new(SharedMemory::new(settings.max_total_memory_bytes)),
            budgets: Arc::new(Budgets::new(settings.budgets.clone())),
            journals: Arc::new(Journals::new(clock)),
            areas: ArcSwap::from_pointee(settings.areas.clone()),
            zones: TimeZoneDatabase::bundled(),
            egress,
            mail,
            settings,
        });
        Ok(Self { loader, shared })
    }

    /// For a command that runs a component without a service: keys are made up,
    /// and nobody is reached.
    pub fn offline(settings: Settings) -> anyhow::Result<Self> {
        let mail = Mail::new(mail::Settings::from(&Config::default()))?;
        let keys = Keys::new(rand::random());
        Self::new(settings.offline(), &keys, Clock::System, Egress::closed(), mail)
    }

    /// What calls use together.
    #[must_use]
    pub fn budgets(&self) -> &Budgets {
        &self.shared.budgets
    }

    /// What guests said last, and how calls failed.
    #[must_use]
    pub fn journals(&self) -> &Journals {
        &self.shared.journals
    }

    /// Where compiled components are kept, if anywhere.
    #[must_use]
    pub fn cache(&self) -> Option<&Cache> {
        self.loader.cache.as_ref()
    }

    /// Sets other limits of single calls, by area, for those that begin from
    /// now on. An instance gets no more memory than any could at start.
    pub fn set_limits(&self, areas: BTreeMap<String, AreaLimits>) {
        self.shared.areas.store(Arc::new(areas));
    }

    /// Compiles a component, asks it what it is and checks that it imports
    /// nothing but what it asks for and is granted. `grants` is asked with the
    /// name that the component gives itself.
    pub async fn load(
        &self,
        bytes: Arc<[u8]>,
        grants: impl FnOnce(&str) -> BTreeSet<Capability> + Send,
    ) -> Result<Loaded, LoadError> {
        self.loader.clone().load(self.shared.clone(), bytes, grants).await
    }

    /// The same of a component that was compiled before, without its bytes;
    /// nothing, where they are needed.
    pub async fn load_kept(
        &self,
        digest: &str,
        grants: impl FnOnce(&str) -> BTreeSet<Capability> + Send,
    ) -> Result<Option<Loaded>, LoadError> {
        self.loader.clone().load_kept(self.shared.clone(), digest.to_owned(), grants).await
    }
}

/// What all calls share.
struct Shared {
    settings: Settings,
    long_requests: Overstayers,
    long_jobs: Overstayers,
    memory: Arc<SharedMemory>,
    budgets: Arc<Budgets>,
    journals: Arc<Journals>,
    /// What calls of these areas may use, as last set.
    areas: ArcSwap<BTreeMap<String, AreaLimits>>,
    zones: TimeZoneDatabase,
    egress: Egress,
    mail: Mail,
}

impl Shared {
    fn limits_of(&self, area: &str) -> CallLimits {
        self.settings.call_limits(self.areas.load().get(area).copied().unwrap_or_default())
    }
}
