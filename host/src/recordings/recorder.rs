//! Writes down one call while it runs.

use std::io::{self, Write};

use parking_lot::Mutex;
use serde::Serialize;
use serde_json::value::RawValue;

use super::{
    About, Answer, CONTRACT, FORMAT, Fault, HostCall, Limits, Outcome, Recording, Withheld,
};

/// Host functions whose arguments or answers are secrets, or as good as: keys,
/// codes and tokens made with one, and what other services answer, which may
/// be credentials.
const SECRET: [(&str, &str); 5] = [
    ("crypto.random_bytes", "random bytes may become a secret"),
    ("egress.send", "another service may answer with a secret"),
    ("links.sign", "a signed link is an authority"),
    ("membership.vouch", "what vouches for an address is an authority"),
    ("secrets.hmac_sha256", "what is computed with a secret may stand for it"),
];

/// The one that takes a secret from the guest, which had it before.
const PUT: &str = "secrets.put";

/// Why a call is not to be read from its beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sealed {
    /// The request's schema has a member that is `writeOnly`.
    Marked,
    /// An area that keeps secrets was sent a body on a route that writes.
    MayCarry,
    /// It came by a signed link.
    ByLink,
    /// A job of an area that comes upon secrets: its payload and checkpoint
    /// may hold what an earlier call made with one.
    Handed,
}

impl Sealed {
    fn why(self) -> &'static str {
        match self {
            Self::Marked => "the request's schema has a member that is writeOnly",
            Self::MayCarry => "the area keeps secrets, and the request may bring one",
            Self::ByLink => "what a signed link carries is kept nowhere",
            Self::Handed => "the area comes upon secrets, and its jobs may be handed one",
        }
    }
}

/// One call that is written down.
#[derive(Debug)]
pub struct Recorder {
    about: About,
    sealed: Option<Sealed>,
    max_bytes: usize,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    input: Option<Box<RawValue>>,
    wasi_seed: Option<String>,
    limits: Limits,
    calls: Vec<HostCall>,
    frames: Vec<String>,
    outcome: Option<Outcome>,
    withheld: Option<Withheld>,
    bytes: usize,
    too_large: bool,
}

impl Recorder {
    /// Of a call; at most so many bytes of it.
    #[must_use]
    pub fn new(about: About, sealed: Option<Sealed>, max_bytes: usize) -> Self {
        Self { about, sealed, max_bytes, kept: Mutex::default() }
    }

    /// A run begins, with this argument; what was written of an earlier run,
    /// which lost a race, is forgotten.
    pub fn begin(&self, input: &impl Serialize, wasi_seed: [u8; 32], limits: Limits) {
        let mut kept = self.kept.lock();
        *kept = Kept { limits, ..Kept::default() };
        if let Some(sealed) = self.sealed {
            return kept.withhold(None, sealed.why());
        }
        kept.wasi_seed = Some(hex::encode(wasi_seed));
        kept.input = kept.written(input, self.max_bytes);
    }

    /// The guest calls a host function.
    pub fn ask(&self, call: &'static str, arguments: &impl Serialize) {
        let mut kept = self.kept.lock();
        let secret = SECRET.iter().find(|(name, _)| *name == call);
        if call == PUT {
            kept.withhold(None, "the guest handed over a secret");
        } else if let (Some((_, why)), None) = (secret, &kept.withheld) {
            let from = kept.calls.len();
            kept.withhold(Some(from), why);
        }
        let open = kept.withheld.is_none();
        let arguments = if open { kept.written(arguments, self.max_bytes) } else { None };
        kept.bytes += call.len();
        kept.calls.push(HostCall { call: call.to_owned(), arguments, answer: None });
        kept.check_size(self.max_bytes);
    }

    /// The last call has a result.
    pub fn answered(&self, result: &impl Serialize) {
        self.answer(|kept| kept.written(result, self.max_bytes).map(Answer::Ok));
    }

    /// The last call has its interface's error.
    pub fn refused(&self, error: &impl Serialize) {
        self.answer(|kept| kept.written(error, self.max_bytes).map(Answer::Error));
    }

