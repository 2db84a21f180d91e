//! What many calls together may use.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// What the calls of one area, and those of one workspace, may use together
/// on one node. Read again at SIGHUP, as areas.limits and areas.record are.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Budgets {
    /// From this share of a budget on the log says so, once a minute, in
    /// percent.
    pub warn_percent: u32,
    /// What any area may use.
    pub each_area: Budget,
    /// What any workspace may use.
    pub each_workspace: Budget,
    /// What these areas may use instead.
    pub areas: BTreeMap<String, Budget>,
    /// What these workspaces may use instead, by id. The metrics name these
    /// workspaces, and no others.
    #[schemars(with = "BTreeMap<String, Budget>")]
    pub workspaces: BTreeMap<Uuid, Budget>,
}

impl Default for Budgets {
    fn default() -> Self {
        Self {
            warn_percent: 80,
            each_area: Budget::default(),
            each_workspace: Budget::default(),
            areas: BTreeMap::new(),
            workspaces: BTreeMap::new(),
        }
    }
}

/// What some calls may use together; not set: any amount, or what each may.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Budget {
    /// Processor time in a minute, in milliseconds; what a call waits for the
    /// host does not count.
    pub cpu_ms_per_minute: Option<u64>,
    /// Host calls in a minute.
    pub host_calls_per_minute: Option<u64>,
    /// Documents read and written in a minute.
    pub documents_per_minute: Option<u64>,
    /// Memory of all instances at a time, beyond the first MiB of each, in
    /// bytes.
    pub max_memory_bytes: Option<u64>,
    /// Calls at a time.
    pub max_concurrent: Option<u32>,
}

impl Budget {
    /// Whether anything of a minute is bounded.
    #[must_use]
    pub fn is_of_minutes(&self) -> bool {
        self.cpu_ms_per_minute.is_some()
            || self.host_calls_per_minute.is_some()
            || self.documents_per_minute.is_some()
    }

    /// This one, and the other where it says nothing.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            cpu_ms_per_minute: self.cpu_ms_per_minute.or(other.cpu_ms_per_minute),
            host_calls_per_minute: self.host_calls_per_minute.or(other.host_calls_per_minute),
            documents_per_minute: self.documents_per_minute.or(other.documents_per_minute),
            max_memory_bytes: self.max_memory_bytes.or(other.max_memory_bytes),
            max_concurrent: self.max_concurrent.or(other.max_concurrent),
        }
    }
}
