//! Tests of due times against the rules of the time zone database.

use std::sync::{Arc, Mutex};

use area_sdk::prelude::*;
use area_sdk::testing::{FakeHost, Request};
use jiff::civil::{Date, date};
use proptest::prelude::*;

use crate::schedules::recurrence::{Cadence, Occurrence, Recurrence};

/// Runs a function with the context of a request, and returns its result.
fn with_scope<T: Send + 'static>(run: impl Fn(&Ctx) -> Result<T> + 'static) -> T {
    let result = Arc::new(Mutex::new(None));
    let place = Arc::clone(&result);
    let handler = move |ctx: &Ctx| {
        let value = run(ctx)?;
        *place.lock().expect("one thread") = Some(value);
        Ok(NoContent)
    };
    let route = get("run", "/v1/workspaces/{workspace_id}/run").handler(handler);
    let area = Area::new("test", "1.0.0").uses(&[Capability::Calendar]).route(route);
    FakeHost::new(area).call(Request::to("run")).expect("no refusal");
    let mut place = result.lock().expect("one thread");
    place.take().expect("it ran")
}

fn rule(zone: &str, (hour, minute): (u8, u8)) -> Recurrence {
    Recurrence {
        cadence: Cadence::Daily,
        local_hour: hour,
        local_minute: minute,
        timezone: zone.to_owned(),
        weekday: None,
        day_of_month: None,
    }
}

fn monthly(day: i8) -> Recurrence {
    let rule = rule("UTC", (12, 0));
    Recurrence { cadence: Cadence::Monthly, day_of_month: Some(day), ..rule }
}

/// Returns the first slots after a time.
fn slots(rule: &Recurrence, after: Timestamp, count: usize) -> Vec<Occurrence> {
    let rule = rule.clone();
    with_scope(move |ctx| {
        let mut slots: Vec<Occurrence> = Vec::new();
        while slots.len() < count {
            let last = slots.last().map_or(after, |slot| slot.due_at);
            slots.push(rule.next_after(ctx, last, None)?);
        }
        Ok(slots)
    })
}

fn check(rule: &Recurrence, after: &str, expected: &[(&str, &str)]) {
    let after = after.parse().expect("a moment");
    let slots = slots(rule, after, expected.len());
    let slots: Vec<(String, String)> =
        slots.iter().map(|slot| (slot.date.to_string(), slot.due_at.to_string())).collect();
    let expected: Vec<(String, String)> = expected
        .iter()
        .map(|(date, due_at)| ((*date).to_owned(), due_at.replace('Z', ":00.000000Z")))
        .collect();
    assert_eq!(slots, expected, "{rule:?}");
}

#[test]
fn a_date_that_apia_never_had_has_no_run() {
    let expected = [("2011-12-29", "2011-12-29T20:00Z"), ("2011-12-31", "2011-12-30T20:00Z")];
    check(&rule("Pacific/Apia", (10, 0)), "2011-12-29T00:00:00Z", &expected);
}

#[test]
fn the_dates_that_zones_have_never_had_are_left_out() {
    // All skipped dates since 1970, without older names of the zones.
    let never = [
        ("Pacific/Kwajalein", date(1993, 8, 21)),
        ("Pacific/Kanton", date(1994, 12, 31)),
        ("Pacific/Kiritimati", date(1994, 12, 31)),
        ("Pacific/Apia", date(2011, 12, 30)),
        ("Pacific/Fakaofo", date(2011, 12, 30)),
    ];
    for (zone, never) in never {
        let rule = rule(zone, (2, 30));
        let begin = never.to_zoned_datetime(jiff::tz::TimeZone::UTC).expect("a moment").timestamp();
        let begin = Timestamp(begin.as_microsecond()).plus_seconds(-10 * 86_400);
        let dates: Vec<Date> = slots(&rule, begin, 20).iter().map(|slot| slot.date).collect();
        let expected: Vec<Date> = dates[0]
            .series(jiff::Span::new().days(1))
            .filter(|date| *date != never)
            .take(20)
            .collect();
        assert_eq!(dates, expected, "{zone}");
        assert!(dates[0] < never && never < dates[19]);
    }
}

