//! Converts SARIF results to observations, one at a time, grouped by rule.

use std::collections::{BTreeMap, BTreeSet};

use area_sdk::text::{first_line, truncate_bytes};
use serde_json::Map;
use serde_json::value::RawValue;

use super::model::{
    ArtifactLocation, Location, LogicalLocation, ResultGroupingKey, ResultObject, Run, Suppression,
};
use super::rules::{self, FoundRule, RuleIndex};
use super::uri::ArtifactLocationResolver;
use super::{SarifRefusal, ScanCoverage, ScanRun, message, parse, weakness};
use crate::identity::{
    FindingIdentityGenerator, ResultKey, ResultTraits, is_of_commit, message_hash,
};
use crate::observation::{
    FindingLocation, MOST_LOCATIONS, ResultKeyWithOrdinal, ResultObservation, SourceKind,
    SourceTool,
};
use crate::severity::Rating;
use crate::similarity::TextFingerprint;
use crate::text::clean;

/// Maximum size of a finding's stored title, in bytes.
const MOST_TITLE_BYTES: usize = 300;
/// Maximum number of bytes of a code snippet that the identity of a result and its text sketch use.
const MOST_SNIPPET_BYTES: usize = 20_000;

/// Values of `kind` with which a SARIF result is not a finding.
const NOT_FINDINGS: [&str; 3] = ["pass", "notApplicable", "informational"];

/// Iterator over the results of a SARIF run that are findings, converted to observations.
pub(crate) struct ObservationIterator<'r, 'a> {
    run: &'r ScanRun<'a>,
    rules: RuleIndex<'r>,
    places: ArtifactLocationResolver<'r>,
    identities: FindingIdentityGenerator,
    left: std::vec::IntoIter<(usize, &'a RawValue)>,
}

impl ObservationIterator<'_, '_> {
    /// Returns the counts of identities so far, for another run of the same analysis.
    pub(crate) fn into_identities(self) -> FindingIdentityGenerator {
        self.identities
    }

    fn observe(&mut self, result: &ResultObject) -> ResultObservation {
        let rule = self.rules.find(result);
        let plain = message::resolve(result.message.as_ref(), &self.rules, &rule);
        let markdown = plain.is_empty().then(|| message::markdown(result.message.as_ref()));
        let said = markdown.as_deref().unwrap_or(&plain);
        let snippet = snippet(result);
        let traits = self.look(result, &rule);
        let (identity, former_identity, equals, weaker) =
            self.identify(result, &rule, &traits, [said, plain.as_str()], snippet);
        let level = level(result, &self.rules, &rule);
        let (none_said, none_of_rule) = (Map::new(), Map::new());
        let properties = [
            result.properties.as_ref().unwrap_or(&none_said),
            rule.properties().unwrap_or(&none_of_rule),
        ];
        ResultObservation {
            identity,
            former_identity,
            equals,
            weaker,
            title: title(&rule, said),
            rating: Rating::of(properties, level),
            rule_family: weakness::family(&rule, traits.advisory.as_deref()),
            sketch: TextFingerprint::of([said, snippet.unwrap_or_default()]),
            message_hash: Some(message_hash(said)),
            source: SourceTool {
                rule_id: rule.id,
                tool: self.run.subject.tool.clone(),
                version: self.run.version.clone(),
            },
            source_family: SourceKind::Scanner,
            locations: traits.locations,
            purl: traits.purl,
            suppressed: suppressed(result.suppressions.as_deref().unwrap_or_default()),
            revision: self.run.revision(),
            record: None,
        }
    }

    fn look(&self, result: &ResultObject, rule: &FoundRule<'_>) -> LocationsAndPackage {
        let all = result.locations.iter().flatten();
        let named = all.clone().flat_map(|location| location.logical_locations.iter().flatten());
        let names = named.filter_map(|name| name.fully_qualified_name.as_deref());
        let own = result.properties.as_ref();
        let said = own.and_then(|own| own.get("advisory").or_else(|| own.get("cve")));
        let said = said.and_then(|advisory| advisory.as_str());
        let first = all.clone().next().and_then(artifact_location);
        LocationsAndPackage {
            former_path: first.and_then(|location| self.places.former_path(location)),
            locations: all.take(MOST_LOCATIONS).map(|one| place(&self.places, one)).collect(),
            purl: weakness::purl([own, rule.properties()], names),
            advisory: weakness::advisory(&rule.id).or_else(|| weakness::advisory(said?)),
        }
    }

