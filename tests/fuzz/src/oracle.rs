//! Properties of every target: no panic, bounded output, bounded time.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use crate::Target;

/// Maximum output in bytes for each byte of input.
const EXPANSION: usize = 64;
const OUTPUT_BYTES: usize = 1 << 20;
/// Maximum processor time for an input of the maximum size.
const TIME: Duration = Duration::from_secs(1);
const TIMED_BYTES: usize = 100_000;
/// Factor for code without optimization.
const UNOPTIMIZED: u32 = if cfg!(debug_assertions) { 15 } else { 1 };

/// An input that violates a property.
#[derive(Debug)]
pub enum Finding {
    /// The target panicked.
    Panic(String),
    /// The output is too large; its size in bytes.
    Output(usize),
    /// The target took too long; its processor time.
    Time(Duration),
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Panic(message) => write!(f, "panics: {message}"),
            Self::Output(bytes) => write!(f, "writes {bytes} bytes"),
            Self::Time(time) => write!(f, "takes {time:?} of the processor"),
        }
    }
}

/// Runs a target with an input. Returns its processor time.
///
/// # Errors
/// The violated property.
pub fn check(target: &Target, input: &[u8]) -> Result<Duration, Finding> {
    let began = processor_time();
    let ended = catch_unwind(AssertUnwindSafe(|| (target.run)(input)));
    let took = processor_time().saturating_sub(began);
    let output = ended.map_err(|panic| Finding::Panic(message(&*panic)))?;
    let hundreds = u32::try_from(input.len().div_ceil(TIMED_BYTES).max(1)).unwrap_or(u32::MAX);
    if took > TIME * UNOPTIMIZED * hundreds {
        return Err(Finding::Time(took));
    }
    if output > input.len().saturating_mul(EXPANSION).saturating_add(OUTPUT_BYTES) {
        return Err(Finding::Output(output));
    }
    Ok(took)
}

fn message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref().copied()).unwrap_or("no message").to_owned()
}

/// Returns the processor time of this thread. Other work on the machine does not count.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or_default())
}
