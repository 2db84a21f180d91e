//! Table tests of `plan` and `node_plan`: every event in every state of an
//! area, and every state of a node for every state of the rows. Versions are
//! named by letters.

use super::super::error::AreaActionError;
use super::super::node_plan::{NodeStep, node_plan};
use super::super::plan::{AreaAction, AreaRowsChange, activation, plan, rollback, stop};
use super::super::state::{DesiredAndRunningArea, DesiredArea, RunningArea};
use super::{TrialRequest, canary};
use crate::registry::LostDependency;
use crate::testing::trial;
use assurance_core::domain::deployment::LivePointer;
use assurance_core::domain::time::Timestamp;
use assurance_core::domain::trial::{Trial, TrialMode, TrialState};

pub(super) fn rows(live: Option<&str>, previous: Option<&str>) -> DesiredArea {
    let pointer = LivePointer {
        area: "notes".into(),
        digest: live.map(Into::into),
        previous: previous.map(Into::into),
        revision: 7,
        changed_at: Timestamp(10),
        changed_by: "ada".into(),
    };
    DesiredArea { pointer: Some(pointer), trial: None }
}

fn with_trial(desired: DesiredArea, trial: Trial) -> DesiredArea {
    DesiredArea { trial: Some(trial), ..desired }
}

pub(super) fn runs(digest: &str) -> RunningArea {
    RunningArea { digest: Some(digest.into()), loaded: true, ..RunningArea::default() }
}

/// Returns the state of the area `notes` when a decision is planned.
pub(super) fn state(desired: DesiredArea, running: RunningArea) -> DesiredAndRunningArea {
    let (area, now, dependents) = ("notes".to_owned(), Timestamp(20), vec![]);
    DesiredAndRunningArea { area, now, desired, running, dependents }
}

