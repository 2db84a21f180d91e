//! The configuration, checked whole before anything binds.
//!
//! Later sources win: defaults, the TOML file, the environment
//! (`ASSURANCE_SECTION__KEY`), command-line flags. An unknown key anywhere is
//! refused, and every refusal names the key, its source and the way out.

mod check;
pub mod credentials;
pub mod files;
mod load;
mod sections;
mod show;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use load::{ConfigError, Flags, Source};
pub use sections::{
    Api, AreaLimits, Areas, Blobs, Budget, Budgets, Canary, Database, Egress, Idempotency, Jobs,
    Keys, LaneShare, Lanes, Limits, Log, LogFormat, Mail, Malware, ManifestLimits, Operators,
    Passwords, Publisher, Rates, Readiness, Record, Runtime, Secret, Session, Shadow, SignIn,
    Socket,
};

/// Everything an operator can set.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Where the service keeps what it owns: the embedded database, keys,
    /// blobs and compiled areas.
    pub data_dir: PathBuf,
    /// Development mode: sessions may travel over plain http on a loopback
    /// address, and component folders are loaded unverified.
    pub development: bool,
    /// The listener for API clients.
    pub api: Api,
    /// The listener for operators: deployment, health, metrics.
    pub operators: Operators,
    /// When a node reports that it is not ready.
    pub readiness: Readiness,
    /// Where documents, sessions and jobs are kept.
    pub database: Database,
    /// Where uploads and component binaries are kept.
    pub blobs: Blobs,
    /// Which areas are loaded and what they may import.
    pub areas: Areas,
    /// Keys that protect stored secrets, cursors and tokens.
    pub keys: Keys,
    /// How long people stay signed in.
    pub session: Session,
    /// How passwords are hashed.
    pub passwords: Passwords,
    /// What repeated wrong passwords and codes lead to.
    pub sign_in: SignIn,
    /// How many requests are let through.
    pub rates: Rates,
    /// Sizes and times of requests.
    pub limits: Limits,
    /// Idempotency keys.
    pub idempotency: Idempotency,
    /// What one call of an area may use.
    pub runtime: Runtime,
    /// What the calls of one area, and those of one workspace, may use
    /// together on one node. Read again at SIGHUP, as areas.limits and
    /// areas.record are.
    pub budgets: Budgets,
    /// The durable queue and its workers.
    pub jobs: Jobs,
    /// The one way out to the network.
    pub egress: Egress,
    /// The scanner that areas may have content looked at by.
    pub malware: Malware,
    /// Mail to people.
    pub mail: Mail,
    /// What is logged, and how.
    pub log: Log,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            data_dir: PathBuf::from("./data"),
            development: false,
            api: Api::default(),
            operators: Operators::default(),
            readiness: Readiness::default(),
            database: Database::default(),
            blobs: Blobs::default(),
            areas: Areas::default(),
            keys: Keys::default(),
            session: Session::default(),
            passwords: Passwords::default(),
            sign_in: SignIn::default(),
            rates: Rates::default(),
            limits: Limits::default(),
            idempotency: Idempotency::default(),
            runtime: Runtime::default(),
            budgets: Budgets::default(),
            jobs: Jobs::default(),
            egress: Egress::default(),
            malware: Malware::default(),
            mail: Mail::default(),
            log: Log::default(),
        }
    }
}

impl Config {
    /// Reads and checks everything.
    ///
    /// # Errors
    /// Names the first key that is wrong, where it was set, and what to do.
    pub fn load(source: &Source) -> Result<Self, ConfigError> {
        load::load(source)
    }

    /// The database's address: as configured, else a file in the data folder.
    #[must_use]
    pub fn database_url(&self) -> String {
        self.database.url.as_ref().map_or_else(
            || format!("sqlite://{}", self.data_dir.join("assurance.sqlite").display()),
            |url| url.reveal().to_owned(),
        )
    }

    /// The database's address without user, password and options, for messages.
    #[must_use]
    pub fn database_name(&self) -> String {
        let address = self.database_url();
        let place = match address.split_once("://") {
            Some((scheme, rest)) if scheme != "sqlite" => {
                rest.rsplit_once('@').map_or(rest, |(_, place)| place)
            }
            _ => &address,
        };
        place.split('?').next().unwrap_or_default().to_owned()
    }

    /// The file of the embedded database; `None`: it is PostgreSQL.
    #[must_use]
    pub fn sqlite_file(&self) -> Option<PathBuf> {
        let url = self.database_url();
        let path = url.strip_prefix("sqlite:")?;
        let path = path.strip_prefix("//").unwrap_or(path);
        let path = path.split('?').next().unwrap_or_default();
        Some(percent_encoding::percent_decode_str(path).decode_utf8_lossy().into_owned().into())
    }

    /// Where clients reach the service, without a slash at the end.
    #[must_use]
    pub fn base_url(&self) -> String {
        self.api.base_url.as_ref().map_or_else(
            || format!("http://{}", self.api.listen),
            |url| url.trim_end_matches('/').to_owned(),
        )
    }

    /// The file that holds the operators' bearer token.
    #[must_use]
    pub fn operators_token_file(&self) -> PathBuf {
        self.in_data_dir(self.operators.token_file.as_deref(), "operators.token")
    }

    /// The file that holds the master key.
    #[must_use]
    pub fn master_key_file(&self) -> PathBuf {
        self.in_data_dir(self.keys.master_key_file.as_deref(), "master.key")
    }

    /// The folder that areas are loaded from.
    #[must_use]
    pub fn areas_dir(&self) -> PathBuf {
        self.in_data_dir(self.areas.dir.as_deref(), "areas")
    }

    /// The folder of blobs.
    #[must_use]
    pub fn blobs_dir(&self) -> PathBuf {
        self.in_data_dir(self.blobs.dir.as_deref(), "blobs")
    }

    /// The folder of compiled areas.
    #[must_use]
    pub fn runtime_cache_dir(&self) -> PathBuf {
        self.in_data_dir(self.runtime.cache_dir.as_deref(), "compiled")
    }

    /// The folder of recordings.
    #[must_use]
    pub fn recordings_dir(&self) -> PathBuf {
        self.in_data_dir(self.areas.record.dir.as_deref(), "recordings")
    }

    fn in_data_dir(&self, configured: Option<&Path>, name: &str) -> PathBuf {
        configured.map_or_else(|| self.data_dir.join(name), Path::to_path_buf)
    }

    /// The whole configuration as an annotated TOML file, secrets masked.
    #[must_use]
    pub fn to_documented_toml(&self) -> String {
        show::documented_toml(self)
    }
}
