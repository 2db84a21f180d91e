//! Reasons why a version is refused, with instructions for the operator.

use std::fmt;

use super::trust::ComponentSignatureError;
use crate::registry::{LostDependency, RegistryError};
use assurance_contract::compatibility::{Compatibility, CompatibilityReport};
use assurance_core::domain::deployment::VersionStage;
use assurance_runtime::LoadError;
use assurance_store as store;

/// Reason why an operator's action on an area is refused: a version is not
/// stored, activated, tried or rolled back, or an area is not removed.
#[derive(Debug, thiserror::Error)]
pub enum AreaActionError {
    /// The signature is missing or invalid, or its publisher is not trusted.
    #[error(transparent)]
    Distrusted(#[from] ComponentSignatureError),
    /// This host cannot load the component.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The registry refuses the manifest, by itself or in combination with the
    /// other live areas.
    #[error(transparent)]
    Refused(#[from] RegistryError),
    /// The manifest names another area than the request.
    #[error(
        "the component is the area {found:?}, not {expected:?}; deploy it under its name, with \
         `--area {found}`"
    )]
    OtherArea {
        /// Area name in the deploy request.
        expected: String,
        /// Area name in the manifest.
        found: String,
    },
    /// The version breaks clients or other areas.
    #[error("{0}")]
    Incompatible(IncompatibleVersion),
    /// The version requests capabilities that the live version was not granted.
    #[error(
        "version {version} of area {area:?} asks for {asks}, which the live version was not \
         granted; once deployed, it waits for an operator with the scope `approve`: `assurance \
         area approve {area} --digest {digest}`, and then `assurance area activate {area}{options}`"
    )]
    NeedsApproval {
        /// Name of the area.
        area: String,
        /// Version number from the manifest.
        version: String,
        /// Digest of the version.
        digest: String,
        /// Names of the additional capabilities.
        asks: String,
        /// Options with which the version is activated; empty if it needs none.
        options: &'static str,
    },
    /// The version breaks clients, so it cannot be a canary.
    #[error(
        "version {version} of area {area:?} cannot be a canary: clients that follow the contract \
         of the live version can be answered by the canary, which breaks it:\n{broken}\nfix \
         this, or make the version live: `assurance area activate {area} --digest {digest} --force REASON`"
    )]
    NoCanary {
        /// Name of the area.
        area: String,
        /// Version number from the manifest.
        version: String,
        /// Digest of the version.
        digest: String,
        /// Incompatibilities with the live version, one per line.
        broken: String,
    },
    /// Another version of the area is on trial.
    #[error(
        "area {area:?} has version {digest} on trial; end that first: `assurance area stop {area} \
         --reason REASON`, or let it answer: `assurance area activate {area}`"
    )]
    OtherTrial {
        /// Name of the area.
        area: String,
        /// Digest of the version on trial.
        digest: String,
    },
    /// The version is live, so it can neither be tried nor be the target of a
    /// rollback.
    #[error("version {digest} of area {area:?} is live already; nothing was changed")]
    AlreadyLive {
        /// Name of the area.
        area: String,
        /// Digest of the live version.
        digest: String,
    },
    /// The area with this name has no version on trial.
    #[error(
        "area {0:?} has no version on trial; `assurance area status {0}` lists its versions, \
         and `assurance area deploy FILE --canary 5` or `--shadow` tries one"
    )]
    NoTrial(String),
    /// The area with this name has no version that is staged or waits for approval.
    #[error(
        "area {0:?} has no version on trial and none that waits; `assurance area history \
         {0}` lists its versions, and `assurance area activate {0} --digest DIGEST` makes \
         one of them live"
    )]
    NoneWaits(String),
    /// The requested name matches several versions.
    #[error(
        "{named} of area {area:?} may be any of these:\n{candidates}\nname one by the first \
         characters of its digest"
    )]
    Ambiguous {
        /// Name of the area.
        area: String,
        /// Requested version: a digest prefix, a version number, or a phrase.
        named: String,
        /// Matching versions, one per line.
        candidates: String,
    },
    /// The version to roll back to was never live.
    #[error(
        "version {digest} of area {area:?} was never live, so nothing can be rolled back to it; \
         `assurance area activate {area} --digest {digest}` makes it live"
    )]
    NeverLive {
        /// Name of the area.
        area: String,
        /// Digest of the version.
        digest: String,
    },
    /// The version does not wait for approval.
    #[error("version {digest} of area {area:?} waits for no approval; it is {stage}")]
    NotWaiting {
        /// Name of the area.
        area: String,
        /// Digest of the version.
        digest: String,
        /// Present stage of the version.
        stage: VersionStage,
    },
    /// A call of the smoke test failed with a fault of the version.
    #[error(
        "area {area:?} failed at its first call of `{call}`, before anybody depended on it: \
         {problem}\n`assurance area logs {area}` has the stack; fix it and deploy it again"
    )]
    SmokeTestFailed {
        /// Name of the area whose version failed the smoke test.
        area: String,
        /// Call of the smoke test that failed: `describe` or an operation id.
        call: String,
        /// Error with which the failed call ended.
        problem: String,
    },
    /// The indexes of the version's collections could not be created.
    #[error("the indexes of area {area:?} could not be made: {source}{}", index_hint(.source))]
    Indexes {
        /// Name of the area.
        area: String,
        /// Error of the database while it created the indexes.
        source: store::Error,
    },
    /// No area with this name is or was live, and none has a version.
    #[error("there is no area {0:?}; `assurance area list` lists the areas")]
    NoSuchArea(String),
    /// The area has no such version.
    #[error(
        "area {area:?} has no version {digest:?}, neither by digest nor by number; `assurance area \
         history {area}` lists those it has, and `assurance area deploy` brings another"
    )]
    NotKnown {
        /// Name of the area.
        area: String,
        /// Requested version: a digest or a version number.
        digest: String,
    },
    /// The area with this name has no version that was live before the current one, so a rollback
    /// has no target.
    #[error(
        "no version of area {0:?} was live before this one; make one of its history live by its \
         digest instead: `assurance area activate {0} --digest DIGEST`, or deploy the former file \
         again: `assurance area deploy FILE --activate`"
    )]
    NothingBefore(String),
    /// Other areas depend on documents, blobs or events of the area that is to
    /// be removed.
    #[error(
        "other areas depend on area {area:?}:\n{}\nremove or change them first, or remove it \
         nevertheless: `assurance area remove {area} --reason REASON --force`",
        lines(dependents)
    )]
    DependedOn {
        /// Name of the area.
        area: String,
        /// Access to the area's data or events that other areas would lose.
        dependents: Vec<LostDependency>,
    },
    /// Another operator or node changed the area with this name at the same time;
    /// nothing was done.
    #[error("area {0:?} was changed by somebody else meanwhile; look at it and decide again")]
    Overtaken(String),
    /// Another node decided about another area, and this node does not run its
    /// version yet; nothing was done.
    #[error(
        "this node does not run the live version of area {other:?} yet, so it cannot decide about \
         area {area:?}; repeat this in some seconds, or at another node"
    )]
    NotCaughtUp {
        /// Name of the area.
        area: String,
        /// Name of the other area, whose live version this node does not run
        /// yet.
        other: String,
    },
    /// The blob store does not have the version's component.
    #[error(
        "the blob store has no {object}, a component of area {area:?}; do all nodes share one \
         (blobs.url, or blobs.dir)?"
    )]
    Missing {
        /// Name of the area.
        area: String,
        /// Name of the missing object.
        object: String,
    },
    /// The bytes in the blob store do not have the version's digest.
    #[error("the stored component of area {area:?} has the digest {found}, not {digest}")]
    Damaged {
        /// Name of the area.
        area: String,
        /// Digest of the version.
        digest: String,
        /// Digest of the stored bytes.
        found: String,
    },
    /// The database or the blob store failed.
    #[error(transparent)]
    Store(#[from] store::Error),
}

