//! Checks whether a version can replace the live one without breaking others:
//! clients, by the operations' requests and responses; other areas, by the
//! collections they read and the events they receive; and the area itself, by
//! the documents and jobs of the previous version.

mod routes;
mod schema;
mod storage;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

use crate::contract::ContractLimits;
use assurance_core::domain::manifest::{Capability, Manifest};

/// Effect of a new version's difference on those who rely on the live version.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Compatibility {
    /// Clients, other areas and the area's own data are not affected.
    Safe,
    /// Clients, subscribers to events or the area's own data may be affected;
    /// an operator can force the deployment.
    Breaking,
    /// Other areas that read this area's documents or blobs would fail; the
    /// deployment cannot be forced.
    Forbidden,
}

/// Kind of item that differs between two versions of an area.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChangeSubject {
    /// An operation, named by its operation id.
    Operation,
    /// An event that the area publishes.
    Event,
    /// A collection of documents.
    Collection,
    /// A kind of job.
    Job,
    /// The blobs of the area.
    Blobs,
}

/// One difference between the manifests of two versions of an area.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct ContractChange {
    /// Effect of the difference on clients and other areas.
    pub verdict: Compatibility,
    /// The kind of item that differs.
    pub subject: ChangeSubject,
    /// Name of the changed item: an operation id, an event, a collection or a
    /// job kind.
    pub name: String,
    /// Part of the changed item, such as `request` or `response`; empty for the
    /// whole item.
    pub part: &'static str,
    /// Location of the change in `part`: a JSON Pointer, with `*` for any
    /// element; empty for the whole part.
    pub pointer: String,
    /// Description of the change, for a person.
    pub what: String,
}

impl fmt::Display for ContractChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let subject = match self.subject {
            ChangeSubject::Operation => "operation",
            ChangeSubject::Event => "event",
            ChangeSubject::Collection => "collection",
            ChangeSubject::Job => "job",
            ChangeSubject::Blobs => "blobs of",
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

/// All differences between the manifests of the live version and of a
/// candidate.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, JsonSchema)]
pub struct CompatibilityReport {
    /// The differences between the two versions, in the order of the manifests.
    pub differences: Vec<ContractChange>,
}

impl CompatibilityReport {
    /// Returns the most severe effect of all differences.
    #[must_use]
    pub fn verdict(&self) -> Compatibility {
        self.differences.iter().map(|found| found.verdict).max().unwrap_or(Compatibility::Safe)
    }

    /// Returns the differences that are not safe.
    pub fn broken(&self) -> impl Iterator<Item = &ContractChange> {
        self.differences.iter().filter(|found| found.verdict != Compatibility::Safe)
    }
}

/// Compares a candidate version with the live version of the same area, on a
/// host with the default limits.
#[must_use]
pub fn compare(live: &Manifest, candidate: &Manifest) -> CompatibilityReport {
    compare_within(&ContractLimits::default(), live, candidate)
}

/// Compares a candidate version with the live version of the same area, on a
/// host with these limits.
#[must_use]
pub fn compare_within(
    limits: &ContractLimits,
    live: &Manifest,
    candidate: &Manifest,
) -> CompatibilityReport {
    let mut differences = Comparison { all: Vec::new(), steps: MAX_STEPS, limits: *limits };
    routes::compare(&live.routes, &candidate.routes, &mut differences);
    storage::events(&live.publishes, &candidate.publishes, &mut differences);
    storage::blobs(&live.blob_readers, &candidate.blob_readers, &mut differences);
    storage::collections(&live.collections, &candidate.collections, &mut differences);
    storage::jobs(&live.jobs, &candidate.jobs, &mut differences);
    CompatibilityReport { differences: differences.all }
}

/// Returns the capabilities that the candidate version requests but the live
/// version does not.
#[must_use]
pub fn additional_capabilities(live: &Manifest, candidate: &Manifest) -> BTreeSet<Capability> {
    let granted = live.asks();
    candidate.asks().into_iter().filter(|asked| !granted.contains(asked)).collect()
}

/// Maximum number of steps for comparing all schemas of two versions; these
/// steps take some seconds. Schemas beyond it are reported as different.
const MAX_STEPS: usize = 2_000_000;

/// State of comparing two manifests: the differences so far, the remaining
/// steps, and the limits of the host.
struct Comparison {
    all: Vec<ContractChange>,
    steps: usize,
    limits: ContractLimits,
}

/// Adds the differences of one item (operation, event, collection, job kind) to
/// a comparison.
struct ChangeCollector<'a> {
    subject: ChangeSubject,
    name: &'a str,
    found: &'a mut Comparison,
}

impl ChangeCollector<'_> {
    fn safe(&mut self, what: impl Into<String>) {
        self.at(Compatibility::Safe, "", String::new(), what.into());
    }

    fn breaking(&mut self, part: &'static str, pointer: &str, what: impl Into<String>) {
        self.at(Compatibility::Breaking, part, pointer.to_owned(), what.into());
    }

    fn at(&mut self, verdict: Compatibility, part: &'static str, pointer: String, what: String) {
        let (subject, name) = (self.subject, self.name.to_owned());
        self.found.all.push(ContractChange { verdict, subject, name, part, pointer, what });
    }

    /// Compares the live and the candidate's schema of a part, and adds a
    /// difference with this verdict for each mismatch.
    fn schemas(
        &mut self,
        verdict: Compatibility,
        part: &'static str,
        side: schema::SchemaUser,
        (live, candidate): (&serde_json::Value, &serde_json::Value),
    ) {
        for mismatch in schema::mismatches(side, live, candidate, &mut self.found.steps) {
            self.at(verdict, part, mismatch.pointer, mismatch.what);
        }
    }
}
