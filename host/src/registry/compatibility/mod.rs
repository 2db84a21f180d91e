//! Whether a version can take the place of the live one without anybody
//! noticing: clients by the operations' requests and responses, other areas by
//! the collections they read and the events they hear, the area itself by the
//! documents and jobs that its predecessor left.

mod routes;
mod schema;
mod storage;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

use crate::domain::manifest::{Capability, Manifest};

/// What a difference means for those who rely on the live version.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Nobody can tell.
    Safe,
    /// Somebody may fail; an operator may want it nevertheless.
    Breaking,
    /// Other areas would fail, who cannot know; nobody may want it.
    Forbidden,
}

/// What a difference is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Subject {
    /// A route, by its operation id.
    Operation,
    /// A published event.
    Event,
    /// A collection.
    Collection,
    /// A kind of job.
    Job,
    /// The area's stored content.
    Blobs,
}

/// One thing that is not as it was.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct Difference {
    /// What it means.
    pub verdict: Verdict,
    /// What it is about.
    pub subject: Subject,
    /// Which one.
    pub name: String,
    /// Which part of it, such as `request` or `response`.
    pub part: &'static str,
    /// Where in that part: a JSON Pointer into its values, `*` for any
    /// element; empty: the whole.
    pub pointer: String,
    /// What is different, in words.
    pub what: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let subject = match self.subject {
            Subject::Operation => "operation",
            Subject::Event => "event",
            Subject::Collection => "collection",
            Subject::Job => "job",
            Subject::Blobs => "blobs of",
        };
        write!(f, "{subject} {}", self.name)?;
        if !self.part.is_empty() {
            write!(f, ", {}", self.part)?;
        }
        if !self.pointer.is_empty() {
            write!(f, " {}", self.pointer)?;
        }
        write!(f, ": {}", self.what)
    }
}

/// Everything that is different between two versions.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, JsonSchema)]
pub struct Report {
    /// In the order of the manifests.
    pub differences: Vec<Difference>,
}

impl Report {
    /// The worst of the differences.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        self.differences.iter().map(|found| found.verdict).max().unwrap_or(Verdict::Safe)
    }

    /// The differences that stand in the way.
    pub fn broken(&self) -> impl Iterator<Item = &Difference> {
        self.differences.iter().filter(|found| found.verdict != Verdict::Safe)
    }
}

/// Compares a candidate with the live version of the same area.
#[must_use]
pub fn compare(live: &Manifest, candidate: &Manifest) -> Report {
    let mut differences = Differences { all: Vec::new(), steps: MAX_STEPS };
    routes::compare(&live.routes, &candidate.routes, &mut differences);
    storage::events(&live.publishes, &candidate.publishes, &mut differences);
    storage::blobs(&live.blob_readers, &candidate.blob_readers, &mut differences);
    storage::collections(&live.collections, &candidate.collections, &mut differences);
    storage::jobs(&live.jobs, &candidate.jobs, &mut differences);
    Report { differences: differences.all }
}

/// The capabilities a candidate wants and the live version did not.
#[must_use]
pub fn asks_beyond(live: &Manifest, candidate: &Manifest) -> BTreeSet<Capability> {
    let granted = live.asks();
    candidate.asks().into_iter().filter(|asked| !granted.contains(asked)).collect()
}

/// Steps that all schemas of two versions may take to compare, some seconds.
/// What is beyond them is reported as different.
const MAX_STEPS: usize = 2_000_000;

/// What a comparison has found, and the steps that it has left.
struct Differences {
    all: Vec<Difference>,
    steps: usize,
}

/// Collects the differences of one subject.
struct Findings<'a> {
    subject: Subject,
    name: &'a str,
    found: &'a mut Differences,
}

impl Findings<'_> {
    fn safe(&mut self, what: impl Into<String>) {
        self.at(Verdict::Safe, "", String::new(), what.into());
    }

    fn breaking(&mut self, part: &'static str, pointer: &str, what: impl Into<String>) {
        self.at(Verdict::Breaking, part, pointer.to_owned(), what.into());
    }

    fn at(&mut self, verdict: Verdict, part: &'static str, pointer: String, what: String) {
        let (subject, name) = (self.subject, self.name.to_owned());
        self.found.all.push(Difference { verdict, subject, name, part, pointer, what });
    }

    /// What a schema's readers or writers notice.
    fn schemas(
        &mut self,
        verdict: Verdict,
        part: &'static str,
        side: schema::Side,
        (live, candidate): (&serde_json::Value, &serde_json::Value),
    ) {
        for misfit in schema::misfits(side, live, candidate, &mut self.found.steps) {
            self.at(verdict, part, misfit.pointer, misfit.what);
        }
    }
}
