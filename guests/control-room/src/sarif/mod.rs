//! Parser of SARIF 2.1.0 logs as scanners write them. Section numbers in comments are those of the
//! standard.
//!
//! Missing members are accepted if nothing depends on them. An error is reported with a JSON
//! Pointer and a hint; if the log itself can be parsed, an error refuses only its run. A run with
//! one invalid result is refused completely, because the findings of skipped results would
//! otherwise count as no longer reported.

mod message;
mod model;
mod results;
mod rules;
mod uri;
mod weakness;

use std::collections::{BTreeSet, HashMap, HashSet};

use area_sdk::text::truncate_bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_path_to_error::Segment;

use crate::text::clean;
use model::{ExternalReferences, InlineExternalProperties, Log, Run};

pub(crate) use uri::is_absolute;

/// The only supported value of `version` in a SARIF log.
const VERSION: &str = "2.1.0";
/// Maximum size of a stored tool name, category or tool version of a run, in bytes.
const MOST_NAME_BYTES: usize = 200;

/// Maximum size of the JSON Pointer in an error, in bytes. The pointer contains member names of the
/// log.
const MOST_POINTER_BYTES: usize = 200;

/// Reason why a SARIF log, or a run in it, is refused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct SarifRefusal {
    pub(crate) code: &'static str,
    /// Description of the error and how to fix it.
    pub(crate) detail: String,
}

impl SarifRefusal {
    fn new(code: &'static str, detail: impl Into<String>) -> Self {
        Self { code, detail: detail.into() }
    }
}

/// The runs of a SARIF log, which are parsed one by one.
pub(crate) struct SarifRuns<'a> {
    runs: Vec<&'a RawValue>,
    /// Items of the log's `inlineExternalProperties`, by lower-case GUID.
    inline: HashMap<String, InlineExternalProperties<'a>>,
}

/// Tool and category of a run. A run replaces the findings of the previous run with the same tool
/// and category.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct ToolAndCategory {
    pub(crate) tool: String,
    /// `automationDetails.id` of the run up to its last slash; empty if it has none.
    pub(crate) category: String,
}

/// Paths and rules that a run of a scanner checked.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct ScanCoverage {
    /// Paths that the run checked: those in `artifacts`, and those in the locations of results.
    paths: BTreeSet<String>,
    /// Ids of the rules that the run's tool lists and checked; `None` if it lists none, so that any
    /// rule counts.
    rules: Option<BTreeSet<String>>,
}

impl ScanCoverage {
    /// Whether the run would have reported a finding of this rule in these files. A run that lists
    /// rules has checked no other rules.
    pub(crate) fn includes(&self, rule_id: &str, paths: &[String]) -> bool {
        let all_paths = !paths.is_empty() && paths.iter().all(|path| self.paths.contains(path));
        all_paths && self.rules.as_ref().is_none_or(|rules| is_listed(rules, rule_id))
    }
}

/// Whether the list contains a rule or one of its parents: `CA1000/1` is a rule below `CA1000`
/// (SARIF 3.52.4).
fn is_listed(rules: &BTreeSet<String>, rule_id: &str) -> bool {
    let parents = rule_id.match_indices('/').map(|(at, _)| &rule_id[..at]);
    parents.chain([rule_id]).any(|id| rules.contains(id))
}

/// A parsed run of a SARIF log, whose results are not parsed yet.
pub(crate) struct ScanRun<'a> {
    at: usize,
    run: Run<'a>,
    pub(crate) subject: ToolAndCategory,
    pub(crate) version: Option<String>,
    /// Whether the run has a list of results and no invocation with `executionSuccessful: false`.
    pub(crate) successful: bool,
}

/// Parses a SARIF log without parsing its runs.
pub(crate) fn open(bytes: &[u8]) -> Result<SarifRuns<'_>, SarifRefusal> {
    let text = std::str::from_utf8(bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes)).map_err(
        |error| {
            let at = error.valid_up_to();
            SarifRefusal::new(
                "not_utf8",
                format!("Byte {at} is not UTF-8; save the file as UTF-8."),
            )
        },
    )?;
    let log: Log<'_> = parse(text, "")?;
    match log.version.as_deref() {
        Some(VERSION) => {}
        Some(other) => {
            let other = truncate_bytes(other, 50);
            let detail = format!("/version is {other:?}; write SARIF {VERSION}.");
            return Err(SarifRefusal::new("sarif_version_unsupported", detail));
        }
        None => {
            let detail = format!("/version is missing; a SARIF log has \"{VERSION}\" there.");
            return Err(SarifRefusal::new("not_sarif", detail));
        }
    }
    let runs = log.runs.ok_or_else(|| {
        SarifRefusal::new("not_sarif", "/runs is missing; write [] if no tool was run.")
    })?;
    let mut inline = HashMap::new();
    for properties in log.inline.unwrap_or_default() {
        if let Some(guid) = &properties.guid {
            inline.entry(guid.to_ascii_lowercase()).or_insert(properties);
        }
    }
    Ok(SarifRuns { runs, inline })
}

impl<'a> SarifRuns<'a> {
    pub(crate) fn len(&self) -> usize {
        self.runs.len()
    }

    /// Returns an iterator over the parsed runs; an item is an error if the run is refused.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Result<ScanRun<'a>, SarifRefusal>> + '_ {
        let mut inline = InlineExternalResults { by_guid: &self.inline, taken: HashSet::new() };
        let runs = self.runs.iter().enumerate();
        runs.map(move |(at, run)| ScanRun::read(at, run.get(), &mut inline))
    }
}

