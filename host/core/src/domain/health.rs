//! Health of a node, for load balancers and operators.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Result of a health check that found no problem.
pub const OK: &str = "ok";

/// A condition that a node must meet to serve.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "HealthCheck")]
pub enum HealthCheckName {
    /// The process has started and is not stopping.
    Serving,
    /// The database responds to queries.
    Database,
    /// A test write to the database commits.
    Writes,
    /// Every live version runs on this node.
    Areas,
    /// This node's master key is the one that the database's secrets are
    /// encrypted with.
    MasterKey,
    /// This machine's clock differs from the database's clock by at most
    /// `readiness.max_clock_difference_ms`.
    Clock,
    /// The database was not migrated by a newer release.
    Schema,
    /// The blob store responds.
    Blobs,
}

/// Whether a load balancer should send requests to a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Readiness {
    /// The node is ready: all checks are `ok`.
    Ready,
    /// The node still accepts requests: only checks of `readiness.degraded_by`
    /// fail.
    Degraded,
    /// The node is not ready: a check that is not in `readiness.degraded_by`
    /// fails.
    Unready,
}

/// The results of all health checks of a node.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct HealthReport {
    /// Whether the node is ready; `ready` and `degraded` are sent with HTTP
    /// status 200, `unready` with 503.
    pub status: Readiness,
    /// Result of each health check: `ok`, or the problem and its fix.
    pub checks: BTreeMap<HealthCheckName, String>,
    /// Progress of a migration of the database that runs while the nodes serve;
    /// absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub migration: Option<String>,
}

impl HealthReport {
    /// Combines the results of a node's health checks. Checks in `degrading`
    /// only degrade a node if they fail; other checks make it unready.
    #[must_use]
    pub fn new(checks: BTreeMap<HealthCheckName, String>, degrading: &[HealthCheckName]) -> Self {
        let mut failed = checks.iter().filter(|(_, line)| *line != OK).map(|(check, _)| check);
        let status = match failed.next() {
            None => Readiness::Ready,
            Some(first) if std::iter::once(first).chain(failed).all(|c| degrading.contains(c)) => {
                Readiness::Degraded
            }
            Some(_) => Readiness::Unready,
        };
        Self { status, checks, migration: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(failed: &[HealthCheckName], degrading: &[HealthCheckName]) -> Readiness {
        let mut checks = BTreeMap::from([(HealthCheckName::Database, OK.to_owned())]);
        checks.extend(failed.iter().map(|check| (*check, "it is away".to_owned())));
        HealthReport::new(checks, degrading).status
    }

    #[test]
    fn only_what_may_degrade_leaves_a_node_in_service() {
        assert_eq!(status(&[], &[]), Readiness::Ready);
        assert_eq!(
            status(&[HealthCheckName::Blobs], &[HealthCheckName::Blobs]),
            Readiness::Degraded
        );
        assert_eq!(status(&[HealthCheckName::Blobs], &[]), Readiness::Unready);
        let both = [HealthCheckName::Areas, HealthCheckName::Blobs];
        assert_eq!(status(&both, &[HealthCheckName::Blobs]), Readiness::Unready);
        assert_eq!(status(&both, &both), Readiness::Degraded);
    }
}
