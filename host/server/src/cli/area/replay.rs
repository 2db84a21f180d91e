//! `assurance area replay`: replays a recorded call with a component, without a service.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use clap::Args;
use serde_json::{Value as Json, json};

use super::super::{CommonOptions, IncomparableInput, input, output};
use super::read_component;
use assurance_core::recordings::{CallRecording, RecordedOutcome};
use assurance_runtime::this_program;
use assurance_service::app::replay::{
    self, ReplayReport, ReplayVerdict, UnexpectedHostCall, ValueDifference,
};

#[derive(Debug, Args)]
pub(in crate::cli) struct AreaReplayArgs {
    /// Recording, from the folder `recordings` in the service's data folder.
    recording: PathBuf,
    /// Component to execute the call with.
    #[arg(long, value_name = "FILE")]
    component: PathBuf,
}

impl AreaReplayArgs {
    /// Runs the replay. Returns an error if the component behaves differently, and
    /// [`IncomparableInput`] if that cannot be decided.
    pub(super) async fn run(self, common: &CommonOptions) -> anyhow::Result<()> {
        let replayed = self.replay().await.map_err(|error| error.context(IncomparableInput))?;
        let told = serde_json::to_value(&replayed)?;
        if common.json {
            output::line(told);
        } else {
            print(&replayed);
        }
        match replayed.verdict {
            ReplayVerdict::Same => Ok(()),
            ReplayVerdict::Different => {
                anyhow::bail!("the component does not do what was recorded")
            }
            ReplayVerdict::Withheld => Err(anyhow::anyhow!(
                "the rest is not in the recording; it cannot be said whether it would be the same"
            )
            .context(IncomparableInput)),
        }
    }

    async fn replay(&self) -> anyhow::Result<ReplayReport> {
        let text = input::text(&self.recording)?;
        let at = || format!("{}", self.recording.display());
        let recording = CallRecording::read(&text).with_context(at)?;
        let component = Arc::from(read_component(&self.component)?);
        replay::replay(recording, component, this_program()).await
    }
}

fn print(replayed: &ReplayReport) {
    let verdict = json!(replayed.verdict);
    let verdict = verdict.as_str().unwrap_or_default();
    output::line(format_args!("verdict:        {verdict}"));
    output::line(format_args!("same component: {}", replayed.same_component));
    output::line(format_args!("host calls:     {}", replayed.host_calls));
    print_outcome("recorded:      ", &replayed.recorded);
    match &replayed.replayed {
        Some(_) if replayed.differences.is_empty() => {
            output::line("replayed:       as recorded");
        }
        Some(outcome) => print_outcome("replayed:      ", outcome),
        None => {}
    }
    if let Some(why) = &replayed.withheld {
        output::line(format_args!("withheld from call {} on: {why}", replayed.host_calls));
    }
    for UnexpectedHostCall { departure, differences } in &replayed.calls {
        output::line(format_args!("call {} is another:", departure.ordinal));
        output::line(format_args!("  recorded {}", json!(departure.recorded)));
        output::line(format_args!("  replayed {}", json!(departure.replayed)));
        differences.iter().for_each(print_difference);
    }
    replayed.differences.iter().for_each(print_difference);
}

/// Prints the outcome of a recorded or replayed call. A fault is printed as its cause, followed by
/// its stack frames, one per line.
fn print_outcome(label: &str, outcome: &RecordedOutcome) {
    let RecordedOutcome::Fault(fault) = outcome else {
        return output::line(format_args!("{label} {}", json!(outcome)));
    };
    let cause = fault.message.as_deref().unwrap_or(&fault.kind);
    output::line(format_args!("{label} FAULT {cause}"));
    for frame in &fault.frames {
        output::line(format_args!("    {frame}"));
    }
}

fn print_difference(difference: &ValueDifference) {
    let told = |value: &Option<Json>| value.as_ref().map_or("nothing".to_owned(), Json::to_string);
    let ValueDifference { pointer, recorded, replayed } = difference;
    output::line(format_args!(
        "  {pointer}: recorded {}, replayed {}",
        told(recorded),
        told(replayed)
    ));
}
