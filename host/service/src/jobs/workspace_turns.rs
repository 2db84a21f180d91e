//! Chooses the due jobs that get a lane's free slots. Workspaces take turns, and no workspace or
//! resource gets more than its share. Does no I/O.
//!
//! Fairness is per process: each process counts only the jobs that it runs itself.

use std::collections::btree_map::{BTreeMap, Entry};
use std::collections::{HashMap, HashSet, VecDeque};

use assurance_core::config::LaneConfig;
use assurance_core::domain::id::WorkspaceId;
use assurance_core::domain::job::JobFairnessKey;
use assurance_core::domain::time::Timestamp;
use assurance_store::jobs::PendingJob;

/// Chooses the jobs that get a lane's free slots: has the lane's running jobs by workspace, and its
/// known waiting jobs.
#[derive(Debug)]
pub(super) struct WorkspaceTurns {
    capacity: u32,
    per_workspace: u32,
    per_resource: u32,
    /// Number of running jobs of each flow (workspace and resource) that has some.
    running: BTreeMap<JobFairnessKey, u32>,
    /// Due times of the known waiting jobs of each flow (workspace and resource), sorted.
    waiting: BTreeMap<JobFairnessKey, VecDeque<Timestamp>>,
    /// Number of the turn in which each workspace last got a slot.
    last_turn: HashMap<WorkspaceId, u64>,
    turn: u64,
}

impl WorkspaceTurns {
    pub(super) fn new(share: LaneConfig) -> Self {
        Self {
            capacity: share.capacity,
            per_workspace: part(share.capacity, share.workspace_percent),
            per_resource: part(share.capacity, share.resource_percent),
            running: BTreeMap::new(),
            waiting: BTreeMap::new(),
            last_turn: HashMap::new(),
            turn: 0,
        }
    }

    /// Returns the number of free slots of the lane.
    pub(super) fn free(&self) -> u32 {
        self.capacity.saturating_sub(self.running.values().sum())
    }

    /// Forgets the lane's known waiting jobs, because a new scan replaces them.
    pub(super) fn forget_waiting(&mut self) {
        self.last_turn.retain(|workspace, _| {
            flows_of(&self.running, *workspace).next().is_some()
                || flows_of(&self.waiting, *workspace).next().is_some()
        });
        self.waiting.clear();
    }

    /// Adds due jobs to the known waiting jobs. Flows with known jobs are not changed, because the
    /// jobs may be the same.
    pub(super) fn note_waiting(&mut self, due: &[PendingJob]) {
        let known: HashSet<JobFairnessKey> = self.waiting.keys().copied().collect();
        for job in due.iter().filter(|job| !known.contains(&job.flow)) {
            self.waiting.entry(job.flow).or_default().push_back(job.available_at);
        }
    }

