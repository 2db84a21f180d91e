//! The configuration. It is checked completely before any listener is opened.
//!
//! Later sources win: defaults, the TOML file, the environment
//! (`ASSURANCE_SECTION__KEY`), command-line flags. Unknown keys are rejected.
//! Every error contains the key, its source and the fix.

mod check;
pub mod credentials;
pub mod files;
mod layers;
mod load;
mod section;
mod sections;
mod show;

#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

pub use load::{
    AREAS_FILE, ConfigError, ConfigKeyError, ConfigSources, FlagOverrides, ignored_variables,
};
use section::section;
pub use sections::{
    AccessTokensConfig, ApiListenerConfig, AreaCallLimits, AreasConfig, BlobsConfig, BudgetConfig,
    BudgetsConfig, CanaryRollbackConfig, DatabaseConfig, EgressConfig, IdempotencyConfig,
    JobsConfig, LaneConfig, LanesConfig, LimitsConfig, LogConfig, LogFormat, MailConfig,
    MalwareConfig, ManifestLimits, MasterKeyConfig, OperatorsListenerConfig, PasswordsConfig,
    RatesConfig, ReadinessConfig, RecordingsConfig, RuntimeConfig, SecretString, ServiceAddress,
    SessionConfig, ShadowConfig, SignInProtectionConfig, TrustedPublisher,
};

section! {
    /// All settings of the service.
    pub struct Config {
        /// Folder of everything the service owns: the embedded database, keys,
        /// blobs and compiled areas.
        pub data_dir: PathBuf = PathBuf::from("./data"),
        /// Development mode: session cookies may use plain http on a loopback
        /// address, and component folders are loaded without signatures.
        pub development: bool = false,
        /// The listener for API clients.
        pub api: ApiListenerConfig,
        /// The listener for operators: deployment, health, metrics.
        pub operators: OperatorsListenerConfig,
        /// When a node reports that it is not ready.
        pub readiness: ReadinessConfig,
        /// Storage of documents, sessions and jobs.
        pub database: DatabaseConfig,
        /// Storage of uploads and component binaries.
        pub blobs: BlobsConfig,
        /// Which areas are loaded and what they may import.
        pub areas: AreasConfig,
        /// Master key, from which the keys that protect stored secrets, cursors and
        /// tokens are derived.
        pub keys: MasterKeyConfig,
        /// Lifetime and cookie of users' sessions.
        pub session: SessionConfig,
        /// Lifetime and number of access tokens for machines.
        pub access_tokens: AccessTokensConfig,
        /// Hashing and minimum length of passwords.
        pub passwords: PasswordsConfig,
        /// Consequences of repeated wrong passwords and codes.
        pub sign_in: SignInProtectionConfig,
        /// Rate limits of requests.
        pub rates: RatesConfig,
        /// Size and time limits of requests.
        pub limits: LimitsConfig,
        /// How long responses are kept for idempotency keys.
        pub idempotency: IdempotencyConfig,
        /// Limits of calls, instances and compilations; cache of compiled areas.
        pub runtime: RuntimeConfig,
        /// Limits for all calls of one area, and of one workspace, together on one
        /// node. Reloaded at SIGHUP, like areas.limits and areas.record.
        pub budgets: BudgetsConfig,
        /// The durable job queue and its workers.
        pub jobs: JobsConfig,
        /// Outgoing network requests: limits and trusted certificates.
        pub egress: EgressConfig,
        /// The malware scanner that areas may use.
        pub malware: MalwareConfig,
        /// Outgoing mail: server, sender and limits.
        pub mail: MailConfig,
        /// Log level, filter and format.
        pub log: LogConfig,
    }
}

impl Config {
    /// Loads the configuration from its sources and checks it.
    ///
    /// # Errors
    /// An error with every invalid key, its source, and the fix.
    pub fn load(source: &ConfigSources) -> Result<Self, ConfigError> {
        load::load(source).map(|loaded| loaded.config)
    }

    /// Loads the configuration and returns it as an annotated TOML file with
    /// masked secrets. Defaults are comments, so that a copy of the file does not
    /// pin them.
    ///
    /// # Errors
    /// The errors of [`Config::load`].
    pub fn documented_toml(source: &ConfigSources) -> Result<String, ConfigError> {
        let loaded = load::load(source)?;
        Ok(show::documented_toml(&loaded.config, Some(&loaded.defaults)))
    }

    /// Returns the configuration as an annotated TOML file with masked secrets.
    /// Defaults are ordinary values.
    #[must_use]
    pub fn to_documented_toml(&self) -> String {
        show::documented_toml(self, None)
    }

    /// Returns the database URL: the configured one, or a file in the data
    /// folder.
    #[must_use]
    pub fn database_url(&self) -> String {
        self.database.url.as_ref().map_or_else(
            || format!("sqlite://{}", self.data_dir.join("assurance.sqlite").display()),
            |url| url.reveal().to_owned(),
        )
    }

    /// Returns the database URL without user, password and options, for
    /// messages.
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

    /// Returns the path of the embedded database; `None` for PostgreSQL.
    #[must_use]
    pub fn sqlite_file(&self) -> Option<PathBuf> {
        let url = self.database_url();
        let path = url.strip_prefix("sqlite:")?;
        let path = path.strip_prefix("//").unwrap_or(path);
        let path = path.split('?').next().unwrap_or_default();
        Some(percent_encoding::percent_decode_str(path).decode_utf8_lossy().into_owned().into())
    }

    /// Returns the public base URL for clients; see [`Self::base_url_at`].
    #[must_use]
    pub fn base_url(&self) -> String {
        self.base_url_at(self.api.listen)
    }

    /// Returns the public base URL for clients of a service that listens on
    /// `address`, as browsers send it in `Origin`: in lower case, without a
    /// default port and a trailing slash.
    #[must_use]
    pub fn base_url_at(&self, address: SocketAddr) -> String {
        let listener = || format!("http://{address}");
        let given = self.api.base_url.clone().unwrap_or_else(listener);
        url::Url::parse(&given).map_or(given, |url| url.origin().ascii_serialization())
    }

    /// Returns the path of the file with the operators' bearer token.
    #[must_use]
    pub fn operators_token_file(&self) -> PathBuf {
        self.in_data_dir(self.operators.token_file.as_deref(), "operators.token")
    }

    /// Returns the path of the master key file.
    #[must_use]
    pub fn master_key_file(&self) -> PathBuf {
        self.in_data_dir(self.keys.master_key_file.as_deref(), "master.key")
    }

    /// Returns the folder whose area components are loaded at start.
    #[must_use]
    pub fn areas_dir(&self) -> PathBuf {
        self.in_data_dir(self.areas.dir.as_deref(), "areas")
    }

    /// Returns the folder that blobs are stored in, if no bucket is configured.
    #[must_use]
    pub fn blobs_dir(&self) -> PathBuf {
        self.in_data_dir(self.blobs.dir.as_deref(), "blobs")
    }

    /// Returns the folder in which the machine code of compiled areas is
    /// cached.
    #[must_use]
    pub fn runtime_cache_dir(&self) -> PathBuf {
        self.in_data_dir(self.runtime.cache_dir.as_deref(), "compiled")
    }

    /// Returns the folder that recordings are stored in.
    #[must_use]
    pub fn recordings_dir(&self) -> PathBuf {
        self.in_data_dir(self.areas.record.dir.as_deref(), "recordings")
    }

    fn in_data_dir(&self, configured: Option<&Path>, name: &str) -> PathBuf {
        configured.map_or_else(|| self.data_dir.join(name), Path::to_path_buf)
    }
}
