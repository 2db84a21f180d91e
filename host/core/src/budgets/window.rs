//! Usage in the current and the previous minute.

use std::fmt;

/// A resource whose use by calls is limited.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Resource {
    /// Processor time per minute.
    Cpu,
    /// Host calls per minute.
    HostCalls,
    /// Documents read and written per minute.
    Documents,
    /// Memory that is in use at one time.
    Memory,
    /// Calls that run at the same time.
    Calls,
    /// Time for which one call blocks other writers. It has no budget: see
    /// [`WritePauses`](super::WritePauses).
    Turn,
}

impl Resource {
    /// Returns the name of the resource in metrics and logs.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::HostCalls => "host_calls",
            Self::Documents => "documents",
            Self::Memory => "memory",
            Self::Calls => "calls",
            Self::Turn => "turn",
        }
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cpu => "processor time in a minute",
            Self::HostCalls => "host calls in a minute",
            Self::Documents => "documents in a minute",
            Self::Memory => "memory at a time",
            Self::Calls => "calls at a time",
            Self::Turn => "time blocking other writers",
        })
    }
}

/// Amounts of resources that the calls of an area or workspace have used.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Usage {
    /// Number of calls that have ended.
    pub calls: u64,
    /// Processor time of the calls, in microseconds.
    pub cpu_us: u64,
    /// Number of calls of host functions by guests.
    pub host_calls: u64,
    /// Number of documents read and written.
    pub documents: u64,
}

impl Usage {
    fn add(&mut self, other: Self) {
        self.calls += other.calls;
        self.cpu_us += other.cpu_us;
        self.host_calls += other.host_calls;
        self.documents += other.documents;
    }
}

/// Usage of one area or workspace in the current and the previous minute.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct UsageWindow {
    minute: u64,
    pub(super) now: Usage,
    pub(super) before: Usage,
    /// Number of calls refused in the current minute.
    pub(super) refused: u64,
    /// Whether a nearly exhausted budget was already logged in the current
    /// minute.
    pub(super) logged_warning: bool,
    /// Whether an exhausted budget was already logged in the current minute.
    pub(super) logged_exhausted: bool,
}

impl UsageWindow {
    /// Moves the window of two minutes forward, so that `minute` is the current
    /// one, and returns it. An earlier minute changes nothing.
    pub(super) fn at(&mut self, minute: u64) -> &mut Self {
        if minute > self.minute {
            let before = if minute == self.minute + 1 { self.now } else { Usage::default() };
            *self = Self { minute, before, ..Self::default() };
        }
        self
    }

    pub(super) fn add(&mut self, used: Usage) {
        self.now.add(used);
    }

    /// Returns whether there was no usage in the current and the previous
    /// minute, and no refused call in the current one.
    pub(super) fn is_empty(&self) -> bool {
        self.now == Usage::default() && self.before == Usage::default() && self.refused == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minute_becomes_the_last_one_and_then_nothing() {
        let mut window = UsageWindow::default();
        let one = Usage { calls: 1, ..Usage::default() };
        window.at(0).add(one);
        assert_eq!(window.at(1).before, one);
        assert_eq!(window.at(1).now, Usage::default());
        assert!(!window.is_empty());
        assert!(window.at(2).is_empty());
        window.add(one);
        assert!(window.at(9).is_empty(), "a minute is the last one only right after it");
    }
}
