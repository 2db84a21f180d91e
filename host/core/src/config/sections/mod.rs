//! The sections of the configuration: one struct for each. Every limit is a
//! named field with a unit and a default. `assurance config show` prints the
//! doc comments.

mod areas;
mod blobs;
mod budgets;
mod limits;
mod malware;
mod manifest;
mod people;
mod record;
mod service;
mod work;

pub use areas::{
    AreaCallLimits, AreasConfig, CanaryRollbackConfig, ShadowConfig, TrustedPublisher,
};
pub use blobs::BlobsConfig;
pub use budgets::{BudgetConfig, BudgetsConfig};
pub use limits::{IdempotencyConfig, LimitsConfig, RatesConfig, RuntimeConfig};
pub use malware::{MalwareConfig, ServiceAddress};
pub use manifest::ManifestLimits;
pub use people::{AccessTokensConfig, PasswordsConfig, SessionConfig, SignInProtectionConfig};
pub use record::RecordingsConfig;
pub use service::{
    ApiListenerConfig, DatabaseConfig, MasterKeyConfig, OperatorsListenerConfig, ReadinessConfig,
    SecretString,
};
pub use work::{
    EgressConfig, JobsConfig, LaneConfig, LanesConfig, LogConfig, LogFormat, MailConfig,
};
