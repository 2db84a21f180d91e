//! The sections of the configuration: one struct each, every limit a named
//! field with a unit and a default. The doc comments are what
//! `assurance config show` prints.

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

pub use areas::{AreaLimits, Areas, Canary, Publisher, Shadow};
pub use blobs::Blobs;
pub use budgets::{Budget, Budgets};
pub use limits::{Idempotency, Limits, Rates, Runtime};
pub use malware::{Malware, Socket};
pub use manifest::ManifestLimits;
pub use people::{Passwords, Session, SignIn};
pub use record::Record;
pub use service::{Api, Database, Keys, Operators, Readiness, Secret};
pub use work::{Egress, Jobs, LaneShare, Lanes, Log, LogFormat, Mail};