#[test]
fn lord_howe_changes_by_half_an_hour() {
    let gap = [
        ("2026-10-03", "2026-10-02T15:45Z"),
        ("2026-10-04", "2026-10-03T15:45Z"),
        ("2026-10-05", "2026-10-04T15:15Z"),
    ];
    check(&rule("Australia/Lord_Howe", (2, 15)), "2026-10-02T12:00:00Z", &gap);
    let fold = [
        ("2026-04-04", "2026-04-03T14:45Z"),
        ("2026-04-05", "2026-04-04T14:45Z"),
        ("2026-04-06", "2026-04-05T15:15Z"),
    ];
    check(&rule("Australia/Lord_Howe", (1, 45)), "2026-04-03T12:00:00Z", &fold);
}

#[test]
fn new_york_and_berlin_have_one_run_at_each_change() {
    let new_york = |hour| rule("America/New_York", (hour, 30));
    let gap = [("2026-03-08", "2026-03-08T07:30Z"), ("2026-03-09", "2026-03-09T06:30Z")];
    check(&new_york(2), "2026-03-08T00:00:00Z", &gap);
    let fold = [("2026-11-01", "2026-11-01T05:30Z"), ("2026-11-02", "2026-11-02T06:30Z")];
    check(&new_york(1), "2026-11-01T05:00:00Z", &fold);
    let berlin = rule("Europe/Berlin", (2, 30));
    let gap = [("2026-03-29", "2026-03-29T01:30Z"), ("2026-03-30", "2026-03-30T00:30Z")];
    check(&berlin, "2026-03-29T00:00:00Z", &gap);
    let fold = [("2026-10-25", "2026-10-25T00:30Z"), ("2026-10-26", "2026-10-26T01:30Z")];
    check(&berlin, "2026-10-25T00:00:00Z", &fold);
}

#[test]
fn casablanca_goes_back_for_ramadan() {
    let casablanca = rule("Africa/Casablanca", (2, 30));
    let fold = [("2026-02-15", "2026-02-15T01:30Z"), ("2026-02-16", "2026-02-16T02:30Z")];
    check(&casablanca, "2026-02-15T00:00:00Z", &fold);
    let gap = [("2026-03-22", "2026-03-22T02:30Z"), ("2026-03-23", "2026-03-23T01:30Z")];
    check(&casablanca, "2026-03-22T00:00:00Z", &gap);
}

#[test]
fn santiago_skips_midnight_and_repeats_the_hour_before_it() {
    let gap = [
        ("2026-09-05", "2026-09-05T04:30Z"),
        ("2026-09-06", "2026-09-06T04:30Z"),
        ("2026-09-07", "2026-09-07T03:30Z"),
    ];
    check(&rule("America/Santiago", (0, 30)), "2026-09-05T00:00:00Z", &gap);
    let fold = [("2026-04-04", "2026-04-05T02:30Z"), ("2026-04-05", "2026-04-06T03:30Z")];
    check(&rule("America/Santiago", (23, 30)), "2026-04-04T12:00:00Z", &fold);
}

#[test]
fn a_gap_that_ends_at_midnight_keeps_its_date() {
    // On 4 May 2018 Pyongyang's clocks went from 23:30 to midnight.
    let expected = [
        ("2018-05-03", "2018-05-03T15:15Z"),
        ("2018-05-04", "2018-05-04T15:15Z"),
        ("2018-05-05", "2018-05-05T14:45Z"),
    ];
    check(&rule("Asia/Pyongyang", (23, 45)), "2018-05-03T00:00:00Z", &expected);
}

#[test]
fn weekly_runs_keep_their_weekday() {
    let rule = rule("Europe/Berlin", (9, 0));
    let friday = Recurrence { cadence: Cadence::Weekly, weekday: Some(5), ..rule };
    let expected = [
        ("2026-03-20", "2026-03-20T08:00Z"),
        ("2026-03-27", "2026-03-27T08:00Z"),
        ("2026-04-03", "2026-04-03T07:00Z"),
    ];
    check(&friday, "2026-03-14T00:00:00Z", &expected);
}

#[test]
fn monthly_runs_clamp_to_the_months_last_day() {
    let dates = |day, after: &str| -> Vec<Date> {
        let slots = slots(&monthly(day), after.parse().expect("a moment"), 4);
        slots.iter().map(|slot| slot.date).collect()
    };
    let leap = [date(2028, 1, 31), date(2028, 2, 29), date(2028, 3, 31), date(2028, 4, 30)];
    assert_eq!(dates(31, "2028-01-01T00:00:00Z"), leap);
    let plain = [date(2027, 1, 29), date(2027, 2, 28), date(2027, 3, 29), date(2027, 4, 29)];
    assert_eq!(dates(29, "2027-01-01T00:00:00Z"), plain);
    let century = [date(2100, 2, 28), date(2100, 3, 29), date(2100, 4, 29), date(2100, 5, 29)];
    assert_eq!(dates(29, "2100-02-01T00:00:00Z"), century);
}

