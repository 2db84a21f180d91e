//! Usage and limits of one area or one workspace.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Instant;

use arc_swap::ArcSwap;
use metrics::{Counter, counter};
use parking_lot::Mutex;

use super::window::{Resource, Usage, UsageWindow};
use super::{BudgetExceeded, WindowTime};
use crate::config::{self, BudgetConfig};
use crate::domain::words::words;

words! {
    /// Whether a budget belongs to an area or to a workspace.
    pub enum BudgetOwnerKind, "a kind of budget" {
        /// The budget belongs to an area: it limits the calls of all workspaces
        /// together.
        Area = "area",
        /// The budget belongs to a workspace: it limits the calls of all areas
        /// together.
        Workspace = "workspace",
    }
}

/// Limits and usage of one area or one workspace on this node, for operators.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BudgetStatus {
    /// The area's name or the workspace's id.
    pub name: String,
    /// Limits that the operator configured for this area or workspace.
    pub budget: BudgetConfig,
    /// Number of calls of the area or workspace that are running on this node.
    pub running: u32,
    /// Memory of the owner's running calls, beyond the first MiB of each, in
    /// bytes.
    pub memory_bytes: u64,
    /// Largest memory that one call has had since the node started, in bytes.
    pub call_memory_peak_bytes: u64,
    /// Usage of the area or workspace since the current minute began.
    pub this_minute: Usage,
    /// Usage of the area or workspace in the previous minute.
    pub last_minute: Usage,
    /// Number of calls refused in the current minute.
    pub refused: u64,
}

/// Usage and limits of one area or one workspace.
#[derive(Debug)]
pub(super) struct BudgetAccount {
    /// Time at which the node started, from which minutes are counted.
    born: Instant,
    whose: BudgetOwnerKind,
    name: String,
    bounds: ArcSwap<BudgetLimits>,
    running: AtomicU32,
    memory: AtomicU64,
    call_memory_peak: AtomicU64,
    window: Mutex<UsageWindow>,
    meters: Option<AccountMetrics>,
}

#[derive(Clone, Copy, Debug)]
struct BudgetLimits {
    budget: BudgetConfig,
    warn_percent: u32,
}

/// Counters of one area's or workspace's usage that are exported as metrics.
#[derive(Debug)]
struct AccountMetrics {
    calls: Counter,
    cpu_us: Counter,
    host_calls: Counter,
    documents: Counter,
}

impl BudgetAccount {
    pub(super) fn new(
        born: Instant,
        whose: BudgetOwnerKind,
        name: String,
        settings: &config::BudgetsConfig,
        budget: BudgetConfig,
        metered: bool,
    ) -> Self {
        let bounds = BudgetLimits { budget, warn_percent: settings.warn_percent };
        Self {
            meters: metered.then(|| AccountMetrics::new(whose, &name)),
            born,
            whose,
            name,
            bounds: ArcSwap::from_pointee(bounds),
            running: AtomicU32::new(0),
            memory: AtomicU64::new(0),
            call_memory_peak: AtomicU64::new(0),
            window: Mutex::default(),
        }
    }

    pub(super) fn set(&self, settings: &config::BudgetsConfig, budget: BudgetConfig) {
        self.bounds.store(Arc::new(BudgetLimits { budget, warn_percent: settings.warn_percent }));
    }

    pub(super) fn status(&self) -> BudgetStatus {
        let window = *self.window.lock().at(self.moment().minute);
        BudgetStatus {
            name: self.name.clone(),
            budget: self.bounds.load().budget,
            running: self.running.load(Ordering::Relaxed),
            memory_bytes: self.memory.load(Ordering::Relaxed),
            call_memory_peak_bytes: self.call_memory_peak.load(Ordering::Relaxed),
            this_minute: window.now,
            last_minute: window.before,
            refused: window.refused,
        }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.running.load(Ordering::Relaxed) == 0
            && self.window.lock().at(self.moment().minute).is_empty()
    }

    fn moment(&self) -> WindowTime {
        WindowTime::since(self.born)
    }

    /// Returns the resource whose budget for the current minute is exhausted;
    /// `None` if another call may run.
    fn used_up(&self, moment: WindowTime) -> Option<Resource> {
        let budget = self.bounds.load().budget;
        if !budget.is_of_minutes() {
            return None;
        }
        let now = self.window.lock().at(moment.minute).now;
        usage_by_resource(&budget, now)
            .find(|(_, used, max)| used >= max)
            .map(|(resource, ..)| resource)
    }

    /// Counts a refused call and returns its error. Logs the first refusal of
    /// each minute.
    fn refuse(&self, resource: Resource, moment: WindowTime) -> BudgetExceeded {
        let first = {
            let mut window = self.window.lock();
            let window = window.at(moment.minute);
            window.refused += 1;
            !std::mem::replace(&mut window.logged_exhausted, true)
        };
        let (whose, name) = (self.whose.as_str(), &self.name);
        if first {
            tracing::warn!(whose, name, resource = resource.as_str(), "budget exhausted");
        }
        let labels = [("whose", whose), ("resource", resource.as_str())];
        counter!("assurance_budget_refusals_total", &labels).increment(1);
        let at_a_time = matches!(resource, Resource::Calls | Resource::Memory);
        let retry_after_s = if at_a_time { 1 } else { moment.left_s };
        BudgetExceeded { whose: self.whose, name: name.clone(), resource, retry_after_s }
    }

