//! Answers a call from a recording, and notes where it asks for something
//! else.

use parking_lot::Mutex;
use serde::Serialize;
use serde_json::Value as Json;

use super::{Answer, HostCall, Recording, Withheld};

/// Host functions whose answer says little more than that the host has heard:
/// a version that says something else there is told the same, and goes on.
const TAKES: [&str; 5] =
    ["documents.apply", "events.publish", "jobs.enqueue", "mail.send", "queue.cancel"];

/// One call that is run again.
#[derive(Debug)]
pub struct Player {
    recording: Recording,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    next: usize,
    departures: Vec<Departure>,
    silence: Option<Silence>,
    frames: Vec<String>,
}

/// A host call that is not the recorded one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Departure {
    /// Which host call, from 0.
    pub ordinal: usize,
    /// What was asked when it was recorded; nothing: no more was asked.
    pub recorded: Option<Said>,
    /// What is asked now; nothing: no more is.
    pub replayed: Option<Said>,
}

/// A host call, without its answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Said {
    /// Interface and function.
    pub call: String,
    /// What it was called with.
    pub arguments: Json,
}

/// Why a recording has no answer to a call, which ends there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Silence {
    /// It was not asked this.
    NotAsked,
    /// The answer is withheld.
    Withheld,
    /// The recorded call ended while it waited for the answer.
    NotAnswered,
}

impl Player {
    /// Of a recording, from its beginning.
    #[must_use]
    pub fn new(recording: Recording) -> Self {
        Self { recording, state: Mutex::default() }
    }

    /// What is played.
    #[must_use]
    pub fn recording(&self) -> &Recording {
        &self.recording
    }

    /// From which a guest of WASI has its random numbers.
    #[must_use]
    pub fn wasi_seed(&self) -> [u8; 32] {
        let mut seed = [0; 32];
        let recorded = self.recording.wasi_seed.as_deref().unwrap_or_default();
        // Checked when it was read; zeros where it is withheld.
        let _ = hex::decode_to_slice(recorded, &mut seed);
        seed
    }

    /// The recorded answer to the next host call.
    ///
    /// # Errors
    /// There is none: the call is to end.
    pub fn answer(&self, call: &str, arguments: &impl Serialize) -> Result<Answer, Silence> {
        let mut state = self.state.lock();
        let answer = self.find(&mut state, call, arguments);
        if let Err(silence) = &answer {
            state.silence = Some(*silence);
        }
        answer
    }

    fn find(
        &self,
        state: &mut State,
        call: &str,
        arguments: &impl Serialize,
    ) -> Result<Answer, Silence> {
        let ordinal = state.next;
        state.next += 1;
        let recorded = self.recording.calls.get(ordinal);
        let same_call = recorded.is_some_and(|recorded| recorded.call == call);
        if same_call && self.is_withheld(ordinal) {
            return Err(Silence::Withheld);
        }
        let arguments = serde_json::to_value(arguments).unwrap_or_default();
        let asked = Said { call: call.to_owned(), arguments };
        let said = recorded.map(Said::of);
        let differs = said.as_ref() != Some(&asked);
        let goes_on = same_call && said.as_ref().is_some_and(|said| takes_as_much(said, &asked));
        if differs {
            state.departures.push(Departure { ordinal, recorded: said, replayed: Some(asked) });
        }
        match recorded {
            Some(recorded) if !differs || goes_on => {
                recorded.answer.clone().ok_or(Silence::NotAnswered)
            }
            _ => Err(Silence::NotAsked),
        }
    }

    fn is_withheld(&self, ordinal: usize) -> bool {
        let withheld = self.recording.withheld.as_ref();
        withheld.is_some_and(|Withheld { from, .. }| from.is_none_or(|from| ordinal >= from))
    }

    /// Where the guest was when it failed.
    pub fn failed_at(&self, backtrace: &str) {
        self.state.lock().frames = super::recorder::frames(backtrace);
    }

    /// The stack of the failure, if there was one.
    #[must_use]
    pub fn frames(&self) -> Vec<String> {
        self.state.lock().frames.clone()
    }

    /// Why it could not go on, where it could not.
    #[must_use]
    pub fn silence(&self) -> Option<Silence> {
        self.state.lock().silence
    }

    /// How many host calls had their recorded answer or asked for one.
    #[must_use]
    pub fn played(&self) -> usize {
        self.state.lock().next
    }

    /// Every call that is not the recorded one; where it came to its end, the
    /// first of those that were not made any more too.
    #[must_use]
    pub fn departures(&self) -> Vec<Departure> {
        let state = self.state.lock();
        let mut departures = state.departures.clone();
        let left = self.recording.calls.get(state.next).filter(|_| state.silence.is_none());
        departures.extend(left.map(|call| Departure {
            ordinal: state.next,
            recorded: Some(Said::of(call)),
            replayed: None,
        }));
        departures
    }
}

impl Said {
    fn of(call: &HostCall) -> Self {
        let arguments = call.arguments.as_ref();
        let arguments = arguments.and_then(|raw| serde_json::from_str(raw.get()).ok());
        Self { call: call.call.clone(), arguments: arguments.unwrap_or_default() }
    }
}

/// Whether the answer to the one does for the other: of writes, as many.
fn takes_as_much(recorded: &Said, asked: &Said) -> bool {
    let writes = |said: &Said| said.arguments.get(1).and_then(Json::as_array).map(Vec::len);
    TAKES.contains(&recorded.call.as_str()) && writes(recorded) == writes(asked)
}
