//! Budgets: limits for all calls of an area, or of a workspace, together on this
//! node.
//!
//! A call is added to the accounts of its area and its workspace before it
//! runs, and is charged when it ends. A budget per minute can therefore be
//! exceeded by the calls that were running when it was exhausted.

mod account;
mod window;
mod write_pauses;

use std::sync::Arc;
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use dashmap::DashMap;

use self::account::{BudgetAccount, BudgetAccountPermit};
use crate::config;
use crate::domain::id::WorkspaceId;

pub use account::{BudgetOwnerKind, BudgetStatus};
pub use window::{Resource, Usage};
pub use write_pauses::WritePauses;

/// Length of the period that budgets per minute are counted in.
const MINUTE: Duration = Duration::from_secs(60);

/// Refusal of a call: the budget of its area or workspace is exhausted.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{whose} {name} has used its budget of {resource} on this node")]
pub struct BudgetExceeded {
    /// Whether the budget belongs to an area or a workspace.
    pub whose: BudgetOwnerKind,
    /// The area's name or the workspace's id.
    pub name: String,
    /// The resource whose budget is exhausted.
    pub resource: Resource,
    /// Seconds after which a retry can succeed.
    pub retry_after_s: u64,
}

/// Usage and limits of all areas and workspaces on this node.
#[derive(Debug)]
pub struct Budgets {
    born: Instant,
    settings: ArcSwap<config::BudgetsConfig>,
    areas: DashMap<String, Arc<BudgetAccount>>,
    workspaces: DashMap<WorkspaceId, Arc<BudgetAccount>>,
    turns: WritePauses,
}

/// A point in time: the number of the minute since the node started, and the
/// seconds that are left in this minute.
#[derive(Clone, Copy, Debug)]
struct WindowTime {
    minute: u64,
    left_s: u64,
}

/// Permission for one call to run, counted in the accounts of its area and
/// workspace until the permit is dropped.
#[derive(Debug)]
pub struct BudgetPermit {
    places: [BudgetAccountPermit; 2],
}

impl Budgets {
    /// Creates an empty set of accounts. The first call of an area or workspace
    /// adds its account.
    #[must_use]
    pub fn new(settings: config::BudgetsConfig) -> Self {
        let settings = ArcSwap::from_pointee(settings);
        let (areas, workspaces) = (DashMap::new(), DashMap::new());
        Self { born: Instant::now(), settings, areas, workspaces, turns: WritePauses::default() }
    }

    /// Replaces the limits of all areas and workspaces. Usage so far is kept.
    pub fn set(&self, settings: config::BudgetsConfig) {
        for account in &self.areas {
            account.set(&settings, of_area(&settings, account.key()));
        }
        for account in &self.workspaces {
            account.set(&settings, of_workspace(&settings, *account.key()));
        }
        self.settings.store(Arc::new(settings));
    }

    /// Returns the write pauses of areas and workspaces whose calls held the
    /// write lock for too long.
    #[must_use]
    pub fn write_pauses(&self) -> &WritePauses {
        &self.turns
    }

    /// Admits one call and counts it in the accounts of its area and workspace.
    ///
    /// # Errors
    /// The budget of its workspace or of its area is exhausted.
    pub fn enter(
        &self,
        area: &str,
        workspace: WorkspaceId,
    ) -> Result<BudgetPermit, BudgetExceeded> {
        let of_workspace = BudgetAccountPermit::take(self.workspace(workspace))?;
        let of_area = BudgetAccountPermit::take(self.area(area))?;
        Ok(BudgetPermit { places: [of_workspace, of_area] })
    }

    /// Returns the limits and the usage of all areas, ordered by name.
    #[must_use]
    pub fn areas(&self) -> Vec<BudgetStatus> {
        let mut areas: Vec<BudgetStatus> = self.areas.iter().map(|one| one.status()).collect();
        areas.sort_by(|one, other| one.name.cmp(&other.name));
        areas
    }

    /// Returns at most `most` workspaces: those that used the most processor
    /// time in the current and the previous minute, in descending order.
    #[must_use]
    pub fn busiest_workspaces(&self, most: usize) -> Vec<BudgetStatus> {
        let standings = self.workspaces.iter().map(|one| one.status());
        let mut standings: Vec<BudgetStatus> = standings.collect();
        standings
            .sort_by_key(|one| std::cmp::Reverse(one.this_minute.cpu_us + one.last_minute.cpu_us));
        standings.truncate(most);
        standings
    }

    /// Deletes the accounts of workspaces without running calls and without
    /// usage in the current and the previous minute.
    pub fn forget_idle(&self) {
        self.workspaces.retain(|_, account| !account.is_idle());
    }

    fn area(&self, name: &str) -> Arc<BudgetAccount> {
        if let Some(account) = self.areas.get(name) {
            return Arc::clone(&account);
        }
        let account = self.areas.entry(name.to_owned()).or_insert_with(|| {
            let settings = self.settings.load();
            let budget = of_area(&settings, name);
            Arc::new(BudgetAccount::new(
                self.born,
                BudgetOwnerKind::Area,
                name.to_owned(),
                &settings,
                budget,
                true,
            ))
        });
        Arc::clone(&account)
    }

    fn workspace(&self, id: WorkspaceId) -> Arc<BudgetAccount> {
        if let Some(account) = self.workspaces.get(&id) {
            return Arc::clone(&account);
        }
        let account = self.workspaces.entry(id).or_insert_with(|| {
            let settings = self.settings.load();
            let (budget, named) = (of_workspace(&settings, id), &settings.workspaces);
            let metered = named.contains_key(&id.0);
            Arc::new(BudgetAccount::new(
                self.born,
                BudgetOwnerKind::Workspace,
                id.to_string(),
                &settings,
                budget,
                metered,
            ))
        });
        Arc::clone(&account)
    }
}

