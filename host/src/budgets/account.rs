//! The account of one area or one workspace.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use arc_swap::ArcSwap;
use metrics::{Counter, counter};
use parking_lot::Mutex;

use super::window::{Resource, Usage, Window};
use super::{Budgets, Moment, Refused};
use crate::config::{self, Budget};

/// Who has a budget.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Whose {
    /// All workspaces' calls of one area.
    Area,
    /// All areas' calls of one workspace.
    Workspace,
}

impl Whose {
    fn as_str(self) -> &'static str {
        match self {
            Self::Area => "area",
            Self::Workspace => "workspace",
        }
    }
}

impl fmt::Display for Whose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Where one stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Standing {
    /// The area's name or the workspace's id.
    pub name: String,
    /// What it may use.
    pub budget: Budget,
    /// Calls that run.
    pub running: u32,
    /// Memory they have, beyond the first MiB of each, in bytes.
    pub memory_bytes: u64,
    /// The most that one call has had since the node began, all of it.
    pub call_memory_peak_bytes: u64,
    /// What was used since the minute began.
    pub this_minute: Usage,
    /// What was used in the minute before.
    pub last_minute: Usage,
    /// Calls refused since the minute began.
    pub refused: u64,
}

/// One area's or one workspace's account.
#[derive(Debug)]
pub(super) struct Account {
    whose: Whose,
    name: String,
    bounds: ArcSwap<Bounds>,
    running: AtomicU32,
    memory: AtomicU64,
    call_memory_peak: AtomicU64,
    window: Mutex<Window>,
    meters: Option<Meters>,
}

#[derive(Clone, Copy, Debug)]
struct Bounds {
    budget: Budget,
    warn_percent: u32,
}

/// What the metrics are told of an account.
struct Meters {
    calls: Counter,
    cpu_us: Counter,
    host_calls: Counter,
    documents: Counter,
}

impl Account {
    pub(super) fn new(
        whose: Whose,
        name: String,
        settings: &config::Budgets,
        budget: Budget,
        metered: bool,
    ) -> Self {
        let bounds = Bounds { budget, warn_percent: settings.warn_percent };
        Self {
            meters: metered.then(|| Meters::new(whose, &name)),
            whose,
            name,
            bounds: ArcSwap::from_pointee(bounds),
            running: AtomicU32::new(0),
            memory: AtomicU64::new(0),
            call_memory_peak: AtomicU64::new(0),
            window: Mutex::default(),
        }
    }

    pub(super) fn set(&self, settings: &config::Budgets, budget: Budget) {
        self.bounds.store(Arc::new(Bounds { budget, warn_percent: settings.warn_percent }));
    }

    pub(super) fn standing(&self, moment: Moment) -> Standing {
        let window = *self.window.lock().at(moment.minute);
        Standing {
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

    pub(super) fn is_idle(&self, moment: Moment) -> bool {
        self.running.load(Ordering::Relaxed) == 0 && self.window.lock().at(moment.minute).is_empty()
    }

    /// What is used up; nothing, where one more call may come.
    fn used_up(&self, moment: Moment) -> Option<Resource> {
        let budget = self.bounds.load().budget;
        if !budget.is_of_minutes() {
            return None;
        }
        let now = self.window.lock().at(moment.minute).now;
        spent(&budget, now).find(|(_, used, max)| used >= max).map(|(resource, ..)| resource)
    }

    /// Counts a refusal, and tells the log of the first in a minute.
    fn refuse(&self, resource: Resource, moment: Moment) -> Refused {
        let first = {
            let mut window = self.window.lock();
            let window = window.at(moment.minute);
            window.refused += 1;
            !std::mem::replace(&mut window.told, true)
        };
        let (whose, name) = (self.whose.as_str(), &self.name);
        if first {
            tracing::warn!(whose, name, resource = resource.as_str(), "a budget is used up");
        }
        let labels = [("whose", whose), ("resource", resource.as_str())];
        counter!("assurance_budget_refusals_total", &labels).increment(1);
        let at_a_time = matches!(resource, Resource::Calls | Resource::Memory);
        let retry_after_s = if at_a_time { 1 } else { moment.left_s };
        Refused { whose: self.whose, name: name.clone(), resource, retry_after_s }
    }

    /// Tells the log, once a minute, that a budget is nearly used.
    fn warn(&self, resource: Resource, used: u64, max: u64, moment: Moment) {
        let percent = u64::from(self.bounds.load().warn_percent);
        if used.saturating_mul(100) < max.saturating_mul(percent) {
            return;
        }
        if std::mem::replace(&mut self.window.lock().at(moment.minute).warned, true) {
            return;
        }
        let (whose, name) = (self.whose.as_str(), &self.name);
        let resource = resource.as_str();
        tracing::warn!(whose, name, resource, used, max, "a budget is nearly used");
        let labels = [("whose", whose), ("resource", resource)];
        counter!("assurance_budget_warnings_total", &labels).increment(1);
    }
}

/// What is bounded of a minute, how much was used of it, and how much may be.
fn spent(budget: &Budget, used: Usage) -> impl Iterator<Item = (Resource, u64, u64)> {
    let cpu_us = budget.cpu_ms_per_minute.map(|ms| ms.saturating_mul(1_000));
    [
        (Resource::Cpu, used.cpu_us, cpu_us),
        (Resource::HostCalls, used.host_calls, budget.host_calls_per_minute),
        (Resource::Documents, used.documents, budget.documents_per_minute),
    ]
    .into_iter()
    .filter_map(|(resource, used, max)| Some((resource, used, max?)))
}

/// A call's place in one account; given up when dropped.
pub(super) struct Place {
    account: Arc<Account>,
    budgets: Arc<Budgets>,
}

impl Place {
    pub(super) fn take(
        account: Arc<Account>,
        budgets: &Arc<Budgets>,
        moment: Moment,
    ) -> Result<Self, Refused> {
        if let Some(resource) = account.used_up(moment) {
            return Err(account.refuse(resource, moment));
        }
        let max = account.bounds.load().budget.max_concurrent;
        let running = account.running.fetch_add(1, Ordering::Relaxed) + 1;
        let place = Self { account, budgets: Arc::clone(budgets) };
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
        let moment = self.budgets.moment();
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

    pub(super) fn moment(&self) -> Moment {
        self.budgets.moment()
    }

    pub(super) fn charge(&self, used: Usage, moment: Moment) {
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
        for (resource, used, max) in spent(&budget, now) {
            self.account.warn(resource, used, max, moment);
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.account.running.fetch_sub(1, Ordering::Relaxed);
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Place").field("account", &self.account).finish_non_exhaustive()
    }
}

impl Meters {
    fn new(whose: Whose, name: &str) -> Self {
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

impl fmt::Debug for Meters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Meters")
    }
}
