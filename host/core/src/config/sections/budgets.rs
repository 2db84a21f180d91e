//! Configuration of limits for many calls together.

use std::collections::BTreeMap;

use uuid::Uuid;

use crate::config::section::section;

section! {
    /// Limits for all calls of one area, and of one workspace, together on one
    /// node. Reloaded at SIGHUP, like areas.limits and areas.record.
    pub struct BudgetsConfig {
        /// Share of a budget, in percent, from which a warning is logged once per
        /// minute.
        pub warn_percent: u32 = 80,
        /// Budget of every area, except for limits that `areas` sets for it.
        pub each_area: BudgetConfig,
        /// Budget of every workspace, except for limits that `workspaces` sets for
        /// it.
        pub each_workspace: BudgetConfig,
        /// Budgets of single areas, by name. A limit that is set here replaces that
        /// of `each_area`.
        pub areas: BTreeMap<String, BudgetConfig>,
        /// Budgets of single workspaces, by id. A limit that is set here replaces
        /// that of `each_workspace`. Metrics name these workspaces and no others.
        #[schemars(with = "BTreeMap<String, BudgetConfig>")]
        pub workspaces: BTreeMap<Uuid, BudgetConfig>,
    }
}

section! {
    /// Limits for all calls of one area, or of one workspace, together on one
    /// node. A limit that is not set is taken from `each_area` or
    /// `each_workspace`, or does not exist.
    #[derive(Copy, PartialEq, Eq)]
    pub struct BudgetConfig {
        /// Processor time per minute, in milliseconds; waiting for the host does
        /// not count.
        pub cpu_ms_per_minute: Option<u64>,
        /// Calls of host functions per minute.
        pub host_calls_per_minute: Option<u64>,
        /// Documents read and written per minute.
        pub documents_per_minute: Option<u64>,
        /// Memory of all running instances together, beyond the first MiB of each,
        /// in bytes.
        pub max_memory_bytes: Option<u64>,
        /// Calls that may run at the same time.
        pub max_concurrent: Option<u32>,
    }
}

impl BudgetConfig {
    /// Returns whether any limit per minute is set.
    #[must_use]
    pub fn is_of_minutes(&self) -> bool {
        self.cpu_ms_per_minute.is_some()
            || self.host_calls_per_minute.is_some()
            || self.documents_per_minute.is_some()
    }

    /// Returns this budget; missing limits are taken from `other`.
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
