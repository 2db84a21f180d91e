//! A stored finding and its updates by observations. The document is kept small, because PostgreSQL
//! stores documents above 2 kB out of line, and counting them takes three times as long. Unknown
//! members are omitted, and the sketch for the similarity search is a separate document.

use std::collections::{BTreeMap, BTreeSet};

use area_sdk::prelude::*;

use crate::architecture::RepositoryArchitectureContext;
use crate::observation::{
    FindingEvidenceRecord, FindingLocation, ResultObservation, SourceKind, SourceTool,
};
use crate::severity::{Rating, Severity};
use crate::state::FindingState;

/// Maximum number of other analyses that a finding stores as reporting it, and as overlooking it.
const MOST_ANALYSES: usize = 16;
/// Stands for any analysis in `overlooked_by`, if more analyses than the maximum overlooked the
/// finding.
const ANY: &str = "*";

/// A finding as stored: what scans reported, its state, and which analyses report it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Finding {
    pub(crate) repository_id: Uuid,
    /// Id of the latest audit that reported the finding.
    pub(crate) audit_id: Uuid,
    pub(crate) state: FindingState,
    pub(crate) open: bool,
    /// Number of the finding's transitions. Audits that only report the finding again change the
    /// document's version and not this one.
    #[serde(rename = "version")]
    pub(crate) lifecycle_version: i64,
    pub(crate) identity_fingerprint: String,
    pub(crate) tool: String,
    pub(crate) rule_id: String,
    pub(crate) title: String,
    #[serde(flatten)]
    pub(crate) rating: Rating,
    /// Risk of the finding in hundredths; `risk_total` in responses.
    pub(crate) risk_rank: i64,
    pub(crate) source_family: SourceKind,
    pub(crate) source_tools: Vec<SourceTool>,
    pub(crate) locations: Vec<FindingLocation>,
    pub(crate) paths: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) purl: Option<String>,
    pub(crate) component_identity: String,
    pub(crate) architecture_impact: Severity,
    pub(crate) architecture_confidence_percent: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) owner_id: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sla_due_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) accepted_until: Option<Timestamp>,
    /// Id of the match group to which the finding belongs: findings that users declared to be the
    /// same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) match_group_id: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) duplicate_of: Option<Uuid>,
    pub(crate) lifecycle_started_at: Timestamp,
    pub(crate) lifecycle_updated_at: Timestamp,
    pub(crate) last_transition_id: Option<Uuid>,
    /// Whether the service, and not a user, made the finding's latest transition.
    pub(crate) auto_disposition: bool,
    /// Whether the service marked the finding as a false positive because the scan suppresses it.
    pub(crate) suppressed: bool,
    pub(crate) last_seen_at: Timestamp,
    /// Number of audits that reported the finding.
    pub(crate) audit_count: i64,
    /// Whether at least two audits reported the finding.
    pub(crate) recurring: bool,
    pub(crate) branch_ref: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) evidence_revision: Option<String>,
    /// Whether the finding was reported by the latest runs that checked its files.
    pub(crate) present: bool,
    /// Id of the analysis to which the finding belongs; `analysis_run` is the number of the latest
    /// run of that analysis that reported the finding.
    pub(crate) analysis_id: String,
    pub(crate) analysis_run: i64,
    /// Ids of other analyses that reported the finding, each with the number of its latest run that
    /// did.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) also_seen: BTreeMap<String, i64>,
    /// Ids of analyses that scanned the finding's files without reporting the finding, while
    /// another artifact stream of the tool reported it.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) overlooked_by: BTreeSet<String>,
    /// Ids of the analyses that report the finding and whose latest report suppresses it.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) suppressed_by: BTreeSet<String>,
    /// Time at which the newest file that reported the finding became ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) shown_at: Option<Timestamp>,
    /// Time at which the file became ready whose run no longer reported the finding; `None` while
    /// the finding is present, or if older versions did not store the time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) gone_at: Option<Timestamp>,
    pub(crate) rule_family: String,
    pub(crate) signature: String,
    /// Hash of the message with which the finding was last reported. It distinguishes findings of
    /// equal results. `None` for evidence records and if older versions did not store it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) message_hash: Option<u32>,
}

document!(Finding, "findings");