impl AreaActionError {
    pub(super) fn not_known(area: &str, digest: &str) -> Self {
        Self::NotKnown { area: area.to_owned(), digest: digest.to_owned() }
    }
}

fn lines(dependents: &[LostDependency]) -> String {
    let lines = dependents.iter().map(|one| format!("- {one}"));
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns the hint how to fix documents that violate a new unique index; empty
/// for other errors.
fn index_hint(source: &store::Error) -> &'static str {
    match source {
        store::Error::UniqueConflict { .. } => {
            " in its workspace; change such documents by the live version's operations, then \
             deploy the unique index again"
        }
        _ => "",
    }
}

/// A version that is refused because it breaks clients or areas that use the
/// live version.
#[derive(Clone, Debug)]
pub struct IncompatibleVersion {
    /// Name of the area.
    pub area: String,
    /// Version number of the live version.
    pub live: String,
    /// Version number of the refused version.
    pub candidate: String,
    /// Command of `assurance area` that accepts the version with `--force`.
    pub command: String,
    /// Differences between the two versions.
    pub report: CompatibilityReport,
}

impl fmt::Display for IncompatibleVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { area, live, candidate, command, report } = self;
        writeln!(f, "version {candidate} of area {area:?} breaks those who rely on {live}:")?;
        for difference in report.broken() {
            writeln!(f, "- {difference}")?;
        }
        match report.verdict() {
            Compatibility::Forbidden => {
                let others =
                    report.broken().filter(|found| found.verdict == Compatibility::Forbidden);
                write!(
                    f,
                    "{} of these would break other areas and cannot be forced: publish the new \
                     shape as another collection, move its readers, and let go of the old one then",
                    others.count()
                )
            }
            _ => write!(
                f,
                "fix them, or force it with a reason that the audit log keeps: `assurance area \
                 {command} --force REASON`; a canary cannot be forced"
            ),
        }
    }
}
