//! Pauses writes after a call held the write lock for too long. Further writing
//! calls of the same area and workspace are refused for a while, so that they
//! hold the lock for at most a tenth of the time. Each repetition doubles the
//! pause.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::{BudgetExceeded, BudgetOwnerKind, Resource};
use crate::domain::id::WorkspaceId;

/// Length of the first pause, as a multiple of the time that the write lock was
/// held.
const PAUSE_FACTOR: u32 = 9;
/// Longest pause of writing calls.
const LONGEST_PAUSE: Duration = Duration::from_secs(120);
/// Time since the end of a pause after which the next pause of the same area
/// and workspace starts from the first length again.
const FORGET: Duration = Duration::from_secs(600);

/// Pauses of writing calls on this node, by area and workspace.
#[derive(Debug, Default)]
pub struct WritePauses(Mutex<HashMap<(String, WorkspaceId), WritePause>>);

#[derive(Clone, Copy, Debug)]
struct WritePause {
    until: Instant,
    times: u32,
}

impl WritePauses {
    /// Records that a call was ended because it held the write lock for the
    /// maximum time; starts or extends the pause.
    pub fn begin_pause(&self, area: &str, workspace: WorkspaceId, held: Duration) {
        let now = Instant::now();
        let mut paused = self.0.lock();
        paused.retain(|_, paused| now.saturating_duration_since(paused.until) < FORGET);
        let key = (area.to_owned(), workspace);
        let times = paused.get(&key).map_or(0, |before| before.times);
        let pause = (held * PAUSE_FACTOR).saturating_mul(1 << times.min(16)).min(LONGEST_PAUSE);
        paused.insert(key, WritePause { until: now + pause, times: times + 1 });
    }

    /// Checks that the writing calls of this area and workspace are not paused.
    ///
    /// # Errors
    /// The writing calls of this workspace and area are paused.
    pub fn check(&self, area: &str, workspace: WorkspaceId) -> Result<(), BudgetExceeded> {
        let paused = self.0.lock();
        if paused.is_empty() {
            return Ok(());
        }
        let until = paused.get(&(area.to_owned(), workspace)).map(|paused| paused.until);
        let left =
            until.map_or(Duration::ZERO, |until| until.saturating_duration_since(Instant::now()));
        if left.is_zero() {
            return Ok(());
        }
        Err(BudgetExceeded {
            whose: BudgetOwnerKind::Workspace,
            name: workspace.to_string(),
            resource: Resource::Turn,
            retry_after_s: left.as_secs() + 1,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workspace_that_held_the_turn_too_long_waits_in_that_area_only() {
        let (turns, workspace) = (WritePauses::default(), WorkspaceId::new());
        turns.begin_pause("dependencies", workspace, Duration::from_millis(250));
        let refused = turns.check("dependencies", workspace).unwrap_err();
        assert_eq!(refused.retry_after_s, 3);
        turns.check("support", workspace).unwrap();
        turns.check("dependencies", WorkspaceId::new()).unwrap();
    }

    #[test]
    fn the_pause_doubles_each_time() {
        let (turns, workspace) = (WritePauses::default(), WorkspaceId::new());
        let pauses = [3, 5, 9, 18, 36].map(|_: u64| {
            turns.begin_pause("dependencies", workspace, Duration::from_millis(250));
            turns.check("dependencies", workspace).unwrap_err().retry_after_s
        });
        assert_eq!(pauses, [3, 5, 9, 18, 36]);
    }

    #[test]
    fn the_pause_is_bounded_and_ends() {
        let (turns, workspace) = (WritePauses::default(), WorkspaceId::new());
        turns.begin_pause("long", workspace, Duration::from_secs(600));
        let seconds =
            |turns: &WritePauses| turns.check("long", workspace).unwrap_err().retry_after_s;
        assert!(seconds(&turns) <= 121, "{}", seconds(&turns));
        turns.begin_pause("short", workspace, Duration::ZERO);
        turns.check("short", workspace).unwrap();
    }
}
