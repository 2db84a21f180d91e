//! Moments, as the store keeps them and as clients read them.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use chrono::{DateTime, SecondsFormat, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Microseconds since 1970-01-01T00:00:00Z.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, JsonSchema)]
#[schemars(transparent)]
pub struct Timestamp(#[schemars(with = "DateTime<Utc>")] pub i64);

impl Timestamp {
    /// This moment and so many milliseconds.
    #[must_use]
    pub fn plus_ms(self, ms: i64) -> Self {
        Self(self.0.saturating_add(ms.saturating_mul(1000)))
    }

    /// Milliseconds from `earlier` to this moment; negative where it is later.
    #[must_use]
    pub fn ms_since(self, earlier: Self) -> i64 {
        (self.0 - earlier.0) / 1000
    }

    /// RFC 3339 in UTC with `Z` and six decimals.
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

/// Where the host's time comes from. Nothing else in the host asks the
/// operating system for the wall clock.
#[derive(Clone, Debug)]
pub enum Clock {
    /// The system's wall clock.
    System,
    /// A clock a test moves by hand; microseconds since the epoch.
    Manual(Arc<AtomicI64>),
}

impl Clock {
    /// The present moment.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        match self {
            #[expect(
                clippy::disallowed_methods,
                reason = "the one place that reads the wall clock"
            )]
            Self::System => Timestamp(Utc::now().timestamp_micros()),
            Self::Manual(micros) => Timestamp(micros.load(Ordering::Acquire)),
        }
    }
}
