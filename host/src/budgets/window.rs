//! What was used in this minute, and in the last.

use std::fmt;

/// What a budget is of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Resource {
    /// Processor time in a minute.
    Cpu,
    /// Host calls in a minute.
    HostCalls,
    /// Documents in a minute.
    Documents,
    /// Memory at a time.
    Memory,
    /// Calls at a time.
    Calls,
    /// Time in which others cannot write.
    Turn,
}

impl Resource {
    /// As the metrics name it.
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
            Self::Turn => "time in which others cannot write",
        })
    }
}

/// What calls have used.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Usage {
    /// Calls that have ended.
    pub calls: u64,
    /// Processor time, in microseconds.
    pub cpu_us: u64,
    /// Host calls.
    pub host_calls: u64,
    /// Documents read and written.
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

/// Two minutes of one account.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Window {
    minute: u64,
    pub(super) now: Usage,
    pub(super) before: Usage,
    /// Calls that were refused in this minute.
    pub(super) refused: u64,
    /// Whether the log was told in this minute: of a budget nearly used, and
    /// of one used up.
    pub(super) warned: bool,
    pub(super) told: bool,
}

impl Window {
    /// The window, as it is in that minute.
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

    /// Whether nothing was used for two minutes.
    pub(super) fn is_empty(&self) -> bool {
        self.now == Usage::default() && self.before == Usage::default() && self.refused == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minute_becomes_the_last_one_and_then_nothing() {
        let mut window = Window::default();
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
