//! Metrics of the versions that this node runs.

use metrics::{describe_gauge, gauge};

use super::snapshot::{AreaVersion, Snapshot};
use super::trial::VersionOnTrial;

/// Name of the metric that shows the live version of each area.
const LIVE_VERSIONS: &str = "assurance_area_live_info";
/// Name of the metric that shows the version on trial of each area.
const TRIALS: &str = "assurance_area_trial_info";

/// Registers the descriptions of the metrics of live versions and versions on trial.
pub(super) fn describe() {
    describe_gauge!(LIVE_VERSIONS, "1 for the version of an area that is live on this node");
    describe_gauge!(TRIALS, "1 for the version of an area that is on trial on this node");
}

/// Sets the version metrics of an area that changed: 1 for its present versions, 0 for those
/// before.
pub(super) fn report(area: &str, before: &Snapshot, now: &Snapshot) {
    for (snapshot, value) in [(before, 0.0), (now, 1.0)] {
        if let Some(version) = snapshot.area(area) {
            gauge!(LIVE_VERSIONS, &labels(version)).set(value);
        }
        if let Some(VersionOnTrial { trial, version, .. }) = snapshot.trial(area).map(AsRef::as_ref)
        {
            let mode = ("mode", trial.mode.as_str().to_owned());
            let labels: Vec<_> = labels(version).into_iter().chain([mode]).collect();
            gauge!(TRIALS, &labels).set(value);
        }
    }
}

fn labels(version: &AreaVersion) -> [(&'static str, String); 3] {
    [
        ("area", version.manifest.name.clone()),
        ("version", version.manifest.version.to_string()),
        ("digest", version.digest.clone()),
    ]
}
