//! Decides which VEX statement applies to a vulnerability of a component.

use std::collections::{BTreeMap, BTreeSet};

use area_sdk::prelude::*;

use super::context::{RelevantStatement, VexStatementIndex};
use super::statement::{VexState, same_name};
use super::versions::VersionApplicability;
use crate::inventory::component::{ComponentMention, ReportedAdvisory, StoredComponent};
use crate::matching::{AdvisoryMatch, ComponentAssessment, MatchBasis, Vulnerability};
use crate::osv::SeverityBand;
use crate::text::{self, advisory_key};

/// Maximum number of advisory ids that one limitation names.
const MOST_LISTED: usize = 10;

/// A VEX statement that concerns a mention of a component.
#[derive(Clone, Debug)]
struct MatchedStatement {
    advisory_id: String,
    names: Vec<String>,
    state: VexState,
    /// The state and its justification, for limitations: `not_affected: code_not_reachable`.
    verdict: String,
    holds: VersionApplicability,
    is_product: bool,
    /// Whether the statement is in the SBOM that contains the mention, and about this component.
    is_own: bool,
    stated_at: Timestamp,
    /// Stream of the statement's document. Of a stream's documents, only the newest counts.
    stream: String,
    filename: String,
    artifact_sha256: String,
    tool: Option<String>,
    severity: Option<SeverityBand>,
}

impl MatchedStatement {
    fn of_statement(found: RelevantStatement<'_>) -> Self {
        let RelevantStatement { origin, statement, holds, is_product, .. } = found;
        Self {
            advisory_id: statement.advisory_id.clone(),
            names: statement.names().collect(),
            state: statement.state,
            verdict: statement.state.verdict(statement.justification.as_deref()),
            holds,
            is_product,
            is_own: false,
            stated_at: origin.stated_at,
            stream: origin.stream.clone(),
            filename: origin.filename.clone(),
            artifact_sha256: origin.artifact_sha256.clone(),
            tool: origin.tool.clone(),
            severity: statement.severity,
        }
    }

    /// Returns the VEX statement about a vulnerability in the component's own SBOM; `None` if the
    /// SBOM only reports the vulnerability.
    fn of_reported(
        reported: &ReportedAdvisory,
        component: &StoredComponent,
        context: &VexStatementIndex,
    ) -> Option<Self> {
        let state = reported.stated()?;
        let sbom = context.sbom(component, &reported.artifact_sha256);
        let names = std::iter::once(&reported.advisory_id).chain(&reported.aliases);
        Some(Self {
            advisory_id: reported.advisory_id.clone(),
            names: names.map(|name| advisory_key(name)).collect(),
            state,
            verdict: reported.dismissed.clone().unwrap_or_else(|| state.verdict(None)),
            holds: VersionApplicability::Yes,
            is_product: false,
            is_own: true,
            stated_at: sbom.ready_at,
            stream: sbom.stream.clone(),
            filename: sbom.filename.clone(),
            artifact_sha256: reported.artifact_sha256.clone(),
            tool: Some(reported.source_tool.clone()),
            severity: reported.severity,
        })
    }

    fn names_one_of(&self, names: &BTreeSet<String>) -> bool {
        self.names.iter().any(|ours| names.iter().any(|theirs| same_name(ours, theirs)))
    }

    /// Returns the rank of the VEX statement among those about one vulnerability. A later statement
    /// has precedence; in one document, the more specific one; then the one that hides no
    /// vulnerability.
    fn rank(&self) -> impl Ord + use<> {
        let caution = match self.state {
            state if state.adds() => 2,
            state if state.ends() => 0,
            _ => 1,
        };
        let is_sure = self.holds == VersionApplicability::Yes;
        (self.stated_at, !self.is_product, is_sure, caution)
    }
}

impl RelevantStatement<'_> {
    /// Whether the VEX statement applies to the component's version. An uncertain statement counts
    /// only if it does not end a match.
    pub(crate) fn counts(&self) -> bool {
        match self.holds {
            VersionApplicability::Yes => true,
            VersionApplicability::Assumed(_) => !self.statement.state.ends(),
            VersionApplicability::No => false,
        }
    }
}

/// VEX statements that concern a component, as one list for each of its mentions.
pub(crate) struct MatchedStatements(Vec<Vec<MatchedStatement>>);

impl MatchedStatements {
    pub(crate) fn on(component: &StoredComponent, context: &VexStatementIndex) -> Self {
        let own: Vec<MatchedStatement> = component
            .reported
            .iter()
            .filter_map(|reported| MatchedStatement::of_reported(reported, component, context))
            .collect();
        let of_mention = |mention: ComponentMention| {
            let own = own.iter().filter(|own| own.artifact_sha256 == mention.artifact_sha256);
            let found = context.applicable(component, &mention).into_iter();
            let found = found.filter(RelevantStatement::counts);
            found.map(MatchedStatement::of_statement).chain(own.cloned()).collect()
        };
        Self(component.mentions().map(of_mention).collect())
    }

    /// Returns the ids of the advisories that affect the component according to VEX statements.
    pub(crate) fn added_ids(&self) -> impl Iterator<Item = &String> {
        self.adding().map(|matched| &matched.advisory_id)
    }

    /// Returns the VEX statements that say the component is affected. A statement about a product
    /// is not included, because it does not name the affected component.
    fn adding(&self) -> impl Iterator<Item = &MatchedStatement> {
        let all = self.0.iter().flatten();
        all.filter(|matched| matched.state.adds() && !matched.is_product && !matched.is_own)
    }

