//! Workspaces whose calls of an area kept others from writing for too long.
//! Their further writing calls of that area are refused for a while, so that
//! they hold the turn to write for a tenth of the time at most, and for less
//! the more often that happens.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::{Refused, Resource, Whose};
use crate::domain::id::WorkspaceId;

/// How many times as long as the turn was held nobody is let in, the first time.
const PAUSE_FACTOR: u32 = 9;
/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(120);
/// The pause doubles each time, until none was needed for so long.
const FORGET: Duration = Duration::from_secs(600);

/// Who is not let in until when, on this node.
#[derive(Debug, Default)]
pub struct Turns(Mutex<HashMap<(String, WorkspaceId), Paused>>);

#[derive(Clone, Copy, Debug)]
struct Paused {
    until: Instant,
    times: u32,
}

impl Turns {
    /// A call held the turn for as long as it may, and was ended.
    pub fn exceeded(&self, area: &str, workspace: WorkspaceId, held: Duration) {
        let now = Instant::now();
        let mut paused = self.0.lock();
        paused.retain(|_, paused| now.saturating_duration_since(paused.until) < FORGET);
        let key = (area.to_owned(), workspace);
        let times = paused.get(&key).map_or(0, |before| before.times);
        let pause = (held * PAUSE_FACTOR).saturating_mul(1 << times.min(16)).min(LONGEST_PAUSE);
        paused.insert(key, Paused { until: now + pause, times: times + 1 });
    }

    /// Lets a call in that may write.
    ///
    /// # Errors
    /// The workspace's calls of this area are paused.
    pub fn check(&self, area: &str, workspace: WorkspaceId) -> Result<(), Refused> {
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
        Err(Refused {
            whose: Whose::Workspace,
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
        let (turns, workspace) = (Turns::default(), WorkspaceId::new());
        turns.exceeded("dependencies", workspace, Duration::from_millis(250));
        let refused = turns.check("dependencies", workspace).unwrap_err();
        assert_eq!(refused.retry_after_s, 3);
        turns.check("support", workspace).unwrap();
        turns.check("dependencies", WorkspaceId::new()).unwrap();
    }

    #[test]
    fn the_pause_doubles_each_time() {
        let (turns, workspace) = (Turns::default(), WorkspaceId::new());
        let pauses = [3, 5, 9, 18, 36].map(|_: u64| {
            turns.exceeded("dependencies", workspace, Duration::from_millis(250));
            turns.check("dependencies", workspace).unwrap_err().retry_after_s
        });
        assert_eq!(pauses, [3, 5, 9, 18, 36]);
    }

    #[test]
    fn the_pause_is_bounded_and_ends() {
        let (turns, workspace) = (Turns::default(), WorkspaceId::new());
        turns.exceeded("long", workspace, Duration::from_secs(600));
        let seconds = |turns: &Turns| turns.check("long", workspace).unwrap_err().retry_after_s;
        assert!(seconds(&turns) <= 121, "{}", seconds(&turns));
        turns.exceeded("short", workspace, Duration::ZERO);
        turns.check("short", workspace).unwrap();
    }
}