    /// Returns the identity of a result, its former identity if that is another one, its number
    /// among equal results, and its weaker keys. `former_message` is as older versions read it.
    fn identify(
        &mut self,
        result: &ResultObject,
        rule: &FoundRule<'_>,
        looks: &LocationsAndPackage,
        [said, former_message]: [&str; 2],
        snippet: Option<&str>,
    ) -> (String, Option<String>, Option<ResultKeyWithOrdinal>, Vec<ResultKeyWithOrdinal>) {
        let none = BTreeMap::new();
        let path = looks.locations.first().and_then(|place| place.path.as_deref());
        let traits = ResultTraits {
            fingerprints: result.fingerprints.as_ref().unwrap_or(&none),
            partial_fingerprints: result.partial_fingerprints.as_ref().unwrap_or(&none),
            purl: looks.purl.as_deref(),
            advisory: looks.advisory.as_deref(),
            path: path.unwrap_or_default(),
            snippet,
            message: said,
        };
        let key = ResultKey::of(&traits);
        let former_path = looks.former_path.as_deref().unwrap_or_default();
        let former =
            |path| ResultKey::former(&ResultTraits { path, message: former_message, ..traits });
        // Older versions stored findings with either path.
        let former = [traits.path, former_path].into_iter().map(former).find(|one| *one != key);
        let mut next =
            |key: &ResultKey| self.identities.next(&self.run.subject.tool, &rule.id, key);
        let (identity, ordinal) = next(&key);
        let former_identity = former.map(|former| next(&former).0);
        let weaker = key.weaker(&traits).into_iter().filter(ResultKey::is_small);
        let weaker = weaker.map(|key| ResultKeyWithOrdinal { ordinal: next(&key).1, key });
        let weaker = weaker.collect();
        let equals = key.is_small().then_some(ResultKeyWithOrdinal { key, ordinal });
        (identity, former_identity, equals, weaker)
    }
}

impl Iterator for ObservationIterator<'_, '_> {
    type Item = Result<ResultObservation, SarifRefusal>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let (index, text) = self.left.next()?;
            match read(self.run, index, text) {
                Ok(result) if is_finding(&result) => return Some(Ok(self.observe(&result))),
                Ok(_) => {}
                Err(refusal) => return Some(Err(refusal)),
            }
        }
    }
}

/// Returns a run's results with their indexes, grouped by rule and fingerprints. New findings are
/// compared with the findings of their rule family, so grouping reads each family once. Equal
/// results are matched with the stored findings together. The order does not depend on commits, so
/// that ordinals stay the same when the history is rewritten.
fn by_rule<'a>(results: &[&'a RawValue]) -> Vec<(usize, &'a RawValue)> {
    let mut all: Vec<_> = results.iter().copied().enumerate().collect();
    // A result that cannot be parsed here is reported when it is read.
    all.sort_by_cached_key(|(_, text)| {
        let ResultGroupingKey { rule_id, rule_index, rule, fingerprints, partial_fingerprints } =
            serde_json::from_str(text.get()).unwrap_or_default();
        let (id, index) = rule.map_or((None, None), |rule| (rule.id, rule.index));
        let parts = partial_fingerprints.into_iter().flatten();
        let parts = parts.filter(|(name, _)| !is_of_commit(name));
        let parts: Vec<_> = parts.map(|(name, print)| (name, print.get())).collect();
        (rule_id.or(id), rule_index.or(index), fingerprints.map(RawValue::get), parts)
    });
    all
}

fn read(run: &ScanRun<'_>, index: usize, text: &RawValue) -> Result<ResultObject, SarifRefusal> {
    parse(text.get(), &format!("/runs/{}/results/{index}", run.at))
}

/// Locations, package and advisory that a SARIF result is about.
struct LocationsAndPackage {
    locations: Vec<FindingLocation>,
    /// Path of the first location as older versions of this area converted it.
    former_path: Option<String>,
    purl: Option<String>,
    advisory: Option<String>,
}

impl<'a> ScanRun<'a> {
    /// Parses every result of the run, and returns the paths and rules that the run checked. The
    /// first invalid result refuses the run.
    pub(crate) fn check(&self) -> Result<ScanCoverage, SarifRefusal> {
        let Run { artifacts, results, invocations, tool, .. } = &self.run;
        let places = ArtifactLocationResolver::of(&self.run);
        let listed = artifacts.iter().flatten().filter_map(|artifact| artifact.location.as_ref());
        let mut paths: BTreeSet<String> =
            listed.filter_map(|location| places.path(location)).collect();
        for (index, text) in results.iter().flatten().enumerate() {
            let result = read(self, index, text)?;
            let locations = result.locations.iter().flatten();
            paths.extend(locations.filter_map(|location| path(&places, location)));
        }
        let invocations = invocations.as_deref().unwrap_or_default();
        let rules = tool.as_ref().and_then(|tool| rules::checked(tool, invocations));
        Ok(ScanCoverage { paths, rules })
    }

