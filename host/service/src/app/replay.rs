//! Replays a recorded call with a component. The component runs offline in the normal sandbox and
//! gets the responses to its host calls from the recording.

use std::path::PathBuf;
use std::sync::Arc;

use serde::Serialize;
use serde_json::{Value as Json, json};
use sha2::{Digest as _, Sha256};

use super::call;
use crate::registry::{AreaVersion, Registry, differences};
use assurance_contract::ContractLimits;
use assurance_core::recordings::{
    CallRecording, ExportKind, HostCallMismatch, Player, RecordedOutcome, Redaction,
    ReplayStopReason,
};
use assurance_runtime::{self as runtime, LoadedArea, Runtime, Settings};
use assurance_work::{LimitsByArea, request_outcome, run_outcome};

/// Result of replaying a recorded call with a component.
#[derive(Clone, Debug, Serialize)]
pub struct ReplayReport {
    /// Whether the replay matches the recording.
    pub verdict: ReplayVerdict,
    /// Whether the replayed component is the recorded one, by digest.
    pub same_component: bool,
    /// Number of host calls of the replay that match the recording.
    pub host_calls: usize,
    /// Why the recording is incomplete; `None` if it is complete.
    pub withheld: Option<String>,
    /// Host calls of the replay that differ from the recording.
    pub calls: Vec<UnexpectedHostCall>,
    /// Differences between the recorded and the replayed outcome of the call.
    pub differences: Vec<ValueDifference>,
    /// How the recorded call ended.
    pub recorded: RecordedOutcome,
    /// How the replayed call ended; `None` if the recording had no response for a host call.
    pub replayed: Option<RecordedOutcome>,
}

/// Whether a replay matches its recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplayVerdict {
    /// Same host calls in the same order, and the same outcome.
    Same,
    /// The component made another host call, or the call ended otherwise.
    Different,
    /// No difference up to the point where the recording is incomplete.
    Withheld,
}

/// A host call of a replay that differs from the recorded one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct UnexpectedHostCall {
    /// The recorded and the replayed host call.
    #[serde(flatten)]
    pub departure: HostCallMismatch,
    /// Differences between the recorded and the replayed host call.
    pub differences: Vec<ValueDifference>,
}

/// One position at which a recorded and a replayed JSON value differ.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ValueDifference {
    /// JSON Pointer of the position in the compared values.
    pub pointer: String,
    /// Recorded value at the position; `None` if there was none.
    pub recorded: Option<Json>,
    /// Replayed value at the position; `None` if there was none.
    pub replayed: Option<Json>,
}

/// Replays a recorded call with a component, which a child process of
/// `compiler` compiles.
///
/// # Errors
/// The recording has no input, or the component cannot be loaded.
pub async fn replay(
    recording: CallRecording,
    component: Arc<[u8]>,
    compiler: Option<PathBuf>,
) -> anyhow::Result<ReplayReport> {
    if recording.input.is_none() {
        let why =
            recording.withheld.as_ref().map_or("it was not recorded", |held| held.why.as_str());
        anyhow::bail!(
            "this recording has no input to replay, because {why}; it only shows which host \
             functions were called, and how the call ended"
        );
    }
    let loaded = load(&recording, component, compiler).await?;
    let same_component = loaded.digest == recording.about.digest;
    let registry = Registry::new(vec![], ContractLimits::default(), LimitsByArea::default());
    let version = registry.compile(loaded)?;
    let player = Arc::new(Player::new(recording));
    let outcome = run(&version, &player).await?;
    Ok(compare(&player, outcome, same_component))
}

async fn load(
    recording: &CallRecording,
    component: Arc<[u8]>,
    compiler: Option<PathBuf>,
) -> anyhow::Result<LoadedArea> {
    let settings = Settings { compiler, ..Settings::of_recording(recording) };
    let runtime = Runtime::offline(settings)?;
    Ok(runtime.load(component, |_| runtime::every_capability()).await?)
}