    /// Whether the lane has no known due job.
    pub(super) fn has_none_waiting(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Assigns the lane's free slots to waiting jobs: returns a number of jobs for each flow. They
    /// count as running until [`WorkspaceTurns::ended`].
    pub(super) fn choose(&mut self) -> Vec<(JobFairnessKey, u32)> {
        let mut chosen = BTreeMap::<JobFairnessKey, u32>::new();
        while self.free() > 0
            && let Some(flow) = self.next()
        {
            self.begin(flow);
            *chosen.entry(flow).or_default() += 1;
        }
        chosen.into_iter().collect()
    }

    /// Whether further jobs of a flow are known to wait.
    pub(super) fn has_more(&self, flow: &JobFairnessKey) -> bool {
        self.waiting.contains_key(flow)
    }

    /// Forgets the waiting jobs of a flow that had fewer jobs than were chosen.
    pub(super) fn forget_flow(&mut self, flow: JobFairnessKey) {
        self.waiting.remove(&flow);
    }

    /// Frees the slot of a job that ended or was not claimed.
    pub(super) fn ended(&mut self, flow: JobFairnessKey) {
        if let Entry::Occupied(mut jobs) = self.running.entry(flow) {
            *jobs.get_mut() -= 1;
            if *jobs.get() == 0 {
                jobs.remove();
            }
        }
    }

    /// Returns the flow whose job gets the next slot: of the workspace with the fewest slots, then
    /// of the one whose last turn is oldest; within it the flow whose job waits longest.
    fn next(&self) -> Option<JobFairnessKey> {
        let may_run = self.waiting.iter().filter(|(flow, _)| self.has_room(**flow));
        let turn = |(flow, due): &(&JobFairnessKey, &VecDeque<Timestamp>)| {
            let running = self.running_of(flow.workspace);
            let last = self.last_turn.get(&flow.workspace).copied().unwrap_or_default();
            (running, last, due.front().copied())
        };
        may_run.min_by_key(turn).map(|(flow, _)| *flow)
    }

    fn running_of(&self, workspace: WorkspaceId) -> u32 {
        flows_of(&self.running, workspace).sum()
    }

    fn has_room(&self, flow: JobFairnessKey) -> bool {
        let in_flow = self.running.get(&flow).copied().unwrap_or_default();
        self.running_of(flow.workspace) < self.per_workspace
            && (flow.resource.is_none() || in_flow < self.per_resource)
    }

    fn begin(&mut self, flow: JobFairnessKey) {
        *self.running.entry(flow).or_default() += 1;
        self.turn += 1;
        self.last_turn.insert(flow.workspace, self.turn);
        if let Some(due) = self.waiting.get_mut(&flow) {
            due.pop_front();
            if due.is_empty() {
                self.waiting.remove(&flow);
            }
        }
    }
}

/// Returns a percentage of a capacity, rounded up; at least one.
fn part(capacity: u32, percent: u32) -> u32 {
    let part = (u64::from(capacity) * u64::from(percent)).div_ceil(100);
    u32::try_from(part).unwrap_or(u32::MAX).max(1)
}

/// Returns the values of a workspace's flows. The map is sorted by workspace.
fn flows_of<V>(
    flows: &BTreeMap<JobFairnessKey, V>,
    workspace: WorkspaceId,
) -> impl Iterator<Item = &V> {
    let first = JobFairnessKey { workspace, resource: None };
    let flows = flows.range(first..).take_while(move |(flow, _)| flow.workspace == workspace);
    flows.map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use uuid::Uuid;

    use super::*;
    use assurance_core::config::LanesConfig;

    fn turns(capacity: u32, workspace_percent: u32, resource_percent: u32) -> WorkspaceTurns {
        let share = LanesConfig::default().delivery;
        WorkspaceTurns::new(LaneConfig { capacity, workspace_percent, resource_percent, ..share })
    }

    fn flow(workspace: u128, resource: u128) -> JobFairnessKey {
        let resource = Some(Uuid::from_u128(resource)).filter(|resource| !resource.is_nil());
        JobFairnessKey { workspace: WorkspaceId(Uuid::from_u128(workspace)), resource }
    }

    fn waiting(workspace: u128, resource: u128, jobs: i64) -> Vec<PendingJob> {
        let flow = flow(workspace, resource);
        (0..jobs).map(|at| PendingJob { flow, available_at: Timestamp(at) }).collect()
    }

    #[test]
    fn workspaces_take_turns_whoever_came_first() {
        let mut turns = turns(6, 100, 100);
        turns.note_waiting(&waiting(1, 0, 50));
        turns.note_waiting(&waiting(2, 0, 1));
        turns.note_waiting(&waiting(3, 5, 9));
        assert_eq!(turns.choose(), [(flow(1, 0), 3), (flow(2, 0), 1), (flow(3, 5), 2)]);
        assert_eq!(turns.free(), 0);
    }

    #[test]
    fn a_single_place_goes_round() {
        let mut turns = turns(1, 75, 100);
        turns.note_waiting(&waiting(1, 0, 50));
        turns.note_waiting(&waiting(2, 0, 50));
        let order: Vec<JobFairnessKey> = (0..4)
            .map(|_| {
                let chosen = turns.choose()[0].0;
                turns.ended(chosen);
                chosen
            })
            .collect();
        assert_eq!(order, [flow(1, 0), flow(2, 0), flow(1, 0), flow(2, 0)]);
    }

    #[test]
    fn a_workspace_alone_leaves_the_others_part_free() {
        let mut turns = turns(16, 75, 100);
        turns.note_waiting(&waiting(1, 0, 64));
        assert_eq!(turns.choose(), [(flow(1, 0), 12)]);
        turns.note_waiting(&waiting(2, 0, 64));
        assert_eq!(turns.choose(), [(flow(2, 0), 4)]);
    }

    #[test]
    fn a_resource_has_its_part_and_the_workspace_s_others_the_rest() {
        let mut turns = turns(16, 75, 25);
        turns.note_waiting(&waiting(1, 5, 64));
        turns.note_waiting(&waiting(1, 6, 3));
        assert_eq!(turns.choose(), [(flow(1, 5), 4), (flow(1, 6), 3)]);
    }

    #[test]
    fn small_capacities_are_never_divided_to_nothing() {
        assert_eq!((part(1, 1), part(2, 75), part(4, 75), part(0, 75)), (1, 2, 3, 1));
    }

    proptest! {
        #[test]
        fn no_limit_is_ever_exceeded_and_no_eligible_job_is_passed_over(
            capacity in 0_u32..20, of_workspace in 1_u32..=100, of_resource in 1_u32..=100,
            flows in proptest::collection::vec((1_u128..4, 0_u128..4, 0_i64..9), 0..12),
            ends in proptest::collection::vec(any::<bool>(), 0..12),
        ) {
            let mut turns = turns(capacity, of_workspace, of_resource);
            for (workspace, resource, jobs) in flows {
                turns.note_waiting(&waiting(workspace, resource, jobs));
            }
            let chosen = turns.choose();
            for (chosen, ends) in chosen.into_iter().zip(ends) {
                if ends {
                    turns.ended(chosen.0);
                }
            }
            turns.choose();
            prop_assert!(turns.running.values().sum::<u32>() <= capacity);
            for (flow, running) in &turns.running {
                prop_assert!(turns.running_of(flow.workspace) <= turns.per_workspace);
                prop_assert!(flow.resource.is_none() || *running <= turns.per_resource);
            }
            prop_assert!(turns.free() == 0 || turns.next().is_none());
        }
    }
}