/// Where an observation of a finding comes from: audit, analysis, run and file.
#[derive(Clone, Debug)]
pub(crate) struct ObservationSource<'a> {
    pub(crate) repository_id: Uuid,
    pub(crate) audit_id: Uuid,
    pub(crate) seen_at: Timestamp,
    pub(crate) branch_ref: &'a str,
    /// Commit of the file or the audit; used if the scan itself names no revision.
    pub(crate) commit_sha: Option<&'a str>,
    pub(crate) analysis_id: &'a str,
    /// Id of the group of analyses to which the observing analysis belongs: all artifact streams of
    /// a tool without a category.
    pub(crate) group_id: &'a str,
    pub(crate) analysis_run: i64,
    /// Time at which the observed file became ready, or at which the evidence record was observed.
    pub(crate) ready_at: Timestamp,
    /// Ids of the evidence records that contain the scan, or that are the observed finding
    /// themselves.
    pub(crate) evidence_ids: &'a [Uuid],
    pub(crate) surroundings: &'a RepositoryArchitectureContext,
}

impl<'a> ObservationSource<'a> {
    /// Returns the source of one observation of a job step. A finding that is an evidence record
    /// has the time and the id of that record, not those of the other records in the step.
    pub(crate) fn of_record(&self, record: Option<&'a FindingEvidenceRecord>) -> Self {
        let Some(FindingEvidenceRecord { evidence_id, observed_at }) = record else {
            return self.clone();
        };
        let evidence_ids = std::slice::from_ref(evidence_id);
        Self { ready_at: *observed_at, evidence_ids, ..self.clone() }
    }
}

impl Finding {
    /// Creates a finding from its first observation. The caller adds the first transition.
    pub(crate) fn first_seen(
        observation: ResultObservation,
        sighting: &ObservationSource<'_>,
    ) -> Self {
        let now = sighting.seen_at;
        let suppressing = observation.suppressed.is_some().then(|| sighting.analysis_id.to_owned());
        let mut finding = Self {
            repository_id: sighting.repository_id,
            audit_id: sighting.audit_id,
            state: FindingState::New,
            open: true,
            lifecycle_version: 0,
            identity_fingerprint: observation.identity.clone(),
            tool: observation.source.tool.clone(),
            rule_id: observation.source.rule_id.clone(),
            title: String::new(),
            rating: observation.rating.clone(),
            risk_rank: 0,
            source_family: observation.source_family,
            source_tools: Vec::new(),
            locations: Vec::new(),
            paths: Vec::new(),
            purl: None,
            component_identity: String::new(),
            architecture_impact: Severity::None,
            architecture_confidence_percent: 0,
            owner_id: None,
            sla_due_at: None,
            accepted_until: None,
            match_group_id: None,
            duplicate_of: None,
            lifecycle_started_at: now,
            lifecycle_updated_at: now,
            last_transition_id: None,
            auto_disposition: true,
            suppressed: false,
            last_seen_at: now,
            audit_count: 1,
            recurring: false,
            branch_ref: String::new(),
            evidence_revision: None,
            present: true,
            analysis_id: sighting.analysis_id.to_owned(),
            analysis_run: sighting.analysis_run,
            also_seen: BTreeMap::new(),
            overlooked_by: BTreeSet::new(),
            suppressed_by: suppressing.into_iter().collect(),
            shown_at: Some(sighting.ready_at),
            gone_at: None,
            rule_family: String::new(),
            signature: String::new(),
            message_hash: None,
        };
        finding.describe(observation, sighting);
        finding.assess(sighting.surroundings);
        finding
    }

    /// Updates the finding from another observation of it. A file older than the newest one that
    /// reported the finding does not change the finding's description.
    pub(crate) fn seen_again(
        &mut self,
        observation: ResultObservation,
        sighting: &ObservationSource<'_>,
    ) {
        let first_in_audit = self.audit_id != sighting.audit_id;
        if first_in_audit {
            self.audit_id = sighting.audit_id;
            self.audit_count += 1;
            self.recurring = true;
            self.last_seen_at = self.last_seen_at.max(sighting.seen_at);
        }
        let is_newest = !self.present || self.shown_at <= Some(sighting.ready_at);
        self.note_suppression(observation.suppressed.is_some(), sighting);
        self.mark(sighting, first_in_audit);
        self.suppressed_by.retain(|id| *id == self.analysis_id || self.also_seen.contains_key(id));
        if is_newest {
            self.describe(observation, sighting);
        }
        self.assess(sighting.surroundings);
    }

