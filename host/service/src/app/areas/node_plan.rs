//! Decides the steps with which a node reaches the state that an area's rows
//! name. No I/O.

use super::state::{DesiredArea, RunningArea};
use assurance_core::domain::deployment::LivePointer;
use assurance_core::domain::trial::Trial;

/// One step with which a node comes to run what an area's rows name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum NodeStep<'a> {
    /// End the trial that runs on this node.
    EndTrial,
    /// Run the version that `live_areas` names; if it names none, remove the area.
    GoLive(&'a LivePointer),
    /// Begin the trial that the area's row in `area_trials` names.
    BeginTrial(&'a Trial),
}

/// Returns the steps with which this node reaches the state in an area's rows, in the order of
/// execution. A trial that another trial replaces runs until that one begins.
pub(super) fn node_plan<'a>(desired: &'a DesiredArea, running: &RunningArea) -> Vec<NodeStep<'a>> {
    let trial = desired.running_trial();
    let mut steps = Vec::new();
    if trial.is_none() && running.trial.is_some() {
        steps.push(NodeStep::EndTrial);
    }
    steps.extend(
        desired.pointer.as_ref().filter(|row| is_behind(row, running)).map(NodeStep::GoLive),
    );
    let is_due = |trial: &&Trial| {
        running.trial.as_ref() != Some(*trial)
            && running.failed_trial.as_deref() != Some(&trial.digest)
    };
    steps.extend(trial.filter(is_due).map(NodeStep::BeginTrial));
    steps
}

/// Returns whether the node should change to the version that the area's row names. False while a
/// newer file is served, and for a while after the version failed to load.
fn is_behind(row: &LivePointer, running: &RunningArea) -> bool {
    let is_met = match row.digest.as_deref() {
        Some(digest) => running.serves(digest),
        None => running.digest.is_none(),
    };
    let is_newer_file = running.newer_file(Some(row)).is_some();
    let has_failed = row.digest.is_some() && running.failed == row.digest;
    !is_met && !is_newer_file && !has_failed
}
