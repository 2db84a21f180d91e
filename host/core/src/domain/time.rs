//! Timestamps, and the clocks that the host reads.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Instant;

use chrono::{DateTime, SecondsFormat, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A point in time, in microseconds since 1970-01-01T00:00:00Z.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, JsonSchema)]
#[schemars(transparent)]
pub struct Timestamp(#[schemars(with = "DateTime<Utc>")] pub i64);

impl Timestamp {
    /// Returns this timestamp plus a number of milliseconds.
    #[must_use]
    pub fn plus_ms(self, ms: i64) -> Self {
        Self(self.0.saturating_add(ms.saturating_mul(1000)))
    }

    /// Returns the beginning of the second after this timestamp.
    #[must_use]
    pub fn next_second(self) -> Self {
        let second = self.0.div_euclid(1_000_000).saturating_add(1);
        Self(second.saturating_mul(1_000_000))
    }

    /// Returns the milliseconds from `earlier` to this timestamp; negative if
    /// `earlier` is later.
    #[must_use]
    pub fn ms_since(self, earlier: Self) -> i64 {
        (self.0 - earlier.0) / 1000
    }

    /// Formats the timestamp as RFC 3339 in UTC with `Z` and six decimals.
    #[must_use]
    pub fn to_rfc3339(self) -> String {
        DateTime::<Utc>::from_timestamp_micros(self.0)
            .unwrap_or(DateTime::<Utc>::MAX_UTC)
            .to_rfc3339_opts(SecondsFormat::Micros, true)
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.to_rfc3339())
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let moment = DateTime::<Utc>::deserialize(deserializer)?;
        Ok(Self(moment.timestamp_micros()))
    }
}

/// Source of the host's time. Nothing else in the host reads the operating
/// system's wall clock.
#[derive(Clone, Debug)]
pub enum Clock {
    /// The machine's wall clock.
    System,
    /// The clock of the shared database, so that everything expires at the same
    /// time on all nodes.
    Shared(Arc<DatabaseClock>),
    /// A clock that tests set; microseconds since the epoch.
    Manual(Arc<AtomicI64>),
}

impl Clock {
    /// Returns the current time of this clock.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        match self {
            Self::System => wall_clock(),
            Self::Shared(clock) => clock.now(),
            Self::Manual(micros) => Timestamp(micros.load(Ordering::Acquire)),
        }
    }

    /// Returns how far this machine's wall clock is ahead of this clock, in
    /// milliseconds; negative if it is behind.
    #[must_use]
    pub fn wall_clock_ahead_ms(&self) -> i64 {
        match self {
            Self::System | Self::Manual(_) => 0,
            Self::Shared(clock) => wall_clock().ms_since(clock.now()),
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the one place that reads the wall clock")]
fn wall_clock() -> Timestamp {
    Timestamp(Utc::now().timestamp_micros())
}

/// This node's estimate of the database's clock. Between two measurements, this
/// machine's monotonic clock advances it, so setting the wall clock has no
/// effect.
#[derive(Debug)]
pub struct DatabaseClock {
    started: Instant,
    /// The database's time at the instant `started`, in microseconds.
    at_start: AtomicI64,
}

impl DatabaseClock {
    /// Creates the clock from a first measurement of the database's clock: the
    /// time that the database returned, when the query was sent, and when its
    /// result was received.
    #[must_use]
    pub fn new(database_time: Timestamp, sent_at: Instant, received_at: Instant) -> Self {
        let halfway = micros(received_at.saturating_duration_since(sent_at)) / 2;
        Self { started: sent_at, at_start: AtomicI64::new(database_time.0.saturating_sub(halfway)) }
    }

    /// Adjusts the clock by a new measurement of the database's clock. A
    /// measurement that agrees within the query's duration changes nothing.
    pub fn measured(&self, database_time: Timestamp, sent_at: Instant, received_at: Instant) {
        let since_start = |at: Instant| micros(at.saturating_duration_since(self.started));
        let earliest = database_time.0.saturating_sub(since_start(received_at));
        let latest = database_time.0.saturating_sub(since_start(sent_at)).max(earliest);
        let held = self.at_start.load(Ordering::Acquire);
        self.at_start.store(held.clamp(earliest, latest), Ordering::Release);
    }

    fn now(&self) -> Timestamp {
        let held = self.at_start.load(Ordering::Acquire);
        Timestamp(held.saturating_add(micros(self.started.elapsed())))
    }
}

fn micros(duration: std::time::Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const HOUR: i64 = 3_600_000;

    fn held(clock: &DatabaseClock) -> i64 {
        clock.at_start.load(Ordering::Acquire)
    }

    #[test]
    fn a_wrong_wall_clock_does_not_reach_the_shared_clock() {
        let sent_at = Instant::now();
        let database_time = wall_clock().plus_ms(-25 * HOUR);
        let clock = Clock::Shared(Arc::new(DatabaseClock::new(database_time, sent_at, sent_at)));
        let ahead = clock.wall_clock_ahead_ms();
        let expected = 25 * HOUR - 1_000..25 * HOUR + 10_000;
        assert!(expected.contains(&ahead), "{ahead} ms");
        assert!(clock.now().ms_since(database_time) < 10_000);
    }

    #[test]
    fn a_measurement_moves_the_clock_no_further_than_its_answer_took() {
        let sent_at = Instant::now();
        let clock = DatabaseClock::new(Timestamp(1_000_000), sent_at, sent_at);
        let later = sent_at + Duration::from_secs(1);
        // Sent at one second, answered 200 ms later: at the answer, the
        // database's clock was between 2.0 and 2.2 s.
        let slow = later + Duration::from_millis(200);
        clock.measured(Timestamp(2_100_000), later, slow);
        assert_eq!(held(&clock), 1_000_000, "they agree");
        clock.measured(Timestamp(2_500_000), later, slow);
        assert_eq!(held(&clock), 1_300_000);
        clock.measured(Timestamp(1_000_000), later, later);
        assert_eq!(held(&clock), 0, "the database's clock was set back");
    }
}