    /// Stores whether the observing analysis suppresses the finding, unless a newer file of the
    /// same run has reported the finding. Called before [`mark`](Self::mark).
    fn note_suppression(&mut self, suppressed: bool, sighting: &ObservationSource<'_>) {
        if !self.present {
            self.suppressed_by.clear();
        } else if self.suppressed && self.suppressed_by.is_empty() {
            // Older versions did not store which analyses suppressed the finding.
            self.suppressed_by = self.reporters().map(|(id, _)| id.to_owned()).collect();
        }
        if self.is_reported_by(sighting.analysis_id, sighting.analysis_run) {
            return;
        }
        if suppressed {
            self.suppressed_by.insert(sighting.analysis_id.to_owned());
        } else {
            self.suppressed_by.remove(sighting.analysis_id);
        }
    }

    /// Whether the service marked the finding as suppressed, or the latest report of at least one
    /// analysis suppresses it. Otherwise [`suppressed_by`](Self::suppressed_by) need not be
    /// compared with the analyses that report the finding.
    pub(crate) fn may_be_suppressed(&self) -> bool {
        self.suppressed || !self.suppressed_by.is_empty()
    }

    /// Stores which analysis reported the finding. The finding belongs to the first analysis of an
    /// audit that reports it. An analysis from before artifact streams existed is replaced by its
    /// stream.
    fn mark(&mut self, sighting: &ObservationSource<'_>, first_in_audit: bool) {
        let ObservationSource { analysis_id, group_id, analysis_run, .. } = *sighting;
        // Another audit may have imported a later run of the analysis in the meantime.
        let runs = self.reporters().filter(|(id, _)| *id == analysis_id).map(|(_, run)| run);
        let analysis_run = runs.fold(analysis_run, i64::max);
        self.shown_at = self.shown_at.max(Some(sighting.ready_at));
        self.also_seen.remove(group_id);
        self.overlooked_by.remove(analysis_id);
        if !self.present {
            self.also_seen.clear();
            self.overlooked_by.clear();
            (self.present, self.gone_at) = (true, None);
        } else if ![analysis_id, group_id].contains(&self.analysis_id.as_str()) {
            if !first_in_audit {
                self.also_seen.insert(analysis_id.to_owned(), analysis_run);
                return self.forget_analyses(analysis_id);
            }
            self.also_seen.insert(self.analysis_id.clone(), self.analysis_run);
        }
        self.also_seen.remove(analysis_id);
        analysis_id.clone_into(&mut self.analysis_id);
        self.analysis_run = analysis_run;
        self.forget_analyses(analysis_id);
    }

    /// Returns the ids of the analyses that reported the finding, each with the number of its
    /// latest run that did.
    pub(crate) fn reporters(&self) -> impl Iterator<Item = (&str, i64)> {
        let others = self.also_seen.iter().map(|(id, run)| (id.as_str(), *run));
        others.chain([(self.analysis_id.as_str(), self.analysis_run)])
    }

    /// Whether the run with this number of this analysis reported the finding.
    pub(crate) fn is_reported_by(&self, analysis_id: &str, run: i64) -> bool {
        self.analysis_id == analysis_id && self.analysis_run == run
            || self.also_seen.get(analysis_id) == Some(&run)
    }

    /// Removes other analyses above the maximum number, except `latest`. There may be many, because
    /// filenames may change with every run.
    fn forget_analyses(&mut self, latest: &str) {
        while self.also_seen.len() > MOST_ANALYSES {
            let first = self.also_seen.keys().find(|id| *id != latest).cloned();
            self.also_seen.remove(&first.unwrap_or_default());
        }
    }

    /// Stores that an analysis scanned the finding's files without reporting the finding. Above the
    /// maximum number of analyses, stores a marker for any analysis instead.
    pub(crate) fn overlooked_by(&mut self, analysis_id: &str) {
        if self.analysis_id == analysis_id || self.also_seen.contains_key(analysis_id) {
            return;
        }
        let full = self.overlooked_by.len() >= MOST_ANALYSES;
        self.overlooked_by.insert(if full { ANY } else { analysis_id }.to_owned());
    }

    /// Whether this analysis scanned the finding's files without reporting the finding, while
    /// another analysis reported it.
    pub(crate) fn is_overlooked_by(&self, analysis_id: &str) -> bool {
        self.overlooked_by.contains(analysis_id) || self.overlooked_by.contains(ANY)
    }

