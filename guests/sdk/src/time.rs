//! Timestamps in the contract's format.

use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Microseconds since 1970-01-01T00:00:00Z. Its text is RFC 3339 in UTC with `Z` and six decimals,
/// so that texts sort like times. The default is 1970-01-01T00:00:00Z.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Timestamp(pub i64);

/// Error: the text is not an RFC 3339 date and time, or its year in UTC is not 0 to 9999.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NotATimestamp;

impl Timestamp {
    /// Returns this time plus a number of seconds, which may be negative.
    #[must_use]
    pub fn plus_seconds(self, seconds: i64) -> Self {
        self.plus_ms(seconds.saturating_mul(1000))
    }

    /// Returns this time plus a number of milliseconds, which may be negative.
    #[must_use]
    pub fn plus_ms(self, ms: i64) -> Self {
        Self(self.0.saturating_add(ms.saturating_mul(1000)))
    }

    /// Returns the seconds from `earlier` to this time, rounded down; negative if `earlier` is
    /// later.
    #[must_use]
    pub fn seconds_since(self, earlier: Self) -> i64 {
        self.0.saturating_sub(earlier.0).div_euclid(1_000_000)
    }

    /// Returns the whole seconds since 1970-01-01T00:00:00Z, rounded down.
    #[must_use]
    pub fn unix_seconds(self) -> i64 {
        self.0.div_euclid(1_000_000)
    }
}

/// Converts days since 1970-01-01 to year, month and day (Hinnant's algorithm).
fn civil(days: i64) -> (i64, u32, u32) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_shifted + 2) / 5 + 1;
    let month = if month_shifted < 10 { month_shifted + 3 } else { month_shifted - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, u32::try_from(month).unwrap_or(1), u32::try_from(day).unwrap_or(1))
}

/// Converts year, month and day to days since 1970-01-01.
fn days(year: i64, month: u32, day: u32) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let month_shifted = (i64::from(month) + 9) % 12;
    let day_of_year = (153 * month_shifted + 2) / 5 + i64::from(day) - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// Writes `value` in decimal to `place`, right-aligned and padded with zeros.
fn digits(place: &mut [u8], value: i64) {
    let mut rest = value.unsigned_abs();
    for digit in place.iter_mut().rev() {
        *digit = b'0' + u8::try_from(rest % 10).unwrap_or(0);
        rest /= 10;
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.unix_seconds();
        let (year, month, day) = civil(seconds.div_euclid(86_400));
        let second_of_day = seconds.rem_euclid(86_400);
        let mut text = *b"0000-00-00T00:00:00.000000Z";
        digits(&mut text[0..4], year.clamp(0, 9999));
        digits(&mut text[5..7], i64::from(month));
        digits(&mut text[8..10], i64::from(day));
        digits(&mut text[11..13], second_of_day / 3600);
        digits(&mut text[14..16], second_of_day / 60 % 60);
        digits(&mut text[17..19], second_of_day % 60);
        digits(&mut text[20..26], self.0.rem_euclid(1_000_000));
        f.write_str(std::str::from_utf8(&text).unwrap_or_default())
    }
}

/// Parses a number of exactly `width` digits at the beginning of a text. Returns the number and the
/// rest of the text.
fn number(text: &[u8], width: usize) -> Option<(u32, &[u8])> {
    let (head, rest) = text.split_at_checked(width)?;
    let value = head.iter().try_fold(0_u32, |value, byte| {
        byte.is_ascii_digit().then(|| value * 10 + u32::from(byte - b'0'))
    })?;
    Some((value, rest))
}

/// Returns the text after its first byte, if that byte is one of `expected`.
fn after<'a>(text: &'a [u8], expected: &[u8]) -> Option<&'a [u8]> {
    let (first, rest) = text.split_first()?;
    expected.contains(first).then_some(rest)
}

/// Parses an optional decimal fraction of a second to microseconds; 0 if there is none. Digits
/// beyond the sixth are dropped.
fn fraction(text: &[u8]) -> Option<(i64, &[u8])> {
    let Some(rest) = after(text, b".") else { return Some((0, text)) };
    let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let micros = (0..6).fold(0, |value, place| {
        value * 10 + if place < count { i64::from(rest[place] - b'0') } else { 0 }
    });
    (count > 0).then(|| (micros, &rest[count..]))
}