    /// Logs, at most once per minute, that the usage of a resource has reached
    /// the warning percentage of its limit.
    fn warn(&self, resource: Resource, used: u64, max: u64, moment: WindowTime) {
        let percent = u64::from(self.bounds.load().warn_percent);
        if used.saturating_mul(100) < max.saturating_mul(percent) {
            return;
        }
        if std::mem::replace(&mut self.window.lock().at(moment.minute).logged_warning, true) {
            return;
        }
        let (whose, name) = (self.whose.as_str(), &self.name);
        let resource = resource.as_str();
        tracing::warn!(whose, name, resource, used, max, "budget nearly exhausted");
        let labels = [("whose", whose), ("resource", resource)];
        counter!("assurance_budget_warnings_total", &labels).increment(1);
    }
}

/// Returns each resource that has a limit per minute, with its usage and its
/// limit.
fn usage_by_resource(
    budget: &BudgetConfig,
    used: Usage,
) -> impl Iterator<Item = (Resource, u64, u64)> {
    let cpu_us = budget.cpu_ms_per_minute.map(|ms| ms.saturating_mul(1_000));
    [
        (Resource::Cpu, used.cpu_us, cpu_us),
        (Resource::HostCalls, used.host_calls, budget.host_calls_per_minute),
        (Resource::Documents, used.documents, budget.documents_per_minute),
    ]
    .into_iter()
    .filter_map(|(resource, used, max)| Some((resource, used, max?)))
}

/// One running call in the account of an area or workspace; counted there from
/// [`BudgetAccountPermit::take`] until the slot is dropped.
#[derive(Debug)]
pub(super) struct BudgetAccountPermit {
    account: Arc<BudgetAccount>,
}

impl BudgetAccountPermit {
    pub(super) fn take(account: Arc<BudgetAccount>) -> Result<Self, BudgetExceeded> {
        let moment = account.moment();
        if let Some(resource) = account.used_up(moment) {
            return Err(account.refuse(resource, moment));
        }
        let max = account.bounds.load().budget.max_concurrent;
        let running = account.running.fetch_add(1, Ordering::Relaxed) + 1;
        let place = Self { account };
        let Some(max) = max else { return Ok(place) };
        if running > max {
            return Err(place.account.refuse(Resource::Calls, moment));
        }
        place.account.warn(Resource::Calls, running.into(), max.into(), moment);
        Ok(place)
    }

    pub(super) fn take_memory(&self, bytes: usize) -> bool {
        let (account, bytes) = (&self.account, bytes as u64);
        let held = account.memory.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let Some(max) = account.bounds.load().budget.max_memory_bytes else { return true };
        let moment = account.moment();
        if held > max {
            self.give_memory_back(usize::try_from(bytes).unwrap_or(usize::MAX));
            account.refuse(Resource::Memory, moment);
            return false;
        }
        account.warn(Resource::Memory, held, max, moment);
        true
    }

    pub(super) fn give_memory_back(&self, bytes: usize) {
        self.account.memory.fetch_sub(bytes as u64, Ordering::Relaxed);
    }

    pub(super) fn note_memory(&self, bytes: usize) {
        self.account.call_memory_peak.fetch_max(bytes as u64, Ordering::Relaxed);
    }

    pub(super) fn charge(&self, used: Usage) {
        let moment = self.account.moment();
        if let Some(meters) = &self.account.meters {
            meters.add(used);
        }
        let now = {
            let mut window = self.account.window.lock();
            let window = window.at(moment.minute);
            window.add(used);
            window.now
        };
        let budget = self.account.bounds.load().budget;
        for (resource, used, max) in usage_by_resource(&budget, now) {
            self.account.warn(resource, used, max, moment);
        }
    }
}

impl Drop for BudgetAccountPermit {
    fn drop(&mut self) {
        self.account.running.fetch_sub(1, Ordering::Relaxed);
    }
}

impl AccountMetrics {
    fn new(whose: BudgetOwnerKind, name: &str) -> Self {
        let counter = |used: &str| {
            let labels = [(whose.as_str(), name.to_owned())];
            counter!(format!("assurance_{whose}_{used}_total"), &labels)
        };
        Self {
            calls: counter("calls"),
            cpu_us: counter("cpu_microseconds"),
            host_calls: counter("host_calls"),
            documents: counter("documents"),
        }
    }

    fn add(&self, used: Usage) {
        self.calls.increment(used.calls);
        self.cpu_us.increment(used.cpu_us);
        self.host_calls.increment(used.host_calls);
        self.documents.increment(used.documents);
    }
}
