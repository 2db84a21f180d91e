//! The rows of the report: medians of the rounds of each measurement.

use serde::Serialize;

use crate::bench::load::LoadResults;
use crate::bench::report::{Latency, median};

/// What is measured, such as webhook deliveries, on which database, and for which build of the
/// service or which other program.
#[derive(Clone, PartialEq, Serialize)]
pub(super) struct MeasuredSubject {
    pub(super) what: String,
    pub(super) backend: &'static str,
    /// `now` or `before` for a build of the service, or the name of a peer.
    pub(super) whose: &'static str,
}

/// Results of one round of a measurement.
#[derive(Clone, Serialize)]
pub(super) struct SubjectRoundResults {
    pub(super) per_second: f64,
    /// Processor time of the server or peer for one operation, in microseconds.
    pub(super) cpu_us: f64,
    /// Processor time of PostgreSQL for one operation, in microseconds.
    pub(super) database_cpu_us: f64,
    pub(super) latency: Option<Latency>,
    /// Number of jobs that waited at the beginning of a drain, or at the end of a load.
    pub(super) waiting: u64,
    /// Number of requests that failed.
    pub(super) errors: u64,
}

impl SubjectRoundResults {
    /// Converts the results of a load to the results of a round.
    pub(super) fn of_load(load: &LoadResults, database_cpu_us: f64, waiting: u64) -> Self {
        Self {
            per_second: load.requests_per_second,
            cpu_us: load.cpu_us_per_request,
            database_cpu_us,
            latency: Some(load.latency),
            waiting,
            errors: load.errors,
        }
    }
}

/// All measurements with their rounds, in the order in which their first round ended.
#[derive(Default, Serialize)]
pub(super) struct MeasurementTable(Vec<SubjectMeasurement>);

#[derive(Serialize)]
struct SubjectMeasurement {
    subject: MeasuredSubject,
    rounds: Vec<SubjectRoundResults>,
}

impl MeasurementTable {
    /// Adds the results of one round to its measurement.
    pub(super) fn add(&mut self, subject: MeasuredSubject, figures: SubjectRoundResults) {
        match self.0.iter_mut().find(|row| row.subject == subject) {
            Some(row) => row.rounds.push(figures),
            None => self.0.push(SubjectMeasurement { subject, rounds: vec![figures] }),
        }
    }

    /// Prints the measurements as a table.
    pub(super) fn print(&self) {
        println!("| what | database | whose | per second | CPU µs | database's CPU µs | |");
        println!("|---|---|---|---|---|---|---|");
        for row in &self.0 {
            row.print();
        }
    }
}

impl SubjectMeasurement {
    fn print(&self) {
        let of = |figure: &dyn Fn(&SubjectRoundResults) -> f64| {
            median(self.rounds.iter().map(figure).collect())
        };
        let latency = |figure: fn(Latency) -> f64| {
            let known: Vec<f64> =
                self.rounds.iter().filter_map(|one| one.latency.map(figure)).collect();
            (!known.is_empty()).then(|| median(known))
        };
        let mut notes = Vec::new();
        if let (Some(p50), Some(p99)) = (latency(|one| one.p50_ms), latency(|one| one.p99_ms)) {
            notes.push(format!("p50 {p50:.1} ms, p99 {p99:.1} ms"));
        }
        let waiting = self.rounds.iter().map(|one| one.waiting).max().unwrap_or_default();
        if waiting > 0 {
            notes.push(format!("{waiting} waiting"));
        }
        let errors: u64 = self.rounds.iter().map(|one| one.errors).sum();
        if errors > 0 {
            notes.push(format!("{errors} FAILED"));
        }
        let MeasuredSubject { what, backend, whose } = &self.subject;
        println!(
            "| {what} | {backend} | {whose} | {:.0} | {:.0} | {:.0} | {} |",
            of(&|one| one.per_second),
            of(&|one| one.cpu_us),
            of(&|one| one.database_cpu_us),
            notes.join("; "),
        );
    }
}
