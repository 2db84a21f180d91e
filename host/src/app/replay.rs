//! A recorded call, run again by a component: offline, in the sandbox that
//! serves, its host calls answered from the recording.

use std::sync::Arc;

use serde::Serialize;
use serde_json::{Value as Json, json};
use sha2::{Digest as _, Sha256};

use super::call;
use crate::recordings::{Departure, Export, Outcome, Player, Recording, Silence, Withheld};
use crate::registry::{AreaVersion, Ceilings, Registry, differences};
use crate::runtime::{self, Loaded, Runtime, Settings};
use crate::work::{LimitsByArea, end_of_request, end_of_run};

/// What a component made of a recorded call.
#[derive(Clone, Debug, Serialize)]
pub struct Replayed {
    /// Whether it did what was recorded.
    pub verdict: Verdict,
    /// It is the component that was recorded.
    pub same_component: bool,
    /// Host calls it made of which the recording tells.
    pub host_calls: usize,
    /// Why the recording goes no further, where it does not.
    pub withheld: Option<String>,
    /// Host calls that are not the recorded ones.
    pub calls: Vec<OtherCall>,
    /// Where its outcome is another.
    pub differences: Vec<Difference>,
    /// How the recorded call ended.
    pub recorded: Outcome,
    /// How this one did; nothing where it was ended for want of an answer.
    pub replayed: Option<Outcome>,
}

/// What a replay shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The same calls, in the same order, and the same outcome.
    Same,
    /// Another call or another outcome.
    Different,
    /// The same as far as the recording goes: the rest is withheld.
    Withheld,
}

/// A host call that is not the recorded one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OtherCall {
    /// Both calls.
    #[serde(flatten)]
    pub departure: Departure,
    /// Where they differ.
    pub differences: Vec<Difference>,
}

/// One place at which two values differ.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// A JSON Pointer.
    pub pointer: String,
    /// What was recorded; nothing: not there.
    pub recorded: Option<Json>,
    /// What is now; nothing: not there.
    pub replayed: Option<Json>,
}

/// Runs a recorded call again by a component.
///
/// # Errors
/// Where the recording has no input, or the component cannot be loaded.
pub async fn replay(recording: Recording, component: Arc<[u8]>) -> anyhow::Result<Replayed> {
    if recording.input.is_none() {
        let why = recording.withheld.as_ref().map_or("it is not there", |held| held.why.as_str());
        anyhow::bail!(
            "this recording has no input to replay, because {why}; it only tells which host \
             functions were called, and how the call ended"
        );
    }
    let loaded = load(&recording, component).await?;
    let same_component = loaded.digest == recording.about.digest;
    let registry = Registry::new(vec![], Ceilings::default(), LimitsByArea::default());
    let plan = registry.plan(loaded)?;
    let version = plan.change().now.clone();
    let version = version.ok_or_else(|| anyhow::anyhow!("the component is no area"))?;
    let player = Arc::new(Player::new(recording));
    let outcome = run(&version, &player).await?;
    Ok(compare(&player, outcome, same_component))
}

async fn load(recording: &Recording, component: Arc<[u8]>) -> anyhow::Result<Loaded> {
    let runtime = Runtime::offline(Settings::of_recording(recording))?;
    Ok(runtime.load(component, |_| runtime::every_capability()).await?)
}

/// How the call ends; nothing where it could not go on, or where that is not
/// the area's doing.
async fn run(version: &AreaVersion, player: &Arc<Player>) -> anyhow::Result<Option<Outcome>> {
    let about = &player.recording().about;
    let outcome = match about.export {
        Export::Handle => {
            let mut routes = version.routes.iter();
            let route = routes.find(|one| one.route.operation_id == about.operation);
            let Some(route) = route else {
                let gone = json!({"status": "the operation is gone"});
                return Ok(Some(Outcome::Answered(Some(gone))));
            };
            let answer = version.code.replay_request(player).await;
            let answer = answer.and_then(|answer| call::checked(about.checked, route, answer));
            let outcome = end_of_request(route.route.success_status, &answer);
            outcome.ok_or_else(|| answer.err())
        }
        Export::Run => {
            let end = version.code.replay_run(player).await;
            end_of_run(&end).ok_or_else(|| end.err())
        }
    };
    match outcome {
        Ok(Outcome::Fault(mut fault)) => {
            fault.frames = player.frames();
            Ok(Some(Outcome::Fault(fault)))
        }
        Ok(answered) => Ok(Some(answered)),
        Err(_) if player.silence().is_some() => Ok(None),
        Err(Some(error)) => Err(error.into()),
        Err(None) => Ok(None),
    }
}

fn compare(player: &Player, replayed: Option<Outcome>, same_component: bool) -> Replayed {
    let recording = player.recording();
    let recorded = recording.outcome.clone();
    let calls: Vec<_> = player.departures().into_iter().map(other_call).collect();
    let silence = player.silence();
    // What a guest makes of it that is refused an answer says nothing.
    let replayed = replayed.filter(|_| silence.is_none());
    let differences = replayed
        .as_ref()
        .map(|replayed| between(&told(&recorded, same_component), &told(replayed, same_component)))
        .unwrap_or_default();
    let verdict = match silence {
        _ if !calls.is_empty() || !differences.is_empty() => Verdict::Different,
        Some(Silence::Withheld) => Verdict::Withheld,
        _ => Verdict::Same,
    };
    let withheld = recording.withheld.as_ref().filter(|_| silence == Some(Silence::Withheld));
    Replayed {
        verdict,
        same_component,
        host_calls: player.played(),
        withheld: withheld.map(|Withheld { why, .. }| why.clone()),
        calls,
        differences,
        recorded,
        replayed,
    }
}

fn other_call(departure: Departure) -> OtherCall {
    let value = |said| serde_json::to_value(said).unwrap_or_default();
    let (recorded, replayed) = (value(&departure.recorded), value(&departure.replayed));
    OtherCall { differences: between(&recorded, &replayed), departure }
}

/// An outcome as it is compared. A body is told as the JSON it is, so that
/// places in it can be named, with a digest of its bytes. Where a clock ended
/// the call is chance, and where in a file a function begins is another matter
/// in another file.
fn told(outcome: &Outcome, same_component: bool) -> Json {
    let mut outcome = outcome.clone();
    if let Outcome::Fault(fault) = &mut outcome {
        if fault.is_by_clock() {
            fault.frames.clear();
        } else if !same_component {
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

/// `0: 0x1a2b - module!function` without the address.
fn without_offset(frame: &str) -> String {
    match frame.split_once(": ").zip(frame.split_once(" - ")) {
        Some(((number, _), (_, function))) => format!("{number}: {function}"),
        None => frame.to_owned(),
    }
}

fn between(recorded: &Json, replayed: &Json) -> Vec<Difference> {
    let found = differences(recorded, replayed).into_iter();
    found
        .map(|(pointer, recorded, replayed)| Difference {
            pointer,
            recorded: recorded.cloned(),
            replayed: replayed.cloned(),
        })
        .collect()
}
