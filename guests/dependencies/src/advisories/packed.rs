//! Reads OSV files that are too large for memory as a stream, some records at a time.

use std::fmt;
use std::ops::Range;

use artifact_formats::stream::{self, StreamError};
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::reading::{ImportFailure, STREAM};

/// Some records of an OSV file, as unparsed JSON.
#[derive(Debug, Default)]
pub(super) struct RawOsvRecords {
    pub(super) records: Vec<Box<RawValue>>,
    /// Size of `records`, in bytes.
    bytes: usize,
    /// Number of all records in the OSV file, including those that were not returned.
    pub(super) total: usize,
}

/// Returns the records at these indexes of a compressed OSV file; the first of them, if they reach
/// `most_bytes` bytes. The file is an array of records, or an object with the array `vulns`.
pub(super) fn records(
    packed: &[u8],
    places: Range<usize>,
    most_bytes: usize,
) -> Result<RawOsvRecords, ImportFailure> {
    let wrong = |text: String| ImportFailure::at("", text);
    let parse = |reader: &mut dyn std::io::Read| {
        let mut deserializer = serde_json::Deserializer::from_reader(reader);
        let records = RecordVisitor { places, most_bytes }.deserialize(&mut deserializer)?;
        deserializer.end().map(|()| records)
    };
    let parsed = stream::parse(packed, STREAM, |_| {}, parse);
    let parsed = parsed.map_err(|breach: StreamError| wrong(breach.to_string()))?;
    parsed.result.map_err(|error: serde_json::Error| wrong(format!("{error}.")))
}

/// Deserializes the records at these indexes of an OSV file, until they have this size, and skips
/// the others.
#[derive(Clone)]
struct RecordVisitor {
    places: Range<usize>,
    most_bytes: usize,
}

impl<'de> DeserializeSeed<'de> for RecordVisitor {
    type Value = RawOsvRecords;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<RawOsvRecords, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for RecordVisitor {
    type Value = RawOsvRecords;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of advisories, or an object with one as `vulns`")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<RawOsvRecords, A::Error> {
        let mut read = RawOsvRecords::default();
        loop {
            let more = if self.places.contains(&read.total) && read.bytes < self.most_bytes {
                let record = items.next_element::<Box<RawValue>>()?;
                read.bytes += record.as_ref().map_or(0, |record| record.get().len());
                record.map(|record| read.records.push(record)).is_some()
            } else {
                items.next_element::<IgnoredAny>()?.is_some()
            };
            if !more {
                return Ok(read);
            }
            read.total += 1;
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<RawOsvRecords, A::Error> {
        let mut read = RawOsvRecords::default();
        while let Some(name) = members.next_key::<String>()? {
            if name == "vulns" {
                read = members.next_value_seed(self.clone())?;
            } else {
                members.next_value::<IgnoredAny>()?;
            }
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::gzip;

    const MOST_BYTES: usize = 1 << 10;

    #[test]
    fn records_are_read_by_their_places() {
        for text in [r#"[{"a":1}, 2, [3], "4"]"#, r#"{"x":[],"vulns":[{"a":1},2,[3],"4"]}"#] {
            let read = records(&gzip(text), 1..3, MOST_BYTES).expect("records");
            let texts: Vec<&str> = read.records.iter().map(|record| record.get()).collect();
            assert_eq!((texts, read.total), (vec!["2", "[3]"], 4), "{text}");
        }
        assert_eq!(records(&gzip("{}"), 0..9, MOST_BYTES).expect("none").total, 0);
    }

    #[test]
    fn records_are_returned_until_they_need_too_much_memory() {
        let record = format!("\"{}\"", "x".repeat(MOST_BYTES / 2));
        let text = format!("[{}]", [record.as_str(); 5].join(","));
        for (places, expected) in [(0..5, 2), (3..5, 2), (4..5, 1), (5..9, 0)] {
            let read = records(&gzip(&text), places, MOST_BYTES).expect("records");
            assert_eq!((read.records.len(), read.total), (expected, 5));
        }
    }

    #[test]
    fn what_is_no_list_of_records_is_refused() {
        for text in ["", "[1", "[1]]", "1", r#"{"vulns": 7}"#] {
            assert!(records(&gzip(text), 0..9, MOST_BYTES).is_err(), "{text}");
        }
    }
}
