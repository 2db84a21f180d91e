//! When a schedule is due: a rule of local dates, and the moment at which each
//! of them has the schedule's time of day.
//!
//! Every local date that the rule names has exactly one moment: in a gap of
//! the zone's clocks the offset before it counts, in a fold the first of the
//! two. A date that the zone never had, as 30 December 2011 in Apia, has none.

use area_sdk::Scope;
use area_sdk::prelude::*;
use area_sdk::wit::assurance::area::calendar::{self, Civil};
use jiff::Span;
use jiff::civil::{Date, Weekday};

/// How often a schedule is due.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Cadence {
    /// Every day.
    Daily,
    /// On one day of the week.
    Weekly,
    /// On one day of the month, or on the month's last where it is shorter.
    Monthly,
}

/// The rule.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Recurrence {
    pub(crate) cadence: Cadence,
    pub(crate) local_hour: u8,
    pub(crate) local_minute: u8,
    /// An IANA zone.
    pub(crate) timezone: String,
    /// 1 for Monday to 7 for Sunday, where the cadence is weekly.
    pub(crate) weekday: Option<i8>,
    /// 1 to 31, where the cadence is monthly.
    pub(crate) day_of_month: Option<i8>,
}

/// A local date, and the moment at which the schedule is due on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Slot {
    #[schemars(with = "String")]
    pub(crate) date: Date,
    pub(crate) due_at: Timestamp,
}

/// The first and the last minute of a day.
const ENDS_OF_DAY: [(u8, u8); 2] = [(0, 0), (23, 59)];

impl Recurrence {
    /// Takes weekday and day of the month from a date where the cadence wants
    /// them and nothing is said, and drops them where it does not.
    pub(crate) fn anchor(&mut self, date: Date) {
        let (weekday, day) = (date.weekday().to_monday_one_offset(), date.day());
        let weekly = self.cadence == Cadence::Weekly;
        let monthly = self.cadence == Cadence::Monthly;
        self.weekday = weekly.then(|| self.weekday.unwrap_or(weekday));
        self.day_of_month = monthly.then(|| self.day_of_month.unwrap_or(day));
    }

    /// The first slot after a moment, on a date after `done`.
    pub(crate) fn next_after(
        &self,
        scope: &Scope,
        moment: Timestamp,
        done: Option<Date>,
    ) -> Result<Slot> {
        // In a gap at midnight yesterday's moment can be today.
        let mut date = local_date(scope, &self.timezone, moment)?.yesterday().map_err(too_far)?;
        if let Some(done) = done {
            date = date.max(done.tomorrow().map_err(too_far)?);
        }
        loop {
            date = self.on_or_after(date)?;
            if let Some(due_at) = self.due_at(scope, date)?.filter(|due_at| *due_at > moment) {
                return Ok(Slot { date, due_at });
            }
            date = date.tomorrow().map_err(too_far)?;
        }
    }

    /// The last slot that is not after a moment.
    pub(crate) fn last_until(&self, scope: &Scope, moment: Timestamp) -> Result<Slot> {
        let mut date = local_date(scope, &self.timezone, moment)?;
        loop {
            date = self.on_or_before(date)?;
            if let Some(due_at) = self.due_at(scope, date)?.filter(|due_at| *due_at <= moment) {
                return Ok(Slot { date, due_at });
            }
            date = date.yesterday().map_err(too_far)?;
        }
    }

    fn on_or_after(&self, date: Date) -> Result<Date> {
        match self.cadence {
            Cadence::Daily => Ok(date),
            Cadence::Weekly => {
                let days = self.weekday().since(date.weekday());
                date.checked_add(Span::new().days(days)).map_err(too_far)
            }
            Cadence::Monthly => {
                let this = self.in_month_of(date);
                if this >= date {
                    return Ok(this);
                }
                let next = date.first_of_month().checked_add(Span::new().months(1));
                Ok(self.in_month_of(next.map_err(too_far)?))
            }
        }
    }

    fn on_or_before(&self, date: Date) -> Result<Date> {
        match self.cadence {
            Cadence::Daily => Ok(date),
            Cadence::Weekly => {
                let days = date.weekday().since(self.weekday());
                date.checked_sub(Span::new().days(days)).map_err(too_far)
            }
            Cadence::Monthly => {
                let this = self.in_month_of(date);
                if this <= date {
                    return Ok(this);
                }
                let before = date.first_of_month().checked_sub(Span::new().months(1));
                Ok(self.in_month_of(before.map_err(too_far)?))
            }
        }
    }

    fn weekday(&self) -> Weekday {
        let number = self.weekday.unwrap_or(1);
        Weekday::from_monday_one_offset(number).unwrap_or(Weekday::Monday)
    }

    /// The rule's date in the month of another.
    fn in_month_of(&self, date: Date) -> Date {
        let day = self.day_of_month.unwrap_or(1).clamp(1, date.days_in_month());
        date.with().day(day).build().unwrap_or(date)
    }

    /// The moment at which a date has the rule's time; nothing where the zone
    /// never had that date.
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

/// The date that a zone has at a moment.
pub(crate) fn local_date(scope: &Scope, zone: &str, moment: Timestamp) -> Result<Date> {
    let local = scope.local(zone, moment).map_err(refused)?;
    let part = |number: u8| i8::try_from(number).unwrap_or_default();
    Date::new(local.year, part(local.month), part(local.day)).map_err(too_far)
}

fn refused(error: calendar::Error) -> Problem {
    match error {
        calendar::Error::UnknownZone => unknown_zone(),
        calendar::Error::OutOfRange => out_of_range(),
    }
}

/// There is no such zone.
pub(crate) fn unknown_zone() -> Problem {
    let message = "This is no zone of the IANA time zone database.";
    Problem::validation("/timezone", message).hint("Send a name such as `Europe/Berlin` or `UTC`.")
}

fn too_far(_: jiff::Error) -> Problem {
    out_of_range()
}

fn out_of_range() -> Problem {
    Problem::validation("", "The calendar ends before this schedule is due.")
}