fn table(columns: &[&str], lines: &[(&str, Vec<String>)]) -> String {
    let columns = columns.iter().map(ToString::to_string).collect();
    let lines = lines.iter().map(|(name, cells)| (*name, cells.clone()));
    let all: Vec<(&str, Vec<String>)> = [("state", columns)].into_iter().chain(lines).collect();
    let line = |(name, cells): &(&str, Vec<String>)| {
        let cells: String = cells.iter().map(|cell| format!(" | {cell:<17}")).collect();
        format!("{name:<19}{}", cells.trim_end())
    };
    all.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn variant(error: &AreaActionError) -> String {
    let text = format!("{error:?}").replace("Refused(", "");
    text.split([' ', '(']).next().unwrap_or_default().to_owned()
}

fn outcome(
    state: &DesiredAndRunningArea,
    event: Result<AreaAction<'_>, AreaActionError>,
) -> String {
    match event.and_then(|event| plan(state, &event)) {
        Ok(None) => "-".to_owned(),
        Ok(Some(AreaRowsChange::MoveLive { digest, left, .. })) => {
            format!("{}, {left}", digest.map_or("none".into(), |to| format!("live {to}")))
        }
        Ok(Some(AreaRowsChange::BeginTrial(trial))) => {
            format!("{} {} {}", trial.digest, trial.mode, trial.revision)
        }
        Ok(Some(AreaRowsChange::EndTrial { trial, end })) => format!("{} {end}", trial.digest),
        Err(error) => variant(&error),
    }
}

#[test]
fn what_a_decision_changes_depends_on_the_state_of_the_area() {
    let live = || rows(Some("a"), Some("b"));
    let ended = Trial { state: TrialState::Stopped, ..trial("c", TrialMode::Canary) };
    let states = [
        ("no rows", DesiredArea::default(), RunningArea::default()),
        ("a live, before it b", live(), runs("a")),
        ("and canary c", with_trial(live(), trial("c", TrialMode::Canary)), runs("a")),
        ("and shadow c", with_trial(live(), trial("c", TrialMode::Shadow)), runs("a")),
        ("and c stopped", with_trial(live(), ended), runs("a")),
        ("a live, b runs here", live(), runs("b")),
        ("a removed", rows(None, Some("a")), RunningArea::default()),
        ("a from the folder", DesiredArea::default(), runs("a")),
    ];
    let remove = |force| AreaAction::Remove { from_folder: None, force };
    let shadow = |digest: &str| AreaAction::BeginTrial {
        request: TrialRequest { mode: TrialMode::Shadow, ..canary(digest) },
        who: "ada",
    };
    let lines = states.map(|(name, desired, running)| {
        let state = state(desired, running);
        let lost = LostDependency { area: Some("index".into()), what: "reads it".into() };
        let needed = DesiredAndRunningArea { dependents: vec![lost], ..state.clone() };
        let cells = vec![
            outcome(&state, activation(&state, Some("a"), None)),
            outcome(&state, activation(&state, Some("c"), None)),
            outcome(&state, activation(&state, None, None)),
            outcome(&state, rollback(&state)),
            outcome(&state, Ok(remove(false))),
            outcome(&needed, Ok(remove(false))),
            outcome(&needed, Ok(remove(true))),
            outcome(&state, Ok(shadow("a"))),
            outcome(&state, Ok(shadow("c"))),
            outcome(&state, Ok(shadow("d"))),
            outcome(&state, stop(&state)),
        ];
        (name, cells)
    });
    let columns = [
        "activate a",
        "activate c",
        "activate",
        "roll back",
        "remove",
        "remove, needed",
        "remove, forced",
        "shadow a",
        "shadow c",
        "shadow d",
        "stop",
    ];
    insta::assert_snapshot!(table(&columns, &lines));
}

#[test]
fn a_rollback_of_a_newer_file_leads_to_the_version_in_the_row() {
    let back = |digest, written_at| {
        let file_written_at = Some(Timestamp(written_at));
        let running = RunningArea { file_written_at, ..runs(digest) };
        let state = state(rows(Some("a"), Some("b")), running);
        outcome(&state, rollback(&state))
    };
    assert_eq!(back("f", 11), "live a, withdrawn");
    assert_eq!(back("f", 10), "live b, withdrawn", "the file is not used");
    assert_eq!(back("a", 11), "live b, withdrawn", "the row has the version of the file");
}

#[test]
fn a_decision_about_a_state_that_has_changed_is_refused() {
    let live = || rows(Some("a"), Some("b"));
    let canary = state(with_trial(live(), trial("c", TrialMode::Canary)), runs("a"));
    let (alone, promoted) = (state(live(), runs("a")), state(rows(Some("c"), None), runs("c")));
    let again = Trial { revision: 5, ..trial("c", TrialMode::Canary) };
    let begun_again = state(with_trial(live(), again), runs("a"));

    let promotion = activation(&canary, None, None).unwrap();
    assert_eq!(outcome(&alone, Ok(promotion.clone())), "Overtaken");
    assert_eq!(outcome(&promoted, Ok(promotion)), "-");
    let end = stop(&canary).unwrap();
    assert_eq!(outcome(&alone, Ok(end.clone())), "Overtaken");
    assert_eq!(outcome(&begun_again, Ok(end)), "Overtaken");
    assert_eq!(outcome(&promoted, rollback(&alone)), "Overtaken");
}

fn steps(desired: &DesiredArea, running: &RunningArea) -> String {
    let name = |step| match step {
        NodeStep::EndTrial => "end trial".to_owned(),
        NodeStep::GoLive(row) => {
            row.digest.as_ref().map_or("remove".into(), |to| format!("live {to}"))
        }
        NodeStep::BeginTrial(trial) => format!("try {}", trial.digest),
    };
    let steps: Vec<String> = node_plan(desired, running).into_iter().map(name).collect();
    if steps.is_empty() { "-".to_owned() } else { steps.join(", ") }
}

#[test]
fn a_node_runs_what_the_rows_name() {
    let on_trial = |running, trial| RunningArea { trial: Some(trial), ..running };
    let file = |at| RunningArea { file_written_at: Some(Timestamp(at)), ..runs("f") };
    let failed = |digest: &str| Some(digest.to_owned());
    let running = [
        ("nothing", RunningArea::default()),
        ("a", runs("a")),
        ("a's manifest", RunningArea { loaded: false, ..runs("a") }),
        ("a, b failed", RunningArea { failed: failed("b"), ..runs("a") }),
        ("a, canary c", on_trial(runs("a"), trial("c", TrialMode::Canary))),
        ("a, shadow c", on_trial(runs("a"), trial("c", TrialMode::Shadow))),
        ("a, c failed", RunningArea { failed_trial: failed("c"), ..runs("a") }),
        ("an older file", file(9)),
        ("a newer file", file(11)),
    ];
    let a = || rows(Some("a"), None);
    let desired = [
        ("no rows", DesiredArea::default()),
        ("a", a()),
        ("b", rows(Some("b"), None)),
        ("none", rows(None, Some("a"))),
        ("a, canary c", with_trial(a(), trial("c", TrialMode::Canary))),
    ];
    let columns = desired.each_ref().map(|(name, _)| *name);
    let lines = running.map(|(name, running)| {
        (name, desired.iter().map(|(_, desired)| steps(desired, &running)).collect())
    });
    insta::assert_snapshot!(table(&columns, &lines));
}
