//! A runtime with a store and the fixture guests, for tests and benchmarks.

#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    reason = "for tests and benchmarks, each of which takes what it needs"
)]

pub mod log;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use assurance_core::config::{Config, EgressConfig};
use assurance_core::domain::area::{
    CallContext, CallOrigin, JobRun, Problem, Request, RequestBody, SuccessReply,
};
use assurance_core::domain::id::{JobId, UserId, WorkspaceId};
use assurance_core::domain::manifest::Capability;
use assurance_core::domain::role::Role;
use assurance_core::domain::time::{Clock, Timestamp};
use assurance_core::secrets::Keys;
use assurance_outside::egress::Egress;
use assurance_outside::mail::Mailer;
use assurance_runtime::{LoadError, LoadedArea, Runtime, Settings};
use assurance_store::{self as store, AccessibleCollection, Store};
use assurance_work::{
    AreaPolicy, CallError, CallOutcome, UnitOfWork, UnitOfWorkLimits, UnitOfWorkSpec,
};

pub type Answer = Result<Result<SuccessReply, Problem>, CallError>;

/// A runtime with its own database and the fixture guests.
pub struct Sandbox {
    pub runtime: Runtime,
    pub store: Store,
    pub keys: Arc<Keys>,
    pub workspace: WorkspaceId,
    pub folder: tempfile::TempDir,
}

/// Returns the settings of most tests.
pub fn settings() -> Settings {
    settings_with(|_| {})
}

/// Returns settings with a change of their configuration.
pub fn settings_with(change: impl FnOnce(&mut Config)) -> Settings {
    let mut settings = Settings::default();
    settings.config.runtime.max_instances = 64;
    change(&mut settings.config);
    settings
}

/// Returns a mail sender that writes into a folder.
fn mail(data_dir: &std::path::Path) -> Mailer {
    Mailer::new(&Config { data_dir: data_dir.to_owned(), ..Config::default() }).unwrap()
}

impl Sandbox {
    pub async fn new(settings: Settings) -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self::within(folder, settings).await
    }

    /// Creates a sandbox in a folder; the folder may contain data of an earlier
    /// sandbox.
    pub async fn within(folder: tempfile::TempDir, settings: Settings) -> Self {
        log::set_up();
        let keys = Arc::new(Keys::new([7; 32]));
        let egress = Egress::new(EgressConfig::default()).unwrap();
        let runtime =
            Runtime::new(settings, &keys, Clock::System, egress, mail(folder.path())).unwrap();
        let database = folder.path().join("test.db");
        let settings = store::Settings {
            url: format!("sqlite://{}", database.display()),
            blobs: store::blobs::BlobStoreLocation::Folder(folder.path().join("blobs")),
            max_connections: 4,
            acquire_timeout_ms: 2000,
            timeouts: store::PostgresSessionTimeouts::default(),
        };
        let store = Store::open(&settings).await.unwrap();
        Self { runtime, store, keys, workspace: WorkspaceId::new(), folder }
    }

    pub async fn load(&self, fixture: &str) -> Result<LoadedArea, LoadError> {
        self.load_with(fixture, Capability::IMPORTED).await
    }

    pub async fn load_with(
        &self,
        fixture: &str,
        granted: &[Capability],
    ) -> Result<LoadedArea, LoadError> {
        let granted: BTreeSet<_> = granted.iter().copied().collect();
        let loaded = self.runtime.load(component(fixture), |_| granted).await?;
        let things = things(&loaded.manifest.name);
        store::collections::ensure(&self.store, &[things]).await.expect("a collection");
        Ok(loaded)
    }

    pub fn unit(&self, area: &str, in_job: bool) -> UnitOfWork {
        let spec = UnitOfWorkSpec {
            area: scope(area),
            call: self.call(),
            actor: Some(UserId::new()),
            session: None,
            by_link: false,
            writes: true,
            in_job,
            locked: false,
            limits: UnitOfWorkLimits::default(),
            isolation_profile: None,
        };
        UnitOfWork::new(self.store.clone(), self.keys.clone(), spec)
    }

    pub fn call(&self) -> CallContext {
        let now = Timestamp(1_700_000_000_000_000);
        CallContext { workspace: self.workspace, now, seed: [9; 32], origin: CallOrigin::SmokeTest }
    }

    pub fn request(&self, operation: &str, body: &str) -> Request {
        Request {
            call: self.call(),
            user: UserId::new(),
            role: Role::Owner,
            operation: operation.to_owned(),
            parameters: Vec::new(),
            body: RequestBody::Json(body.to_owned()),
            idempotency_key: None,
            if_match: None,
            base_url: "https://api.example".to_owned(),
            link: None,
        }
    }

    pub fn job(&self, kind: &str) -> JobRun {
        JobRun {
            call: self.call(),
            id: JobId::new(),
            kind: kind.to_owned(),
            payload: r#"{"step":1}"#.to_owned(),
            attempt: 1,
            checkpoint: None,
        }
    }

    /// Runs one call with a deadline in milliseconds.
    pub async fn handle(
        &self,
        loaded: &LoadedArea,
        operation: &str,
        body: &str,
        deadline_ms: u64,
    ) -> CallOutcome<Result<SuccessReply, Problem>> {
        let unit = self.unit(&loaded.manifest.name, false);
        let request = self.request(operation, body);
        loaded.code.handle(unit, &request, Duration::from_millis(deadline_ms)).await
    }

    /// Runs one call and returns its result.
    pub async fn answer(&self, loaded: &LoadedArea, operation: &str) -> Answer {
        self.handle(loaded, operation, "{}", 10_000).await.result
    }
}

/// Returns the body of a success.
pub fn body(answer: Answer) -> String {
    answer.unwrap().unwrap().body.unwrap()
}

fn things(area: &str) -> AccessibleCollection {
    AccessibleCollection {
        full_name: format!("{area}.things"),
        own: true,
        fields: BTreeMap::new(),
        indexes: Vec::new(),
        searched: vec![],
    }
}

fn scope(area: &str) -> Arc<AreaPolicy> {
    Arc::new(AreaPolicy {
        area: area.to_owned(),
        collections: BTreeMap::from([("things".to_owned(), things(area))]),
        ..AreaPolicy::default()
    })
}

/// Returns a fixture guest's component.
pub fn component(fixture: &str) -> Arc<[u8]> {
    let file = fixtures().join(fixture).with_extension("wasm");
    match std::fs::read(&file) {
        Ok(bytes) => bytes.into(),
        Err(error) => panic!(
            "{}: {error}; build the fixture guests first: cargo xtask guests --fixtures",
            file.display()
        ),
    }
}

/// Returns a fixture guest's component with another mark after the colon.
pub fn marked(fixture: &str, mark: &[u8], with: &[u8]) -> Arc<[u8]> {
    let mut component = component(fixture).to_vec();
    let at = component.windows(mark.len()).position(|window| window == mark).unwrap();
    component[at + mark.len() - with.len()..at + mark.len()].copy_from_slice(with);
    component.into()
}

/// Returns the folder `ASSURANCE_FIXTURES`, or the one that xtask writes to.
fn fixtures() -> PathBuf {
    if let Some(folder) = std::env::var_os("ASSURANCE_FIXTURES") {
        return folder.into();
    }
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target"),
        PathBuf::from,
    );
    target.join("areas/fixtures")
}

/// Returns a file's permission bits.
pub fn mode(path: &std::path::Path) -> u32 {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}
