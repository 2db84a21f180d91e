//! What calls use together, by area and by workspace, on this node: counted,
//! warned of, and refused where an operator has set a bound.
//!
//! A call enters the accounts of its area and of its workspace before it runs
//! and is charged when it has ended; so a budget of a minute is overdrawn by
//! no more than the calls that ran when it was used up.

mod account;
mod turns;
mod window;

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use dashmap::DashMap;

use self::account::{Account, Place};
use crate::config;
use crate::domain::id::WorkspaceId;

pub use account::{Standing, Whose};
pub use turns::Turns;
pub use window::{Resource, Usage};

/// What the windows of the accounts are long.
const MINUTE: Duration = Duration::from_secs(60);

/// A budget is used up.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{whose} {name} has used its budget of {resource} on this node")]
pub struct Refused {
    /// The area's or the workspace's.
    pub whose: Whose,
    /// Which one.
    pub name: String,
    /// Of what.
    pub resource: Resource,
    /// When there may be some again, in seconds.
    pub retry_after_s: u64,
}

/// The accounts of this node.
pub struct Budgets {
    born: Instant,
    settings: ArcSwap<config::Budgets>,
    areas: DashMap<String, Arc<Account>>,
    workspaces: DashMap<WorkspaceId, Arc<Account>>,
    turns: Turns,
}

/// A moment, as the windows count it.
#[derive(Clone, Copy, Debug)]
struct Moment {
    minute: u64,
    left_s: u64,
}

/// A call that has been let in. It has left when this is dropped.
#[derive(Debug)]
pub struct Entry {
    places: [Place; 2],
}

impl Budgets {
    /// Accounts with nothing in them.
    #[must_use]
    pub fn new(settings: config::Budgets) -> Self {
        let settings = ArcSwap::from_pointee(settings);
        let (areas, workspaces) = (DashMap::new(), DashMap::new());
        Self { born: Instant::now(), settings, areas, workspaces, turns: Turns::default() }
    }

    /// Sets other bounds. What was used stays used.
    pub fn set(&self, settings: config::Budgets) {
        for account in &self.areas {
            account.set(&settings, of_area(&settings, account.key()));
        }
        for account in &self.workspaces {
            account.set(&settings, of_workspace(&settings, *account.key()));
        }
        self.settings.store(Arc::new(settings));
    }

    /// Who held the turn to write for too long.
    #[must_use]
    pub fn turns(&self) -> &Turns {
        &self.turns
    }

    /// Lets a call in.
    ///
    /// # Errors
    /// Its workspace, or its area, has used up what it may.
    pub fn enter(self: &Arc<Self>, area: &str, workspace: WorkspaceId) -> Result<Entry, Refused> {
        let moment = self.moment();
        let of_workspace = Place::take(self.workspace(workspace), self, moment)?;
        let of_area = Place::take(self.area(area), self, moment)?;
        Ok(Entry { places: [of_workspace, of_area] })
    }

    /// Where the areas stand, by name.
    #[must_use]
    pub fn areas(&self) -> Vec<Standing> {
        let moment = self.moment();
        let mut areas: Vec<Standing> = self.areas.iter().map(|one| one.standing(moment)).collect();
        areas.sort_by(|one, other| one.name.cmp(&other.name));
        areas
    }

    /// Where the workspaces stand that have used most, in this minute and the
    /// last.
    #[must_use]
    pub fn busiest_workspaces(&self, most: usize) -> Vec<Standing> {
        let moment = self.moment();
        let standings = self.workspaces.iter().map(|one| one.standing(moment));
        let mut standings: Vec<Standing> = standings.collect();
        standings
            .sort_by_key(|one| std::cmp::Reverse(one.this_minute.cpu_us + one.last_minute.cpu_us));
        standings.truncate(most);
        standings
    }

    /// Forgets workspaces that have not called for a while.
    pub fn forget_idle(&self) {
        let moment = self.moment();
        self.workspaces.retain(|_, account| !account.is_idle(moment));
    }

    fn area(&self, name: &str) -> Arc<Account> {
        if let Some(account) = self.areas.get(name) {
            return Arc::clone(&account);
        }
        let account = self.areas.entry(name.to_owned()).or_insert_with(|| {
            let settings = self.settings.load();
            let budget = of_area(&settings, name);
            Arc::new(Account::new(Whose::Area, name.to_owned(), &settings, budget, true))
        });
        Arc::clone(&account)
    }

    fn workspace(&self, id: WorkspaceId) -> Arc<Account> {
        if let Some(account) = self.workspaces.get(&id) {
            return Arc::clone(&account);
        }
        let account = self.workspaces.entry(id).or_insert_with(|| {
            let settings = self.settings.load();
            let (budget, named) = (of_workspace(&settings, id), &settings.workspaces);
            let metered = named.contains_key(&id.0);
            Arc::new(Account::new(Whose::Workspace, id.to_string(), &settings, budget, metered))
        });
        Arc::clone(&account)
    }

