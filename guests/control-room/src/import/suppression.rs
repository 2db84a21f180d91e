//! Decides whether scans suppress a finding that several analyses report.
//!
//! The streams of a group are runs of one tool on one branch, so the stream with the newest file
//! decides for its group. All groups must suppress the finding: a suppression on one branch or in
//! one category does not hide what another reports.

use std::collections::{BTreeMap, BTreeSet};

use area_sdk::JobError;
use area_sdk::prelude::*;

use super::analysis::AnalysisSeries;
use crate::finding::{Finding, ObservationSource};
use crate::observation::ResultObservation;

/// The analyses, by id, that report findings of a job step which a scan suppresses or suppressed.
pub(super) struct SuppressionReporters(BTreeMap<String, Stored<AnalysisSeries>>);

impl SuppressionReporters {
    pub(super) fn read(
        ctx: &JobCtx,
        sighting: &ObservationSource<'_>,
        observations: &[ResultObservation],
        known: &BTreeMap<String, Stored<Finding>>,
    ) -> Result<Self, JobError> {
        let mut ids = BTreeSet::new();
        for one in observations {
            let Some(finding) = known.get(&one.identity) else { continue };
            if one.suppressed.is_some() || finding.may_be_suppressed() {
                ids.insert(sighting.analysis_id);
                ids.extend(finding.reporters().map(|(id, _)| id));
            }
        }
        if ids.is_empty() {
            return Ok(Self(BTreeMap::new()));
        }
        let analyses = ctx.documents::<AnalysisSeries>().get_many(ids)?;
        Ok(Self(analyses.into_iter().map(|one| (one.id.clone(), one)).collect()))
    }

    /// Whether all groups of analyses that still report the finding suppress it. `own` is the id of
    /// the analysis whose report was just stored in the finding.
    pub(super) fn all_suppress(&self, finding: &Finding, own: &str) -> bool {
        // Time of the newest file, and whether it shows the finding without suppressing it. If two
        // files have the same time, the one that does not suppress it decides.
        let mut groups: BTreeMap<&str, (Timestamp, bool)> = BTreeMap::new();
        for (id, run) in finding.reporters() {
            let analysis = self.0.get(id).filter(|one| id == own || run >= one.good_run);
            let Some(analysis) = analysis else { continue };
            let report = (analysis.newest_file_at(), !finding.suppressed_by.contains(id));
            let newest = groups.entry(analysis.group(id)).or_insert(report);
            *newest = (*newest).max(report);
        }
        !groups.is_empty() && groups.values().all(|(_, shown)| !shown)
    }
}