impl WindowTime {
    /// Returns the current time of a node that started at `born`.
    fn since(born: Instant) -> Self {
        let (seconds, minute) = (born.elapsed().as_secs(), MINUTE.as_secs());
        Self { minute: seconds / minute, left_s: minute - seconds % minute }
    }
}

impl BudgetPermit {
    /// Reserves memory for the call. Returns false if the budget of its area or
    /// workspace does not allow it.
    #[must_use]
    pub fn take_memory(&self, bytes: usize) -> bool {
        let [first, second] = &self.places;
        if !first.take_memory(bytes) {
            return false;
        }
        let taken = second.take_memory(bytes);
        if !taken {
            first.give_memory_back(bytes);
        }
        taken
    }

    /// Releases memory that [`BudgetPermit::take_memory`] reserved.
    pub fn give_memory_back(&self, bytes: usize) {
        for place in &self.places {
            place.give_memory_back(bytes);
        }
    }

    /// Records the peak memory of the call in bytes, for [`BudgetStatus`].
    pub fn note_memory(&self, bytes: usize) {
        for place in &self.places {
            place.note_memory(bytes);
        }
    }

    /// Adds the resources that the call used to the accounts of its area and
    /// workspace.
    pub fn charge(&self, used: Usage) {
        for place in &self.places {
            place.charge(used);
        }
    }
}

fn of_area(settings: &config::BudgetsConfig, area: &str) -> config::BudgetConfig {
    settings.areas.get(area).copied().unwrap_or_default().or(settings.each_area)
}

fn of_workspace(settings: &config::BudgetsConfig, id: WorkspaceId) -> config::BudgetConfig {
    settings.workspaces.get(&id.0).copied().unwrap_or_default().or(settings.each_workspace)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::BudgetConfig;

    fn each_workspace(budget: BudgetConfig) -> config::BudgetsConfig {
        config::BudgetsConfig { each_workspace: budget, ..config::BudgetsConfig::default() }
    }

    fn used(documents: u64) -> Usage {
        Usage { documents, calls: 1, ..Usage::default() }
    }

    #[test]
    fn who_has_used_up_a_minute_is_refused_and_nobody_else() {
        let budget = BudgetConfig { documents_per_minute: Some(10), ..BudgetConfig::default() };
        let budgets = Arc::new(Budgets::new(each_workspace(budget)));
        let (busy, other) = (WorkspaceId::new(), WorkspaceId::new());
        budgets.enter("notes", busy).unwrap().charge(used(9));
        budgets.enter("notes", busy).unwrap().charge(used(9));
        let refused = budgets.enter("notes", busy).unwrap_err();
        assert_eq!(
            (refused.whose, refused.resource),
            (BudgetOwnerKind::Workspace, Resource::Documents)
        );
        assert!((1..=60).contains(&refused.retry_after_s));
        assert!(budgets.enter("notes", other).is_ok());
        assert_eq!(budgets.busiest_workspaces(10).len(), 2);
        budgets.set(config::BudgetsConfig::default());
        assert!(budgets.enter("notes", busy).is_ok(), "bounds change while the node runs");
    }

    #[test]
    fn calls_at_a_time_are_let_in_again_as_others_leave() {
        let one = BudgetConfig { max_concurrent: Some(1), ..BudgetConfig::default() };
        let areas = [("notes".to_owned(), one)].into();
        let settings = config::BudgetsConfig { areas, ..config::BudgetsConfig::default() };
        let budgets = Arc::new(Budgets::new(settings));
        let workspace = WorkspaceId::new();
        let first = budgets.enter("notes", workspace).unwrap();
        let refused = budgets.enter("notes", workspace).unwrap_err();
        assert_eq!((refused.whose, refused.resource), (BudgetOwnerKind::Area, Resource::Calls));
        assert!(budgets.enter("support", workspace).is_ok());
        drop(first);
        assert!(budgets.enter("notes", workspace).is_ok());
        assert!(budgets.areas().iter().all(|area| area.running == 0), "who is refused has left");
    }

    #[test]
    fn memory_is_taken_from_both_accounts_or_from_neither() {
        let some =
            |bytes| BudgetConfig { max_memory_bytes: Some(bytes), ..BudgetConfig::default() };
        let areas = [("notes".to_owned(), some(10))].into();
        let settings = config::BudgetsConfig { areas, ..each_workspace(some(100)) };
        let budgets = Arc::new(Budgets::new(settings));
        let call = budgets.enter("notes", WorkspaceId::new()).unwrap();
        assert!(call.take_memory(8));
        assert!(!call.take_memory(8));
        let held = |standings: Vec<BudgetStatus>| standings[0].memory_bytes;
        assert_eq!((held(budgets.areas()), held(budgets.busiest_workspaces(1))), (8, 8));
        call.give_memory_back(8);
        assert!(call.take_memory(10));
    }

    #[test]
    fn the_largest_call_is_remembered() {
        let budgets = Arc::new(Budgets::new(config::BudgetsConfig::default()));
        for bytes in [3, 7, 5] {
            budgets.enter("notes", WorkspaceId::new()).unwrap().note_memory(bytes);
        }
        assert_eq!(budgets.areas()[0].call_memory_peak_bytes, 7);
    }
}