    fn moment(&self) -> Moment {
        let seconds = self.born.elapsed().as_secs();
        let minute = MINUTE.as_secs();
        Moment { minute: seconds / minute, left_s: minute - seconds % minute }
    }
}

impl Entry {
    /// Takes memory for the call, if its area and its workspace may have it.
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

    /// Gives it back.
    pub fn give_memory_back(&self, bytes: usize) {
        for place in &self.places {
            place.give_memory_back(bytes);
        }
    }

    /// Notes how much memory the call had at its most, counted or not.
    pub fn note_memory(&self, bytes: usize) {
        for place in &self.places {
            place.note_memory(bytes);
        }
    }

    /// Charges what the call has used.
    pub fn charge(&self, used: Usage) {
        let [first, _] = &self.places;
        let moment = first.moment();
        for place in &self.places {
            place.charge(used, moment);
        }
    }
}

impl fmt::Debug for Budgets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Budgets").field("settings", &self.settings).finish_non_exhaustive()
    }
}

fn of_area(settings: &config::Budgets, area: &str) -> config::Budget {
    settings.areas.get(area).copied().unwrap_or_default().or(settings.each_area)
}

fn of_workspace(settings: &config::Budgets, id: WorkspaceId) -> config::Budget {
    settings.workspaces.get(&id.0).copied().unwrap_or_default().or(settings.each_workspace)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Budget;

    fn each_workspace(budget: Budget) -> config::Budgets {
        config::Budgets { each_workspace: budget, ..config::Budgets::default() }
    }

    fn used(documents: u64) -> Usage {
        Usage { documents, calls: 1, ..Usage::default() }
    }

    #[test]
    fn who_has_used_up_a_minute_is_refused_and_nobody_else() {
        let budget = Budget { documents_per_minute: Some(10), ..Budget::default() };
        let budgets = Arc::new(Budgets::new(each_workspace(budget)));
        let (busy, other) = (WorkspaceId::new(), WorkspaceId::new());
        budgets.enter("notes", busy).unwrap().charge(used(9));
        budgets.enter("notes", busy).unwrap().charge(used(9));
        let refused = budgets.enter("notes", busy).unwrap_err();
        assert_eq!((refused.whose, refused.resource), (Whose::Workspace, Resource::Documents));
        assert!((1..=60).contains(&refused.retry_after_s));
        assert!(budgets.enter("notes", other).is_ok());
        assert_eq!(budgets.busiest_workspaces(10).len(), 2);
        budgets.set(config::Budgets::default());
        assert!(budgets.enter("notes", busy).is_ok(), "bounds change while the node runs");
    }

    #[test]
    fn calls_at_a_time_are_let_in_again_as_others_leave() {
        let one = Budget { max_concurrent: Some(1), ..Budget::default() };
        let areas = [("notes".to_owned(), one)].into();
        let settings = config::Budgets { areas, ..config::Budgets::default() };
        let budgets = Arc::new(Budgets::new(settings));
        let workspace = WorkspaceId::new();
        let first = budgets.enter("notes", workspace).unwrap();
        let refused = budgets.enter("notes", workspace).unwrap_err();
        assert_eq!((refused.whose, refused.resource), (Whose::Area, Resource::Calls));
        assert!(budgets.enter("support", workspace).is_ok());
        drop(first);
        assert!(budgets.enter("notes", workspace).is_ok());
        assert!(budgets.areas().iter().all(|area| area.running == 0), "who is refused has left");
    }

    #[test]
    fn memory_is_taken_from_both_accounts_or_from_neither() {
        let some = |bytes| Budget { max_memory_bytes: Some(bytes), ..Budget::default() };
        let areas = [("notes".to_owned(), some(10))].into();
        let settings = config::Budgets { areas, ..each_workspace(some(100)) };
        let budgets = Arc::new(Budgets::new(settings));
        let call = budgets.enter("notes", WorkspaceId::new()).unwrap();
        assert!(call.take_memory(8));
        assert!(!call.take_memory(8));
        let held = |standings: Vec<Standing>| standings[0].memory_bytes;
        assert_eq!((held(budgets.areas()), held(budgets.busiest_workspaces(1))), (8, 8));
        call.give_memory_back(8);
        assert!(call.take_memory(10));
    }

    #[test]
    fn the_largest_call_is_remembered() {
        let budgets = Arc::new(Budgets::new(config::Budgets::default()));
        for bytes in [3, 7, 5] {
            budgets.enter("notes", WorkspaceId::new()).unwrap().note_memory(bytes);
        }
        assert_eq!(budgets.areas()[0].call_memory_peak_bytes, 7);
    }
}
