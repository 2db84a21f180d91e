//! Finds the version that an operator names: by its digest, by the first
//! characters of it, or by its version number.

use super::super::App;
use super::error::InstallError;
use super::rows;
use super::state::AreaState;
use assurance_core::domain::deployment::{Deployment, Stage};
use assurance_store::{self as store, deployments};

/// Minimum number of a digest's characters that name a version.
const MIN_PREFIX: usize = 4;
/// Number of a digest's characters in messages.
const SHOWN: usize = 12;
/// Number of characters of a digest.
const DIGEST: usize = 64;
/// Maximum number of versions that a refusal lists.
const MAX_CANDIDATES: u32 = 20;

/// Returns the digest of the version with this name.
///
/// # Errors
/// No version of the area has this name, or several have.
pub(super) async fn digest_of(app: &App, area: &str, named: &str) -> Result<String, InstallError> {
    if named.len() == DIGEST {
        return Ok(named.to_owned());
    }
    let found = versions(app, area, named).await?;
    let digest = match found.as_slice() {
        [one] => Some(one.digest.clone()),
        [] => running(app, area, named),
        several => return Err(ambiguous(area, &format!("{named:?}"), several)),
    };
    digest.ok_or_else(|| InstallError::not_known(area, named))
}

async fn versions(app: &App, area: &str, named: &str) -> Result<Vec<Deployment>, store::Error> {
    if named.len() < MIN_PREFIX {
        return Ok(Vec::new());
    }
    let named = named.to_ascii_lowercase();
    rows::read(app, async |connection| {
        deployments::matching(connection, area, &named, MAX_CANDIDATES).await
    })
    .await
}

/// The version that runs from this node's folder has no row.
fn running(app: &App, area: &str, named: &str) -> Option<String> {
    let snapshot = app.registry.snapshot();
    let live = snapshot.running(area)?;
    let is_prefix = named.len() >= MIN_PREFIX && live.digest.starts_with(named);
    (is_prefix || live.manifest.version.to_string() == named).then(|| live.digest.clone())
}

/// Returns the digest of the only version that waits to be activated.
///
/// # Errors
/// No version waits, or several do.
pub(super) async fn only_waiting(app: &App, area: &str) -> Result<String, InstallError> {
    let waiting = rows::read(app, async |connection| deployments::current(connection).await);
    let mut waiting = waiting.await?;
    waiting.retain(|version| {
        version.area == area && matches!(version.stage, Stage::Staged | Stage::AwaitingApproval)
    });
    match waiting.as_slice() {
        [one] => Ok(one.digest.clone()),
        [] => Err(InstallError::NoneWaits { area: area.to_owned() }),
        several => Err(ambiguous(area, "the version that waits", several)),
    }
}

/// Returns the digest of the version that a rollback to this name makes live.
/// Its checks and approvals are not repeated, so it must have been live.
///
/// # Errors
/// No version has this name, several have, it is live, or it never was.
pub(super) async fn rollback_target(
    app: &App,
    state: &AreaState,
    named: &str,
) -> Result<String, InstallError> {
    let area = &state.area;
    let digest = digest_of(app, area, named).await?;
    if state.desired.live() == Some(&digest) {
        return Err(InstallError::AlreadyLive { area: area.clone(), digest });
    }
    let found = rows::version(app, area, &digest).await?;
    match found.stage {
        Stage::Retired | Stage::Withdrawn => Ok(digest),
        _ if found.live_at.is_some() => Ok(digest),
        _ => Err(InstallError::NeverLive { area: area.clone(), digest }),
    }
}

fn ambiguous(area: &str, named: &str, found: &[Deployment]) -> InstallError {
    let line = |version: &Deployment| {
        let Deployment { version: number, digest, stage, received_at, received_by, .. } = version;
        let (digest, at) = (digest.get(..SHOWN).unwrap_or(digest), received_at.to_rfc3339());
        format!("- {digest} {number}, {stage}, received {at} from {received_by}")
    };
    let candidates = found.iter().map(line).collect::<Vec<_>>().join("\n");
    InstallError::Ambiguous { area: area.to_owned(), named: named.to_owned(), candidates }
}
