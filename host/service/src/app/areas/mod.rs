//! Manages versions of areas: deployment, activation, rollback and removal.
//!
//! There are two sources of versions. Operators deploy versions into the database, and every node
//! runs the versions that the rows of `live_areas` and `area_trials` name. A folder contains
//! components that a developer builds. If an area is in both, the file's version runs if the file
//! was written after the row was last changed; otherwise the row's version.
//!
//! A file uses only files of later lines (a test holds that there is no cycle):
//!
//! - `from_folder`, `dry_run`, `deploy`, `canary`, `overview`: requests and background tasks
//! - `actions`, `follow`: operators' decisions; keeps a node on the live versions
//! - `execute`, `reconcile`: change the rows and this node, or only this node
//! - `plan`, `node_plan`: decide the changes of rows and of a node; no I/O
//! - `unloaded`, `checks`, `smoke_test`, `folder_version`, `searched`, `selection`: single steps
//! - `install`: changes the registry
//! - `load`, `rows`: read versions and rows
//! - `compiled`, `audit_trail`, `node`, `state`, `verdict`, `error`, `trust`: parts
//!
//! Invariant: the registry changes only while `App::installing` is locked.

mod actions;
mod audit_trail;
mod canary;
mod checks;
mod compiled;
mod deploy;
mod dry_run;
mod error;
mod execute;
mod folder_version;
mod follow;
mod from_folder;
mod install;
mod load;
mod node;
mod node_plan;
mod overview;
mod plan;
mod reconcile;
mod rows;
mod searched;
mod selection;
mod smoke_test;
mod staleness_guard;
mod state;
#[cfg(test)]
mod tests;
mod trust;
mod unloaded;
mod verdict;

pub use actions::{
    ActivationRequest, activate, approve, begin_trial, remove, roll_back, stop_trial,
};
pub use canary::watch_canaries;
pub use deploy::{DeployAction, DeployOutcome, DeployReport, DeployRequest, deploy};
pub use dry_run::{DryRunReport, dry_run};
pub use error::{AreaActionError, IncompatibleVersion};
pub use execute::AreaChange;
pub use follow::{follow, join, sign_off};
pub use node::LocalNode;
pub use overview::{AreaOverview, audit_log, history, manifest, overview};
pub use plan::TrialRequest;
pub use staleness_guard::ServingBlocked;
pub use trust::{ComponentSignatureError, Signature};