    /// Returns the vulnerabilities that VEX statements add to the component.
    pub(crate) fn added(&self, component: &StoredComponent) -> Vec<ReportedAdvisory> {
        let reported = |matched: &MatchedStatement| ReportedAdvisory {
            advisory_id: matched.advisory_id.clone(),
            aliases: matched.names.clone(),
            source_tool: matched.tool.clone().unwrap_or_else(|| "vex".to_owned()),
            artifact_sha256: matched.artifact_sha256.clone(),
            state: None,
            dismissed: None,
            severity: matched.severity,
        };
        // A report whose own state ends the match adds no vulnerability.
        let open = component.reported.iter().filter(|reported| reported.is_open());
        let known: BTreeSet<&String> = open.map(|reported| &reported.advisory_id).collect();
        let new = self.adding().filter(|matched| !known.contains(&matched.advisory_id));
        new.map(reported).collect()
    }

    /// Returns the limitations about VEX statements that are only assumed to concern the
    /// component's version.
    fn assumptions(&self) -> impl Iterator<Item = String> {
        self.adding().filter_map(|matched| match &matched.holds {
            VersionApplicability::Assumed(why) => Some(format!(
                "{} is assumed to affect this version: {} gives {why}.",
                matched.advisory_id, matched.filename
            )),
            VersionApplicability::Yes | VersionApplicability::No => None,
        })
    }

    /// Returns the VEX statement that decides about a vulnerability of one mention, given as the
    /// mention's statements and the vulnerability's names; `None` if none does.
    fn deciding<'a>(
        mention: &'a [MatchedStatement],
        names: &BTreeSet<String>,
    ) -> Option<&'a MatchedStatement> {
        let mut newest: BTreeMap<&str, &MatchedStatement> = BTreeMap::new();
        for matched in mention.iter().filter(|matched| matched.names_one_of(names)) {
            let best = newest.entry(&matched.stream).or_insert(matched);
            if matched.rank() > best.rank() {
                *best = matched;
            }
        }
        let decided = newest.into_values().filter(|one| one.state != VexState::InTriage);
        decided.max_by_key(|matched| matched.rank())
    }
}

impl ComponentAssessment {
    /// Removes the vulnerabilities that do not affect the component according to VEX statements,
    /// and adds the reasons as limitations.
    pub(crate) fn apply(&mut self, statements: &MatchedStatements) {
        self.limitations.extend(statements.assumptions());
        let mut reasons = DismissedAdvisoriesByStatement::default();
        let mut used = BTreeSet::new();
        self.vulnerabilities.retain(|vulnerability| {
            let names = &vulnerability.names;
            used.extend(names.iter().cloned());
            let mentions = statements.0.iter();
            let deciding = mentions.filter_map(|one| MatchedStatements::deciding(one, names));
            let ending: Vec<_> = deciding.filter(|deciding| deciding.state.ends()).collect();
            let Some(first) = ending.first() else { return true };
            let id = &vulnerability.entry.advisory_id;
            let is_whole = ending.len() == statements.0.len();
            reasons.add(first, id, is_whole);
            if is_whole {
                self.ended.insert(id.clone());
            }
            !is_whole
        });
        // The SBOM's own statement is the only record of what its scanner found.
        for own in statements.0.iter().flatten().filter(|own| own.is_own && own.state.ends()) {
            if !own.names.iter().any(|name| used.contains(name)) {
                reasons.add(own, &own.advisory_id, true);
            }
        }
        self.limitations.extend(reasons.into_limitations());
    }
}

/// Ids of advisories by the VEX statement that ends their match. The key has filename, verdict, and
/// whether the statement covers all SBOMs with the component.
#[derive(Default)]
struct DismissedAdvisoriesByStatement(BTreeMap<(String, String, bool), BTreeSet<String>>);

impl DismissedAdvisoriesByStatement {
    fn add(&mut self, matched: &MatchedStatement, advisory_id: &str, is_whole: bool) {
        let stated = &matched.advisory_id;
        let name = if stated.eq_ignore_ascii_case(advisory_id) {
            advisory_id.to_owned()
        } else {
            format!("{advisory_id} ({stated})")
        };
        let key = (matched.filename.clone(), matched.verdict.clone(), is_whole);
        self.0.entry(key).or_default().insert(name);
    }

    fn into_limitations(self) -> impl Iterator<Item = String> {
        self.0.into_iter().map(|((filename, verdict, is_whole), ids)| {
            let listed = text::listed(ids.iter(), MOST_LISTED);
            if is_whole {
                return format!("Not listed, since {filename} states {verdict}: {listed}.");
            }
            format!(
                "Listed although {filename} states {verdict}, since that does not cover every \
                 SBOM with this component: {listed}."
            )
        })
    }
}

impl Vulnerability {
    /// Returns the vulnerability of a component that a scanner or VEX statement reports, with these
    /// names.
    pub(crate) fn reported(
        reported: &ReportedAdvisory,
        component: &StoredComponent,
        names: BTreeSet<String>,
    ) -> Self {
        Self {
            entry: AdvisoryMatch {
                advisory_id: reported.advisory_id.clone(),
                artifact_sha256: reported.artifact_sha256.clone(),
                match_basis: MatchBasis::ScannerReported,
                scanner_run_id: component.scanner_run_id,
                source_tool: reported.source_tool.clone(),
            },
            severity: reported.severity,
            names,
        }
    }
}
