//! What a node does so that it runs what an area's rows name. Pure.

use super::state::{DesiredArea, RunningArea};
use assurance_core::domain::deployment::LivePointer;
use assurance_core::domain::trial::Trial;

/// One step from what runs here to what the rows name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum NodeStep<'a> {
    /// The trial that runs here ends.
    EndTrial,
    /// The version that the row names goes live here; if it names none, the
    /// area is removed.
    GoLive(&'a LivePointer),
    /// The trial of the row begins here.
    BeginTrial(&'a Trial),
}

/// The steps of one area, in the order in which they are made. A trial that
/// was replaced by another goes on until that one begins.
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

/// Not while a newer file is served, nor right after the version failed to
/// load.
fn is_behind(row: &LivePointer, running: &RunningArea) -> bool {
    let is_met = match row.digest.as_deref() {
        Some(digest) => running.serves(digest),
        None => running.digest.is_none(),
    };
    let is_newer_file = running.file_written_at.is_some_and(|at| at > row.changed_at);
    let has_failed = row.digest.is_some() && running.failed == row.digest;
    !is_met && !is_newer_file && !has_failed
}