/// Parses an RFC 3339 offset to seconds east of UTC.
fn offset(text: &[u8]) -> Option<i64> {
    let (sign, rest) = text.split_first()?;
    if matches!(sign, b'Z' | b'z') {
        return rest.is_empty().then_some(0);
    }
    let (hours, rest) = number(rest, 2)?;
    let (minutes, rest) = number(after(rest, b":")?, 2)?;
    let seconds = i64::from(hours * 3600 + minutes * 60);
    let valid = rest.is_empty() && hours < 24 && minutes < 60;
    match sign {
        b'+' if valid => Some(seconds),
        b'-' if valid => Some(-seconds),
        _ => None,
    }
}

fn parse(text: &[u8]) -> Option<Timestamp> {
    let (year, text) = number(text, 4)?;
    let (month, text) = number(after(text, b"-")?, 2)?;
    let (day, text) = number(after(text, b"-")?, 2)?;
    let (hour, text) = number(after(text, b"Tt ")?, 2)?;
    let (minute, text) = number(after(text, b":")?, 2)?;
    let (second, text) = number(after(text, b":")?, 2)?;
    let (micros, text) = fraction(text)?;
    let offset = offset(text)?;

    let day_number = days(i64::from(year), month, day);
    let exists = (1..=12).contains(&month) && civil(day_number) == (i64::from(year), month, day);
    // A leap second (`:60`) is the first second of the next minute, as in POSIX.
    if !exists || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let seconds = day_number * 86_400 + i64::from(hour * 3600 + minute * 60 + second) - offset;
    // The offset can lead to a year that the text of a timestamp cannot express.
    let (utc_year, _, _) = civil(seconds.div_euclid(86_400));
    (0..=9999).contains(&utc_year).then_some(Timestamp(seconds * 1_000_000 + micros))
}

impl FromStr for Timestamp {
    type Err = NotATimestamp;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse(text.as_bytes()).ok_or(NotATimestamp)
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(|NotATimestamp| {
            D::Error::custom("must be an RFC 3339 date and time with a year in UTC of 0 to 9999")
        })
    }
}

impl JsonSchema for Timestamp {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Timestamp".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "date-time" })
    }
}

#[cfg(test)]
mod tests {
    use chrono::{DateTime, SecondsFormat};
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn reads_what_rfc_3339_allows_and_nothing_else() {
        let read = |text: &str| text.parse::<Timestamp>().ok().map(|moment| moment.to_string());
        let moment = Some("2026-02-28T22:59:59.120000Z".to_owned());
        assert_eq!(read("2026-03-01T00:59:59.12+02:00"), moment);
        assert_eq!(read("2026-02-28t22:59:59.1200009z"), moment);
        let last = Some("9999-12-31T23:59:59.000000Z".to_owned());
        assert_eq!(read("9999-12-31T23:59:59Z"), last);
        assert_eq!(read("9999-12-31T22:59:59-01:00"), last);
        for wrong in [
            "2026-02-29T00:00:00Z",
            "2026-13-01T00:00:00Z",
            "2026-01-01T24:00:00Z",
            "2026-01-01T00:00:00",
            "2026-01-01T00:00:00.Z",
            "2026-01-01T00:00:00+2:00",
            "9999-12-31T23:59:59-00:01",
            "0000-01-01T00:00:00+10:00",
            "9999-12-31T23:59:60Z",
            "2026-01-01",
            "",
        ] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn agrees_with_chrono(micros in -62_135_596_800_000_000_i64..253_402_300_800_000_000) {
            let theirs = DateTime::from_timestamp_micros(micros).expect("in range");
            let text = theirs.to_rfc3339_opts(SecondsFormat::Micros, true);
            prop_assert_eq!(Timestamp(micros).to_string(), text.clone());
            prop_assert_eq!(text.parse(), Ok(Timestamp(micros)));
        }
    }
}
