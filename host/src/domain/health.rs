//! What a node reports about itself to a load balancer and to people.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a check says when it finds nothing wrong.
pub const OK: &str = "ok";

/// One thing that a node needs in order to serve.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Check {
    /// The process has started and is not stopping.
    Serving,
    /// The database answers.
    Database,
    /// A write commits.
    Writes,
    /// Every live version of an area runs on this node.
    Areas,
    /// The database is used with this node's master key.
    MasterKey,
    /// This machine's clock is the database's, but for some seconds.
    Clock,
    /// No newer release has migrated the database.
    Schema,
    /// The blob store answers.
    Blobs,
}

/// Whether a load balancer should send requests to a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Readiness {
    /// Yes: every check is `ok`.
    Ready,
    /// Yes: only checks of `readiness.degraded_by` are not `ok`.
    Degraded,
    /// No.
    Unready,
}

/// The result of all checks of a node.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct HealthReport {
    /// `ready` and `degraded` come with status 200, `unready` with 503.
    pub status: Readiness,
    /// One line for each check: `ok`, or what is wrong and what to do.
    pub checks: BTreeMap<Check, String>,
}

impl HealthReport {
    /// Puts the results of checks together; those of `degrading` do not make
    /// a node unready.
    #[must_use]
    pub fn new(checks: BTreeMap<Check, String>, degrading: &[Check]) -> Self {
        let mut failed = checks.iter().filter(|(_, line)| *line != OK).map(|(check, _)| check);
        let status = match failed.next() {
            None => Readiness::Ready,
            Some(first) if std::iter::once(first).chain(failed).all(|c| degrading.contains(c)) => {
                Readiness::Degraded
            }
            Some(_) => Readiness::Unready,
        };
        Self { status, checks }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(failed: &[Check], degrading: &[Check]) -> Readiness {
        let mut checks = BTreeMap::from([(Check::Database, OK.to_owned())]);
        checks.extend(failed.iter().map(|check| (*check, "it is away".to_owned())));
        HealthReport::new(checks, degrading).status
    }

    #[test]
    fn only_what_may_degrade_leaves_a_node_in_service() {
        assert_eq!(status(&[], &[]), Readiness::Ready);
        assert_eq!(status(&[Check::Blobs], &[Check::Blobs]), Readiness::Degraded);
        assert_eq!(status(&[Check::Blobs], &[]), Readiness::Unready);
        let both = [Check::Areas, Check::Blobs];
        assert_eq!(status(&both, &[Check::Blobs]), Readiness::Unready);
        assert_eq!(status(&both, &both), Readiness::Degraded);
    }
}