    /// Returns an iterator over the run's findings as observations. `identities` continues the
    /// counts of earlier runs. `None` if the run has no list of results.
    pub(crate) fn results(
        &self,
        identities: FindingIdentityGenerator,
    ) -> Option<ObservationIterator<'_, 'a>> {
        let invocations = self.run.invocations.as_deref().unwrap_or_default();
        Some(ObservationIterator {
            run: self,
            rules: RuleIndex::of(self.run.tool.as_ref()?, invocations),
            places: ArtifactLocationResolver::of(&self.run),
            identities,
            left: by_rule(self.run.results.as_ref()?).into_iter(),
        })
    }

    /// Returns the revision of the code that the run scanned: the first `revisionId` in
    /// `versionControlProvenance`.
    fn revision(&self) -> Option<String> {
        let sources = self.run.version_control_provenance.as_deref().unwrap_or_default();
        let revision = sources.iter().find_map(|source| source.revision_id.as_deref());
        revision.map(|revision| clean(revision, 100)).filter(|revision| !revision.is_empty())
    }
}

fn is_finding(result: &ResultObject) -> bool {
    let kind = result.kind.as_deref().unwrap_or("fail");
    !NOT_FINDINGS.contains(&kind) && result.baseline_state.as_deref() != Some("absent")
}

/// Returns the level of a SARIF result by the rules of 3.27.10: its own `level`; `none` if its
/// `kind` is not `fail`; otherwise the level of its rule.
fn level<'t>(result: &'t ResultObject, rules: &RuleIndex<'t>, rule: &FoundRule<'t>) -> &'t str {
    match (result.level.as_deref(), result.kind.as_deref()) {
        (Some(level), _) => level,
        (None, Some(kind)) if kind != "fail" => "none",
        (None, _) => {
            let provenance = result.provenance.as_ref();
            rules.level(rule, provenance.and_then(|provenance| provenance.invocation_index))
        }
    }
}

fn snippet(result: &ResultObject) -> Option<&str> {
    let first = result.locations.as_ref()?.first()?;
    let region = first.physical_location.as_ref()?.region.as_ref()?;
    message::text(region.snippet.as_ref())
        .map(|snippet| truncate_bytes(snippet, MOST_SNIPPET_BYTES))
}

/// Returns the title of a result's finding: the description of the rule; without one, the message;
/// then the rule's name or id.
fn title(rule: &FoundRule<'_>, said: &str) -> String {
    let said = Some(said).filter(|said| !said.is_empty());
    let title = rule.heading().or(said).or_else(|| rule.name()).unwrap_or(&rule.id);
    clean(first_line(title), MOST_TITLE_BYTES)
}

/// Returns the path of the file in a result's location; `None` if there is none.
fn path(places: &ArtifactLocationResolver<'_>, location: &Location) -> Option<String> {
    places.path(artifact_location(location)?)
}

fn artifact_location(location: &Location) -> Option<&ArtifactLocation> {
    location.physical_location.as_ref()?.artifact_location.as_ref()
}

fn place(places: &ArtifactLocationResolver<'_>, location: &Location) -> FindingLocation {
    let physical = location.physical_location.as_ref();
    let region = physical.and_then(|physical| physical.region.as_ref());
    let logical = location.logical_locations.as_ref().and_then(|names| names.first());
    FindingLocation {
        path: path(places, location),
        start_line: region.and_then(|region| region.start_line),
        start_column: region.and_then(|region| region.start_column),
        end_line: region.and_then(|region| region.end_line),
        end_column: region.and_then(|region| region.end_column),
        logical_name: logical.and_then(logical_name),
    }
}

fn logical_name(location: &LogicalLocation) -> Option<String> {
    let name = location.fully_qualified_name.as_deref().or(location.name.as_deref())?;
    Some(clean(name, 300)).filter(|name| !name.is_empty())
}

/// Returns the text about why a SARIF result is suppressed; `None` if it is not. A result is
/// suppressed if all its `suppressions` are accepted, which is the default of `status`.
fn suppressed(suppressions: &[Suppression]) -> Option<String> {
    let accepted = |one: &Suppression| matches!(one.status.as_deref(), None | Some("accepted"));
    let first = suppressions.first().filter(|_| suppressions.iter().all(accepted))?;
    let place =
        if first.kind.as_deref() == Some("inSource") { "in the source" } else { "by the scanner" };
    let why = first.justification.as_deref().map(|why| clean(why, 1000)).unwrap_or_default();
    Some(if why.is_empty() {
        format!("Suppressed {place}.")
    } else {
        format!("Suppressed {place}: {why}")
    })
}
