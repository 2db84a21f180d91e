//! Why a version is refused, and what to do about it, for the operator.

use std::fmt;

use super::trust::TrustError;
use crate::registry::{LostDependency, RegistryError};
use assurance_contract::compatibility::{Compatibility, CompatibilityReport};
use assurance_core::domain::deployment::Stage;
use assurance_runtime::LoadError;
use assurance_store as store;

/// Why a version is not stored, activated, tried or removed.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// No trusted publisher signed it.
    #[error(transparent)]
    Distrusted(#[from] TrustError),
    /// The component is not one this host can run.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// Its manifest does not fit.
    #[error(transparent)]
    Refused(#[from] RegistryError),
    /// Its manifest has another name than the request.
    #[error(
        "the component is the area {found:?}, not {expected:?}; deploy it under its name, with \
         `--area {found}`"
    )]
    OtherArea {
        /// As the request names it.
        expected: String,
        /// As the manifest names it.
        found: String,
    },
    /// It breaks clients or other areas.
    #[error("{0}")]
    Incompatible(IncompatibleVersion),
    /// It asks for more than the live version was granted.
    #[error(
        "version {version} of area {area:?} asks for {asks}, which the live version was not \
         granted; it is kept, and waits for an operator with the scope `approve`: `assurance area \
         approve {area} --digest {digest}`, and then `assurance area activate`"
    )]
    NeedsApproval {
        /// Which area.
        area: String,
        /// Its version.
        version: String,
        /// Its digest.
        digest: String,
        /// Capabilities that it asks for.
        asks: String,
    },
    /// It would break clients as a canary.
    #[error(
        "version {version} of area {area:?} cannot be a canary: clients read what the live \
         version does, whoever answers them, and it breaks some of that:\n{broken}\nfix them, or \
         let it answer alone: `assurance area activate {area} --digest {digest} --force REASON`"
    )]
    NoCanary {
        /// Which area.
        area: String,
        /// Its version.
        version: String,
        /// Its digest.
        digest: String,
        /// Incompatibilities, one line each.
        broken: String,
    },
    /// One version at a time is tried.
    #[error(
        "area {area:?} has version {digest} on trial; end that first: `assurance area stop {area} \
         --reason REASON`, or let it answer: `assurance area activate {area}`"
    )]
    OtherTrial {
        /// Which area.
        area: String,
        /// Digest of the version on trial.
        digest: String,
    },
    /// The version is live and cannot be on trial.
    #[error("version {digest} of area {area:?} answers everybody already; nothing was changed")]
    AlreadyLive {
        /// Which area.
        area: String,
        /// Digest of the live version.
        digest: String,
    },
    /// Nothing is on trial.
    #[error(
        "area {area:?} has no version on trial; `assurance area status {area}` lists its versions, \
         and `assurance area deploy FILE --canary 5` or `--shadow` tries one"
    )]
    NoTrial {
        /// Which area.
        area: String,
    },
    /// No version waits to be activated.
    #[error(
        "area {area:?} has no version on trial and none that waits; `assurance area history \
         {area}` lists its versions, and `assurance area activate {area} --digest DIGEST` makes \
         one of them live"
    )]
    NoneWaits {
        /// Which area.
        area: String,
    },
    /// Several versions have this name.
    #[error(
        "{named} of area {area:?} may be any of these:\n{candidates}\nname one by the first \
         characters of its digest"
    )]
    Ambiguous {
        /// Which area.
        area: String,
        /// As the caller says.
        named: String,
        /// One line for each version.
        candidates: String,
    },
    /// A rollback goes only to a version that was live.
    #[error(
        "version {digest} of area {area:?} was never live, so nothing can be rolled back to it; \
         `assurance area activate {area} --digest {digest}` makes it live"
    )]
    NeverLive {
        /// Which area.
        area: String,
        /// Its digest.
        digest: String,
    },
    /// There is nothing to approve.
    #[error("version {digest} of area {area:?} waits for no approval; it is {stage}")]
    NotWaiting {
        /// Which area.
        area: String,
        /// Its digest.
        digest: String,
        /// Its stage.
        stage: Stage,
    },
    /// One of the two calls of the smoke test failed.
    #[error(
        "area {area:?} failed at its first call of `{call}`, before anybody depended on it: \
         {problem}\n`assurance area logs {area}` has the stack; fix it and deploy it again"
    )]
    SmokeTestFailed {
        /// Which area.
        area: String,
        /// The call of the smoke test.
        call: String,
        /// How it failed.
        problem: String,
    },
    /// Its indexes could not be created.
    #[error("the indexes of area {area:?} could not be made: {source}")]
    Indexes {
        /// Which area.
        area: String,
        /// Error of the database.
        source: store::Error,
    },
    /// There is no such version.
    #[error(
        "area {area:?} has no version {digest:?}, neither by digest nor by number; `assurance area \
         history {area}` lists those it has, and `assurance area deploy` brings another"
    )]
    NotKnown {
        /// Which area.
        area: String,
        /// As the request names it.
        digest: String,
    },
    /// There is no version to roll back to.
    #[error(
        "no version of area {area:?} was live before this one; make one of its history live by its \
         digest instead: `assurance area activate {area} --digest DIGEST`"
    )]
    NothingBefore {
        /// Which area.
        area: String,
    },
    /// Other areas would lose what they read, or the events that run them.
    #[error(
        "other areas depend on area {area:?}:\n{}\nremove or change them first, or remove it \
         nevertheless: `assurance area remove {area} --reason REASON --force`",
        lines(dependents)
    )]
    DependedOn {
        /// Which area.
        area: String,
        /// What depends on it.
        dependents: Vec<LostDependency>,
    },
    /// Another operator was faster.
    #[error("area {area:?} was changed by somebody else meanwhile; look at it and decide again")]
    Overtaken {
        /// Which area.
        area: String,
    },
    /// The blob store does not have it.
    #[error(
        "the blob store has no {object}, a component of area {area:?}; do all nodes share one \
         (blobs.url, or blobs.dir)?"
    )]
    Missing {
        /// Which area.
        area: String,
        /// Name of the missing object.
        object: String,
    },
    /// The stored component has another digest than the deployed one.
    #[error("the stored component of area {area:?} has the digest {found}, not {digest}")]
    Damaged {
        /// Which area.
        area: String,
        /// As deployed.
        digest: String,
        /// As read.
        found: String,
    },
    /// The database or the blob store failed.
    #[error(transparent)]
    Store(#[from] store::Error),
}

impl InstallError {
    pub(super) fn not_known(area: &str, digest: &str) -> Self {
        Self::NotKnown { area: area.to_owned(), digest: digest.to_owned() }
    }
}

fn lines(dependents: &[LostDependency]) -> String {
    let lines = dependents.iter().map(|one| format!("- {one}"));
    lines.collect::<Vec<_>>().join("\n")
}

/// A version that clients or other areas would notice.
#[derive(Clone, Debug)]
pub struct IncompatibleVersion {
    /// Which area.
    pub area: String,
    /// The live version.
    pub live: String,
    /// The version that is refused.
    pub candidate: String,
    /// Differences between the two versions.
    pub report: CompatibilityReport,
}

impl fmt::Display for IncompatibleVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { area, live, candidate, report } = self;
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
            _ => f.write_str(
                "fix them, or force it with a reason that the audit log keeps: `assurance area \
                 deploy FILE --force REASON`",
            ),
        }
    }
}