impl<'a> ScanRun<'a> {
    fn read(
        at: usize,
        text: &'a str,
        inline: &mut InlineExternalResults<'_, 'a>,
    ) -> Result<Self, SarifRefusal> {
        let mut run: Run<'a> = parse(text, &format!("/runs/{at}"))?;
        refuse_unread(&run, at)?;
        inline.fetch_results(&mut run, at)?;
        let driver = run.tool.as_ref().and_then(|tool| tool.driver.as_ref());
        let name = driver.and_then(|driver| driver.name.as_deref()).unwrap_or_default();
        let tool = clean(name, MOST_NAME_BYTES);
        if tool.is_empty() {
            let detail = format!(
                "/runs/{at}/tool/driver/name is missing; findings are identified by their tool, \
                so add its name there."
            );
            return Err(SarifRefusal::new("sarif_tool_missing", detail));
        }
        let version = driver
            .and_then(|driver| driver.semantic_version.as_ref().or(driver.version.as_ref()))
            .map(|version| clean(version, MOST_NAME_BYTES));
        let category = run.automation_details.as_ref().and_then(|details| details.id.as_deref());
        let category = clean(category_of(category.unwrap_or_default()), MOST_NAME_BYTES);
        let failed =
            run.invocations.iter().flatten().any(|one| one.execution_successful == Some(false));
        let successful = run.results.is_some() && !failed;
        Ok(Self { at, run, subject: ToolAndCategory { tool, category }, version, successful })
    }

    /// Whether the run has a list of results. A run that failed or did not scan has none (SARIF
    /// 3.14.23).
    pub(crate) fn has_results(&self) -> bool {
        self.run.results.is_some()
    }
}

/// Refuses a run that refers to properties outside of the run on which findings depend: if they
/// were ignored, a failed invocation would count as successful, and results would have other
/// severities or paths.
fn refuse_unread(run: &Run<'_>, at: usize) -> Result<(), SarifRefusal> {
    match run.elsewhere.as_ref().and_then(ExternalReferences::unread) {
        None => Ok(()),
        Some(name) => {
            let detail = format!(
                "/runs/{at}/externalPropertyFileReferences/{name} refers to properties outside of \
                the run, which are not read; write them into the run."
            );
            Err(SarifRefusal::new("sarif_properties_elsewhere", detail))
        }
    }
}

/// Lists of results in a log's `inlineExternalProperties`. Each list may belong to one run only
/// (SARIF 3.15.2), so that all runs together have no more results than the log.
struct InlineExternalResults<'r, 'a> {
    by_guid: &'r HashMap<String, InlineExternalProperties<'a>>,
    /// Lower-case GUIDs of the lists of results that an earlier run has referenced.
    taken: HashSet<String>,
}

impl<'a> InlineExternalResults<'_, 'a> {
    /// Adds the results that a run references to the run, each list once. Refuses references to
    /// other files and to results of another run.
    fn fetch_results(&mut self, run: &mut Run<'a>, at: usize) -> Result<(), SarifRefusal> {
        let elsewhere = run.elsewhere.take().and_then(|elsewhere| elsewhere.results);
        let mut seen = HashSet::new();
        for (index, reference) in elsewhere.into_iter().flatten().enumerate() {
            let guid = reference.guid.as_deref().unwrap_or_default().to_ascii_lowercase();
            let refused = |code, why| {
                let pointer = format!("/runs/{at}/externalPropertyFileReferences/results/{index}");
                SarifRefusal::new(code, format!("{pointer} {why}"))
            };
            let Some(found) = self.by_guid.get(&guid) else {
                let why = "refers to another file; send one log that contains the results.";
                return Err(refused("sarif_results_elsewhere", why));
            };
            if !seen.insert(guid.clone()) {
                continue;
            }
            if !self.taken.insert(guid) {
                let why = "refers to the results of an earlier run; give each run its own list.";
                return Err(refused("sarif_results_shared", why));
            }
            run.results.get_or_insert_default().extend(found.results.iter().flatten());
        }
        Ok(())
    }
}

/// Returns the category in `automationDetails.id`: `nightly/backend` for
/// `nightly/backend/2026-01-31`; empty for an id without a slash (SARIF 3.17.3).
fn category_of(id: &str) -> &str {
    id.rsplit_once('/').map_or("", |(category, _)| category)
}

/// Parses JSON of a SARIF log. Errors have a JSON Pointer to the position, with `root` as its
/// beginning.
fn parse<'a, T: Deserialize<'a>>(text: &'a str, root: &str) -> Result<T, SarifRefusal> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let read = serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
        let pointer = format!("{root}{}", pointer(error.path()));
        let pointer = clean(&pointer, MOST_POINTER_BYTES);
        let error = error.into_inner();
        let code = if error.is_data() { "sarif_invalid" } else { "not_json" };
        let place = if pointer.is_empty() { "The log" } else { &pointer };
        SarifRefusal::new(code, format!("{place}: {}.", clean(&error.to_string(), 300)))
    });
    let value = read?;
    deserializer
        .end()
        .map_err(|error| SarifRefusal::new("not_json", format!("The log: {error}.")))?;
    Ok(value)
}

/// Formats the position of a parse error as a JSON Pointer.
fn pointer(path: &serde_path_to_error::Path) -> String {
    let segments = path.iter().filter_map(|segment| match segment {
        Segment::Seq { index } => Some(index.to_string()),
        Segment::Map { key } => Some(key.replace('~', "~0").replace('/', "~1")),
        Segment::Enum { .. } | Segment::Unknown => None,
    });
    segments.map(|segment| format!("/{segment}")).collect()
}

#[cfg(test)]
mod tests;
