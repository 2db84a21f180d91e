//! Why a version does not come to answer, in words for the operator.

use super::checks::Incompatible;
use super::trust::Distrust;
use crate::domain::deployment::Stage;
use crate::registry::{Dependent, Refusal};
use crate::runtime::LoadError;
use crate::store;

/// Why a version is not taken in, put in place of another, or taken out.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// Nobody who is trusted vouches for it.
    #[error(transparent)]
    Distrusted(#[from] Distrust),
    /// The component is not one this host can run.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// Its manifest does not fit.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// It calls itself something else than the caller says.
    #[error("the component is the area {found:?}, not {expected:?}; send it to /areas/{found}")]
    OtherArea {
        /// As the caller says.
        expected: String,
        /// As the component says.
        found: String,
    },
    /// Others would notice.
    #[error("{0}")]
    Incompatible(Incompatible),
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
        /// What it asks for.
        asks: String,
    },
    /// Clients of a canary would notice.
    #[error(
        "version {version} of area {area:?} cannot be a canary: clients are told what the live \
         version does, whoever answers them, and it breaks some of that:\n{broken}\nmend them, or \
         let it answer alone: `assurance area activate {area} --digest {digest} --force REASON`"
    )]
    NoCanary {
        /// Which area.
        area: String,
        /// Its version.
        version: String,
        /// Its digest.
        digest: String,
        /// What it breaks, a line each.
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
        /// What is on trial.
        digest: String,
    },
    /// What is live is not tried.
    #[error("version {digest} of area {area:?} answers everybody already; there is nothing to try")]
    AnswersAlready {
        /// Which area.
        area: String,
        /// What is live.
        digest: String,
    },
    /// Nothing is on trial.
    #[error(
        "area {area:?} has no version on trial; `assurance area status {area}` tells its versions, \
         and `assurance area deploy FILE --canary 5` or `--shadow` tries one"
    )]
    NoTrial {
        /// Which area.
        area: String,
    },
    /// There is nothing to approve.
    #[error("version {digest} of area {area:?} waits for no approval; it is {stage}")]
    NotWaiting {
        /// Which area.
        area: String,
        /// Its digest.
        digest: String,
        /// How far it has come.
        stage: Stage,
    },
    /// One of its first calls failed.
    #[error(
        "area {area:?} failed at its first call of `{call}`, before anybody depended on it: \
         {problem}; the log has where. Mend it and deploy it again"
    )]
    Rehearsal {
        /// Which area.
        area: String,
        /// What was called.
        call: String,
        /// How it failed.
        problem: String,
    },
    /// Its indexes could not be made.
    #[error("the indexes of area {area:?} could not be made: {source}")]
    Indexes {
        /// Which area.
        area: String,
        /// What the store said.
        source: store::Error,
    },
    /// There is no such version.
    #[error(
        "area {area:?} has no version of digest {digest:?}; its history lists those it has, and \
         PUT /areas/{area} brings another"
    )]
    NotKnown {
        /// Which area.
        area: String,
        /// As the caller says.
        digest: String,
    },
    /// There is nothing to go back to.
    #[error(
        "no version of area {area:?} was live before this one; activate one of its history by its \
         digest instead"
    )]
    NothingBefore {
        /// Which area.
        area: String,
    },
    /// Others would lose what they read, or the events that run them.
    #[error(
        "other areas depend on area {area:?}:\n{}\nremove or change them first, or remove it \
         nevertheless: `assurance area remove {area} --reason REASON --force`",
        lines(dependents)
    )]
    DependedOn {
        /// Which area.
        area: String,
        /// What depends on it.
        dependents: Vec<Dependent>,
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
        /// What was looked for.
        object: String,
    },
    /// What the blob store has is not what was deployed.
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

fn lines(dependents: &[Dependent]) -> String {
    let lines = dependents.iter().map(|one| format!("- {one}"));
    lines.collect::<Vec<_>>().join("\n")
}