    pub(crate) fn first_line(&self) -> Option<i64> {
        self.locations.first().and_then(|place| place.start_line)
    }

    /// Whether all files that reported the finding became ready before this time. True if no such
    /// time was stored.
    pub(crate) fn was_shown_before(&self, ready_at: Timestamp) -> bool {
        self.shown_at.is_none_or(|shown_at| shown_at < ready_at)
    }

    /// Whether the finding is gone according to a file that is not older than this time. `None` if
    /// the finding is gone and the time of that file was not stored.
    pub(crate) fn was_gone_at(&self, ready_at: Timestamp) -> Option<bool> {
        if self.present {
            return Some(false);
        }
        self.gone_at.map(|gone_at| ready_at <= gone_at)
    }

    /// Copies title, locations, severity and further properties from the latest observation into
    /// the finding. [`assess`](Self::assess) derives the others.
    fn describe(&mut self, observation: ResultObservation, sighting: &ObservationSource<'_>) {
        self.paths = observation.paths();
        let revision = observation.revision.as_deref().or(sighting.commit_sha);
        self.evidence_revision = revision.map(ToOwned::to_owned);
        sighting.branch_ref.clone_into(&mut self.branch_ref);
        self.title = observation.title;
        self.locations = observation.locations;
        self.purl = observation.purl;
        self.rating = observation.rating;
        self.rule_family = observation.rule_family;
        self.signature = observation.sketch.signature();
        self.message_hash = observation.message_hash;
        self.name_tool(observation.source);
    }

    /// Sets impact, risk and due date of the finding from its severity, the architecture and the
    /// number of audits.
    fn assess(&mut self, surroundings: &RepositoryArchitectureContext) {
        self.component_identity = surroundings.component_identity(self.purl.as_deref());
        self.architecture_impact = surroundings.impact(self.rating.risk_severity);
        self.architecture_confidence_percent = surroundings.confidence_percent;
        self.risk_rank = risk(&self.rating, surroundings.exposure_percent, self.audit_count);
        self.set_due_date();
    }

    /// Stores the tool of the latest observation as the finding's first tool; tools of merged
    /// findings follow.
    fn name_tool(&mut self, source: SourceTool) {
        match self.source_tools.first_mut() {
            Some(own) => *own = source,
            None => self.source_tools.push(source),
        }
    }

    /// Sets the finding's due date, counted from the beginning of its lifecycle; `None` for a
    /// settled finding.
    pub(crate) fn set_due_date(&mut self) {
        let days = self.rating.risk_severity.sla_days().filter(|_| self.open);
        self.sla_due_at = days.map(|days| self.lifecycle_started_at.plus_seconds(days * 86_400));
    }
}

/// Maximum number of further audits that increase the risk of a finding.
const MOST_RECURRENCES: i64 = 5;

/// Returns the risk of a finding (`risk_total`) in hundredths: severity times exposure times
/// recurrence.
///
/// Severity is the CVSS score, or 9.5, 8.0, 5.5, 2.0 and 0.0 for the bands. Exposure is 1.0 to 1.8
/// (see [`RepositoryArchitectureContext`]). Recurrence is 1.0 plus 0.1 for each further audit that
/// reported the finding, up to 1.5.
pub(crate) fn risk(rating: &Rating, exposure_percent: i64, audit_count: i64) -> i64 {
    let recurrence_percent = 100 + 10 * (audit_count - 1).clamp(0, MOST_RECURRENCES);
    // Tenths times percent times percent give hundred-thousandths.
    (rating.weight_tenths() * exposure_percent * recurrence_percent + 500) / 1000
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::severity::SeveritySource;

    fn rating(severity: Severity, tenths: Option<i64>) -> Rating {
        Rating {
            risk_severity: severity,
            severity_source: SeveritySource::Level,
            scanner_severity: String::new(),
            cvss_tenths: tenths,
        }
    }

    #[test]
    fn risk_is_severity_times_exposure_times_recurrence() {
        assert_eq!(risk(&rating(Severity::High, None), 100, 1), 800);
        assert_eq!(risk(&rating(Severity::High, Some(75)), 100, 1), 750);
        assert_eq!(risk(&rating(Severity::Critical, Some(98)), 150, 3), 1764);
        assert_eq!(risk(&rating(Severity::Critical, Some(100)), 180, 99), 2700);
        assert_eq!(risk(&rating(Severity::None, None), 180, 99), 0);
    }
}