#[test]
fn a_date_that_is_done_is_not_due_again() {
    let rule = rule("UTC", (15, 0));
    let next = with_scope(move |ctx| {
        rule.next_after(
            ctx,
            "2026-05-01T12:00:00Z".parse().expect("a moment"),
            Some(date(2026, 5, 1)),
        )
    });
    assert_eq!(next.due_at.to_string(), "2026-05-02T15:00:00.000000Z");
}

/// Returns the names of all zones of the time zone database.
fn zones() -> Vec<String> {
    jiff::tz::db().available().map(|name| name.to_string()).collect()
}

/// Whether a date exists in the time zone; some zones have skipped a date.
fn has(zone: &str, date: Date) -> bool {
    let midnight = date.in_tz(zone).and_then(|midnight| midnight.start_of_day());
    midnight.expect("a zone").date() == date
}

fn cadences() -> impl Strategy<Value = (Cadence, Option<i8>, Option<i8>)> {
    prop_oneof![
        2 => Just((Cadence::Daily, None, None)),
        1 => (1_i8..=7).prop_map(|day| (Cadence::Weekly, Some(day), None)),
        1 => (1_i8..=31).prop_map(|day| (Cadence::Monthly, None, Some(day))),
    ]
}

fn rules() -> impl Strategy<Value = Recurrence> {
    (prop::sample::select(zones()), 0_u8..24, 0_u8..60, cadences()).prop_map(
        |(zone, hour, minute, (cadence, weekday, day_of_month))| {
            let rule = rule(&zone, (hour, minute));
            Recurrence { cadence, weekday, day_of_month, ..rule }
        },
    )
}

/// Whether the rule contains this date.
fn names(rule: &Recurrence, date: Date) -> bool {
    match rule.cadence {
        Cadence::Daily => true,
        Cadence::Weekly => rule.weekday == Some(date.weekday().to_monday_one_offset()),
        Cadence::Monthly => {
            rule.day_of_month.map(|day| day.min(date.days_in_month())) == Some(date.day())
        }
    }
}

/// Returns the dates of the rule between two dates, without these two dates.
fn between(rule: &Recurrence, from: Date, to: Date) -> Vec<Date> {
    let days = from.series(jiff::Span::new().days(1)).skip(1).take_while(|date| *date < to);
    days.filter(|date| names(rule, *date)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn each_local_date_has_one_run_and_the_runs_ascend(
        rule in rules(), seconds in 0_i64..2_100_000_000,
    ) {
        let after = Timestamp(seconds * 1_000_000);
        let slots = slots(&rule, after, 40);
        prop_assert!(slots[0].due_at > after);
        prop_assert!(slots.iter().all(|slot| names(&rule, slot.date)));
        for pair in slots.windows(2) {
            prop_assert!(pair[0].due_at < pair[1].due_at, "{pair:?}");
            for left_out in between(&rule, pair[0].date, pair[1].date) {
                prop_assert!(!has(&rule.timezone, left_out), "{left_out} is left out");
            }
        }
    }

    #[test]
    fn looking_back_finds_what_looking_ahead_found(
        rule in rules(), seconds in 0_i64..2_100_000_000,
    ) {
        let slots = slots(&rule, Timestamp(seconds * 1_000_000), 10);
        let seen = slots.clone();
        let found = with_scope(move |ctx| {
            let at = |moment| rule.last_until(ctx, Timestamp(moment));
            let mut found = vec![at(seen[0].due_at.0)?];
            for slot in &seen[1..] {
                // One microsecond before a slot, the last slot is the previous slot.
                found.push(at(slot.due_at.0 - 1)?);
                found.push(at(slot.due_at.0)?);
            }
            Ok(found)
        });
        let expected = slots.windows(2).flat_map(|pair| [pair[0], pair[1]]);
        prop_assert_eq!(found, std::iter::once(slots[0]).chain(expected).collect::<Vec<_>>());
    }
}
