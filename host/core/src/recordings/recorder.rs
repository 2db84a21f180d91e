//! Records one call while it runs.

use std::io::{self, Write};

use parking_lot::Mutex;
use serde::Serialize;
use serde_json::value::RawValue;

use super::{
    CONTRACT, CallMetadata, CallRecording, FORMAT, HostCall, HostCallResult, RecordedFault,
    RecordedLimits, RecordedOutcome, Redaction,
};

/// Host functions whose arguments or results are secret or may become secret:
/// keys, codes and tokens derived from one, and responses of other services,
/// which may contain credentials. Each with the reason for withholding.
const SECRET_CALLS: [(&str, &str); 5] = [
    ("crypto.random_bytes", "random bytes may become a secret"),
    ("egress.send", "another service may answer with a secret"),
    ("links.sign", "a signed link grants access"),
    ("membership.vouch", "a voucher grants access to an address"),
    ("secrets.hmac_sha256", "a value computed with a secret may be as sensitive"),
];

/// Host function by which a guest passes a secret to the host.
const PUT_SECRET: &str = "secrets.put";

/// Reason why the input of a recorded call must be withheld.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputRedactionReason {
    /// The input is withheld because the request's schema has a member that is
    /// `writeOnly`, such as a password.
    WriteOnlyMember,
    /// The input is withheld because the request's body may contain a secret: it
    /// goes to a writing route of an area that stores secrets.
    SecretInBody,
    /// The input is withheld because a signed link authorized the request.
    SignedLink,
    /// The input is withheld because the call runs a job of an area that can
    /// obtain secrets. The job's payload and checkpoint may contain values
    /// derived from one.
    SecretInJob,
}

impl InputRedactionReason {
    fn why(self) -> &'static str {
        match self {
            Self::WriteOnlyMember => "the request's schema has a member that is writeOnly",
            Self::SecretInBody => "the area stores secrets, and the request may contain one",
            Self::SignedLink => "the input of a request by signed link is not recorded",
            Self::SecretInJob => "the area can obtain secrets, and a job's input may contain one",
        }
    }
}

/// Records one call while it runs.
#[derive(Debug)]
pub struct Recorder {
    about: CallMetadata,
    sealed: Option<InputRedactionReason>,
    max_bytes: usize,
    kept: Mutex<RecordedParts>,
}

#[derive(Debug, Default)]
struct RecordedParts {
    input: Option<Box<RawValue>>,
    wasi_seed: Option<String>,
    limits: RecordedLimits,
    calls: Vec<HostCall>,
    frames: Vec<String>,
    outcome: Option<RecordedOutcome>,
    withheld: Option<Redaction>,
    bytes: usize,
    too_large: bool,
}

impl Recorder {
    /// Creates the recorder of one call. `max_bytes` is the maximum size of the
    /// recording. `sealed` is the reason why the input must be withheld, if
    /// there is one.
    #[must_use]
    pub fn new(
        about: CallMetadata,
        sealed: Option<InputRedactionReason>,
        max_bytes: usize,
    ) -> Self {
        Self { about, sealed, max_bytes, kept: Mutex::default() }
    }

    /// Records the start of a run of the call with its input. Discards what an
    /// earlier run, which ended in a write conflict, has recorded.
    pub fn begin(&self, input: &impl Serialize, wasi_seed: [u8; 32], limits: RecordedLimits) {
        let mut kept = self.kept.lock();
        *kept = RecordedParts { limits, ..RecordedParts::default() };
        if let Some(sealed) = self.sealed {
            return kept.withhold(None, sealed.why());
        }
        kept.wasi_seed = Some(hex::encode(wasi_seed));
        kept.input = kept.written(input, self.max_bytes);
    }

