//! Interface `calendar`: time zone arithmetic with the embedded IANA database,
//! the same on every machine.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::{TimeZone, TimeZoneDatabase};

use super::super::bindings::assurance::area::calendar::{Civil, Error, Host};
use super::super::instance::CallState;
use super::{CapabilityError, convert_error};
use assurance_core::domain::manifest::Capability;

impl Host for CallState {
    fn local(&mut self, zone: String, at: i64) -> Result<Civil, CapabilityError<Error>> {
        self.count(Capability::Calendar)?;
        local(&self.shared.zones, &zone, at).map_err(CapabilityError::Answer)
    }

    fn resolve(&mut self, zone: String, at: Civil) -> Result<i64, CapabilityError<Error>> {
        self.count(Capability::Calendar)?;
        resolve(&self.shared.zones, &zone, &at).map_err(CapabilityError::Answer)
    }

    convert_error!();
}

fn zone(zones: &TimeZoneDatabase, name: &str) -> Result<TimeZone, Error> {
    zones.get(name).map_err(|_| Error::UnknownZone)
}

fn local(zones: &TimeZoneDatabase, name: &str, at: i64) -> Result<Civil, Error> {
    let moment = Timestamp::from_microsecond(at).map_err(|_| Error::OutOfRange)?;
    let local = zone(zones, name)?.to_datetime(moment);
    Ok(Civil {
        year: local.year(),
        month: unsigned(local.month()),
        day: unsigned(local.day()),
        hour: unsigned(local.hour()),
        minute: unsigned(local.minute()),
        second: unsigned(local.second()),
        weekday: unsigned(local.weekday().to_monday_one_offset()),
    })
}

fn resolve(zones: &TimeZoneDatabase, name: &str, at: &Civil) -> Result<i64, Error> {
    let zone = zone(zones, name)?;
    let local = DateTime::new(
        at.year,
        signed(at.month)?,
        signed(at.day)?,
        signed(at.hour)?,
        signed(at.minute)?,
        signed(at.second)?,
        0,
    );
    let local = local.map_err(|_| Error::OutOfRange)?;
    let moment = zone.to_ambiguous_timestamp(local).compatible();
    moment.map(Timestamp::as_microsecond).map_err(|_| Error::OutOfRange)
}

fn unsigned(part: i8) -> u8 {
    part.unsigned_abs()
}

fn signed(part: u8) -> Result<i8, Error> {
    i8::try_from(part).map_err(|_| Error::OutOfRange)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn civil(year: i16, month: u8, day: u8, hour: u8, minute: u8) -> Civil {
        Civil { year, month, day, hour, minute, second: 0, weekday: 0 }
    }

    fn check(zone: &str, at: Civil, expected: &str) {
        let moment = resolve(&TimeZoneDatabase::bundled(), zone, &at).unwrap();
        let moment = Timestamp::from_microsecond(moment).unwrap().to_string();
        assert_eq!(moment, expected, "{zone}");
    }

    #[test]
    fn a_local_time_has_one_moment() {
        check("Europe/Berlin", civil(2026, 1, 15, 12, 0), "2026-01-15T11:00:00Z");
        check("Asia/Kathmandu", civil(2026, 1, 15, 12, 0), "2026-01-15T06:15:00Z");
    }

    #[test]
    fn in_a_gap_the_offset_before_it_counts() {
        check("Europe/Berlin", civil(2026, 3, 29, 2, 30), "2026-03-29T01:30:00Z");
    }

    #[test]
    fn in_a_fold_the_first_moment_counts() {
        check("Europe/Berlin", civil(2026, 10, 25, 2, 30), "2026-10-25T00:30:00Z");
    }

    #[test]
    fn nonsense_is_told_by_kind() {
        let zones = TimeZoneDatabase::bundled();
        assert!(matches!(local(&zones, "Mars/Olympus", 0), Err(Error::UnknownZone)));
        assert!(matches!(local(&zones, "UTC", i64::MAX), Err(Error::OutOfRange)));
        let bad = civil(2026, 2, 30, 0, 0);
        assert!(matches!(resolve(&zones, "UTC", &bad), Err(Error::OutOfRange)));
    }

    #[test]
    fn a_moment_has_one_local_time() {
        let local = local(&TimeZoneDatabase::bundled(), "America/New_York", 0).unwrap();
        assert_eq!((local.year, local.month, local.day, local.hour), (1969, 12, 31, 19));
        assert_eq!(local.weekday, 3);
    }
}