/// Replays the recorded call. Returns `None` if the recording had no response for a host call, or
/// if the area did not cause the call's end.
async fn run(
    version: &AreaVersion,
    player: &Arc<Player>,
) -> anyhow::Result<Option<RecordedOutcome>> {
    let about = &player.recording().about;
    let outcome = match about.export {
        ExportKind::Handle => {
            let mut routes = version.routes.iter();
            let route = routes.find(|one| one.route.operation_id == about.operation);
            let Some(route) = route else {
                let gone = json!({"status": "the operation is gone"});
                return Ok(Some(RecordedOutcome::Answered(Some(gone))));
            };
            let answer = version.code.replay_request(player).await;
            let answer = answer.and_then(|answer| call::checked(about.checked, route, answer));
            let outcome = request_outcome(route.route.success_status, &answer);
            outcome.ok_or_else(|| answer.err())
        }
        ExportKind::Run => {
            let end = version.code.replay_run(player).await;
            run_outcome(&end).ok_or_else(|| end.err())
        }
    };
    match outcome {
        Ok(RecordedOutcome::Fault(mut fault)) => {
            fault.frames = player.frames();
            Ok(Some(RecordedOutcome::Fault(fault)))
        }
        Ok(answered) => Ok(Some(answered)),
        Err(_) if player.stop_reason().is_some() => Ok(None),
        Err(Some(error)) => Err(error.into()),
        Err(None) => Ok(None),
    }
}

fn compare(
    player: &Player,
    replayed: Option<RecordedOutcome>,
    same_component: bool,
) -> ReplayReport {
    let recording = player.recording();
    let recorded = recording.outcome.clone();
    let calls: Vec<_> = player.mismatches().into_iter().map(other_call).collect();
    let silence = player.stop_reason();
    // Without a recorded response the guest's result is meaningless.
    let replayed = replayed.filter(|_| silence.is_none());
    let differences = replayed
        .as_ref()
        .map(|replayed| between(&compared_outcome(&recorded), &compared_outcome(replayed)))
        .unwrap_or_default();
    let verdict = match silence {
        _ if !calls.is_empty() || !differences.is_empty() => ReplayVerdict::Different,
        Some(ReplayStopReason::Withheld) => ReplayVerdict::Withheld,
        _ => ReplayVerdict::Same,
    };
    let withheld =
        recording.withheld.as_ref().filter(|_| silence == Some(ReplayStopReason::Withheld));
    ReplayReport {
        verdict,
        same_component,
        host_calls: player.host_call_count(),
        withheld: withheld.map(|Redaction { why, .. }| why.clone()),
        calls,
        differences,
        recorded,
        replayed,
    }
}

fn other_call(departure: HostCallMismatch) -> UnexpectedHostCall {
    let value = |said| serde_json::to_value(said).unwrap_or_default();
    let (recorded, replayed) = (value(&departure.recorded), value(&departure.replayed));
    UnexpectedHostCall { differences: between(&recorded, &replayed), departure }
}

/// Normalizes a call's outcome for comparison. A JSON body is parsed, so that positions in it can
/// be named, and a digest of its bytes is added. Stack frames are dropped after a timeout, because
/// the clock decides where it hits. Code offsets are dropped: a trap just after a tick of the epoch
/// has another offset in its function.
fn compared_outcome(outcome: &RecordedOutcome) -> Json {
    let mut outcome = outcome.clone();
    if let RecordedOutcome::Fault(fault) = &mut outcome {
        if fault.is_by_clock() {
            fault.frames.clear();
        } else {
            fault.frames.iter_mut().for_each(|frame| *frame = without_offset(frame));
        }
    }
    let mut told = json!(outcome);
    let body = told.pointer("/answered/body").and_then(Json::as_str);
    let parsed = body.map(|body| (Sha256::digest(body), serde_json::from_str::<Json>(body)));
    if let Some((digest, Ok(parsed))) = parsed {
        told["answered"]["body"] = parsed;
        told["answered"]["body_sha256"] = json!(hex::encode(digest));
    }
    told
}

/// Removes the address from a stack frame like `0: 0x1a2b - module!function`.
fn without_offset(frame: &str) -> String {
    match frame.split_once(": ").zip(frame.split_once(" - ")) {
        Some(((number, _), (_, function))) => format!("{number}: {function}"),
        None => frame.to_owned(),
    }
}

fn between(recorded: &Json, replayed: &Json) -> Vec<ValueDifference> {
    let found = differences(recorded, replayed).into_iter();
    found
        .map(|(pointer, recorded, replayed)| ValueDifference {
            pointer,
            recorded: recorded.cloned(),
            replayed: replayed.cloned(),
        })
        .collect()
}
