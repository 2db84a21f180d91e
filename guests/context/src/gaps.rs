//! Coverage gaps: missing signals, summed over repositories.

use area_sdk::prelude::*;

use crate::content::ContextSource;
use crate::repositories::SIGNALS;

/// Maximum number of repository ids that a coverage gap lists.
const NAMED: usize = 20;

/// A signal that some repositories lack, or the gap that there are no repositories.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct CoverageGap {
    /// Code of the coverage gap: `missing_` and the signal, or `no_repositories`.
    code: String,
    signal: Option<String>,
    /// Number of listed repositories (the newest 500) that lack the signal.
    repository_count: usize,
    /// Ids of the newest 20 repositories that lack the signal.
    repository_ids: Vec<Uuid>,
    /// How to close the coverage gap.
    detail: String,
}

/// Returns the coverage gaps of the repositories in the snapshot.
pub(crate) fn sum_up(repositories: &[ContextSource], repository_count: u64) -> Vec<CoverageGap> {
    if repository_count == 0 {
        return vec![CoverageGap {
            code: "no_repositories".to_owned(),
            signal: None,
            repository_count: 0,
            repository_ids: Vec::new(),
            detail: "Register a repository.".to_owned(),
        }];
    }
    SIGNALS.into_iter().filter_map(|signal| gap(repositories, signal)).collect()
}

fn gap(repositories: &[ContextSource], signal: &str) -> Option<CoverageGap> {
    let without =
        |source: &&ContextSource| source.missing_signals.iter().any(|missing| missing == signal);
    let ids: Vec<Uuid> =
        repositories.iter().filter(without).filter_map(|source| source.repository_id).collect();
    (!ids.is_empty()).then(|| CoverageGap {
        code: format!("missing_{signal}"),
        signal: Some(signal.to_owned()),
        repository_count: ids.len(),
        repository_ids: ids.into_iter().take(NAMED).collect(),
        detail: remedy(signal).to_owned(),
    })
}

fn remedy(signal: &str) -> &'static str {
    match signal {
        "dependencies" => "Upload a CycloneDX or SPDX document and start an audit.",
        "deployments" => "Submit evidence records of kind `deployment`.",
        "findings" => "Upload a SARIF file and start an audit.",
        "ownership" => "Upload a CODEOWNERS file and start an audit.",
        _ => "Register the services that are built from these repositories.",
    }
}