    /// Records that the guest calls a host function, with its arguments.
    pub fn record_call(&self, call: &'static str, arguments: &impl Serialize) {
        let mut kept = self.kept.lock();
        let secret = SECRET_CALLS.iter().find(|(name, _)| *name == call);
        if call == PUT_SECRET {
            kept.withhold(None, "the guest passed a secret to the host");
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

    /// Records the successful result of the last host call.
    pub fn record_result(&self, result: &impl Serialize) {
        self.answer(|kept| kept.written(result, self.max_bytes).map(HostCallResult::Ok));
    }

    /// Records that the last host call returned a typed error of its interface.
    pub fn record_error(&self, error: &impl Serialize) {
        self.answer(|kept| kept.written(error, self.max_bytes).map(HostCallResult::Error));
    }

    /// Records that the last host call ended the whole call of the guest with
    /// this fault.
    pub fn record_fault(&self, fault: RecordedFault) {
        self.answer(|_| Some(HostCallResult::Ended(fault)));
    }

    fn answer(&self, answer: impl FnOnce(&mut RecordedParts) -> Option<HostCallResult>) {
        let mut kept = self.kept.lock();
        if kept.withheld.is_some() {
            return;
        }
        let answer = answer(&mut kept);
        if let Some(last) = kept.calls.last_mut() {
            last.answer = answer;
        }
    }

    /// Records the guest's stack at a fault, one frame per line.
    pub fn record_stack(&self, backtrace: &str) {
        self.kept.lock().frames = frames(backtrace);
    }

    /// Records the outcome of the call; `None` if the call ended for a reason
    /// that the area did not cause.
    pub fn record_outcome(&self, outcome: Option<RecordedOutcome>) {
        self.kept.lock().outcome = outcome;
    }

    /// Returns whether the call ended in a fault of the area's code.
    #[must_use]
    pub fn is_fault(&self) -> bool {
        matches!(self.kept.lock().outcome, Some(RecordedOutcome::Fault(_)))
    }

    /// Returns the recording; `None` if it is too large, or if the call ended
    /// for a reason that the area did not cause.
    #[must_use]
    pub fn finish(&self) -> Option<CallRecording> {
        let kept = std::mem::take(&mut *self.kept.lock());
        if kept.too_large {
            tracing::warn!(
                recording.id = self.about.id,
                max_bytes = self.max_bytes,
                "call not recorded: its recording exceeds areas.record.max_bytes"
            );
            return None;
        }
        Some(CallRecording {
            format: FORMAT,
            contract: CONTRACT.to_owned(),
            about: self.about.clone(),
            limits: kept.limits,
            outcome: without_guest_text(kept.outcome?, kept.frames, kept.withheld.is_some()),
            input: kept.input,
            wasi_seed: kept.wasi_seed,
            calls: kept.calls,
            withheld: kept.withheld,
        })
    }
}

impl RecordedParts {
    fn withhold(&mut self, from: Option<usize>, why: &str) {
        if from.is_none() {
            self.input = None;
            self.wasi_seed = None;
            for call in &mut self.calls {
                call.arguments = None;
                call.answer = None;
            }
        }
        self.withheld = Some(Redaction { from, why: why.to_owned() });
    }

    /// Serializes a value to JSON; `None` if the recording would exceed
    /// `max_bytes` bytes.
    fn written(&mut self, value: &impl Serialize, max_bytes: usize) -> Option<Box<RawValue>> {
        let left = max_bytes.checked_sub(self.bytes)?;
        let mut text = BoundedText { text: Vec::new(), left };
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

/// Returns the outcome with the stack `frames` in its fault. If `withheld` is
/// true, removes texts that may quote the guest.
fn without_guest_text(
    outcome: RecordedOutcome,
    frames: Vec<String>,
    withheld: bool,
) -> RecordedOutcome {
    match outcome {
        RecordedOutcome::Answered(_) if withheld => RecordedOutcome::Answered(None),
        RecordedOutcome::Fault(fault) => {
            let message = fault.message.filter(|_| !withheld);
            RecordedOutcome::Fault(RecordedFault { message, frames, ..fault })
        }
        answered @ RecordedOutcome::Answered(_) => answered,
    }
}

/// Returns the non-empty lines of a backtrace, one for each frame.
#[must_use]
pub fn frames(backtrace: &str) -> Vec<String> {
    let lines = backtrace.lines().map(str::trim);
    lines.filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

/// A text buffer of bounded length.
struct BoundedText {
    text: Vec<u8>,
    left: usize,
}

impl Write for BoundedText {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.left = self.left.checked_sub(bytes.len()).ok_or(io::ErrorKind::FileTooLarge)?;
        self.text.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