    /// The last call ended all.
    pub fn stopped(&self, fault: Fault) {
        self.answer(|_| Some(Answer::Ended(fault)));
    }

    fn answer(&self, answer: impl FnOnce(&mut Kept) -> Option<Answer>) {
        let mut kept = self.kept.lock();
        if kept.withheld.is_some() {
            return;
        }
        let answer = answer(&mut kept);
        if let Some(last) = kept.calls.last_mut() {
            last.answer = answer;
        }
    }

    /// Where the guest was when it failed: a stack, a frame a line.
    pub fn failed_at(&self, backtrace: &str) {
        self.kept.lock().frames = frames(backtrace);
    }

    /// How the call ended; nothing where that was not the area's doing.
    pub fn ended(&self, outcome: Option<Outcome>) {
        self.kept.lock().outcome = outcome;
    }

    /// Whether it ended in a fault of the area's.
    #[must_use]
    pub fn is_fault(&self) -> bool {
        matches!(self.kept.lock().outcome, Some(Outcome::Fault(_)))
    }

    /// The recording; nothing where there is too much of it, or where it did
    /// not come to an end that is the area's own.
    #[must_use]
    pub fn finish(&self) -> Option<Recording> {
        let kept = std::mem::take(&mut *self.kept.lock());
        if kept.too_large {
            tracing::warn!(
                recording.id = self.about.id,
                max_bytes = self.max_bytes,
                "a call is not recorded: it saw and said too much; see areas.record.max_bytes"
            );
            return None;
        }
        Some(Recording {
            format: FORMAT,
            contract: CONTRACT.to_owned(),
            about: self.about.clone(),
            limits: kept.limits,
            outcome: told(kept.outcome?, kept.frames, kept.withheld.is_some()),
            input: kept.input,
            wasi_seed: kept.wasi_seed,
            calls: kept.calls,
            withheld: kept.withheld,
        })
    }
}

impl Kept {
    fn withhold(&mut self, from: Option<usize>, why: &str) {
        if from.is_none() {
            self.input = None;
            self.wasi_seed = None;
            for call in &mut self.calls {
                call.arguments = None;
                call.answer = None;
            }
        }
        self.withheld = Some(Withheld { from, why: why.to_owned() });
    }

    /// As JSON, unless that is more than may be kept.
    fn written(&mut self, value: &impl Serialize, max_bytes: usize) -> Option<Box<RawValue>> {
        let left = max_bytes.checked_sub(self.bytes)?;
        let mut text = Bounded { text: Vec::new(), left };
        let written = serde_json::to_writer(&mut text, value).ok();
        let text = written.and_then(|()| String::from_utf8(text.text).ok());
        let raw = text.and_then(|text| RawValue::from_string(text).ok());
        self.bytes += raw.as_ref().map_or(max_bytes, |raw| raw.get().len());
        self.check_size(max_bytes);
        raw
    }

    fn check_size(&mut self, max_bytes: usize) {
        if self.bytes >= max_bytes {
            self.too_large = true;
            self.calls = Vec::new();
        }
    }
}

/// What of an outcome may be told.
fn told(outcome: Outcome, frames: Vec<String>, withheld: bool) -> Outcome {
    match outcome {
        Outcome::Answered(_) if withheld => Outcome::Answered(None),
        Outcome::Fault(fault) => {
            let message = fault.message.filter(|_| !withheld);
            Outcome::Fault(Fault { message, frames, ..fault })
        }
        answered @ Outcome::Answered(_) => answered,
    }
}

/// The lines of a stack that name a frame.
#[must_use]
pub fn frames(backtrace: &str) -> Vec<String> {
    let lines = backtrace.lines().map(str::trim);
    lines.filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

/// Text of which there is only so much.
struct Bounded {
    text: Vec<u8>,
    left: usize,
}

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.left = self.left.checked_sub(bytes.len()).ok_or(io::ErrorKind::FileTooLarge)?;
        self.text.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
