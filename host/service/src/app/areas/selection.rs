//! Finds a version by its digest, by the first characters of the digest, or by
//! its version number.

use super::super::App;
use super::error::AreaActionError;
use super::rows;
use super::state::DesiredAndRunningArea;
use assurance_core::domain::deployment::{StoredVersion, VersionStage};
use assurance_store::{self as store, deployments};

/// Minimum length of a digest prefix that selects a version, in characters.
const MIN_PREFIX: usize = 4;
/// Number of characters of a digest that error messages show.
const SHOWN: usize = 12;
/// Length of a digest in hex, in characters.
const DIGEST: usize = 64;
/// Maximum number of versions that an error message lists.
const MAX_CANDIDATES: u32 = 20;

/// Returns the digest of the version that an operator named, by digest, digest
/// prefix or version number.
///
/// # Errors
/// No version of the area matches, or several do.
pub(super) async fn digest_of(
    app: &App,
    area: &str,
    named: &str,
) -> Result<String, AreaActionError> {
    if named.len() == DIGEST {
        return Ok(named.to_ascii_lowercase());
    }
    let found = versions(app, area, named).await?;
    let digest = match found.as_slice() {
        [one] => Some(one.digest.clone()),
        [] => running(app, area, named),
        several => return Err(ambiguous(area, &format!("{named:?}"), several)),
    };
    digest.ok_or_else(|| AreaActionError::not_known(area, named))
}

async fn versions(app: &App, area: &str, named: &str) -> Result<Vec<StoredVersion>, store::Error> {
    if named.len() < MIN_PREFIX {
        return Ok(Vec::new());
    }
    rows::read(app, async |connection| {
        deployments::matching(connection, area, named, MAX_CANDIDATES).await
    })
    .await
}

/// Returns the digest of the version that runs on this node if it matches the
/// requested name. A version from the folder has no database row.
fn running(app: &App, area: &str, named: &str) -> Option<String> {
    let snapshot = app.registry.snapshot();
    let live = snapshot.running(area)?;
    let prefix = named.to_ascii_lowercase();
    let is_prefix = named.len() >= MIN_PREFIX && live.digest.starts_with(&prefix);
    (is_prefix || live.manifest.version.to_string() == named).then(|| live.digest.clone())
}

/// Returns the digest of the area's only version that is staged or waits for
/// approval.
///
/// # Errors
/// There is no such version, or there are several.
pub(super) async fn only_waiting(app: &App, area: &str) -> Result<String, AreaActionError> {
    let waiting = rows::read(app, async |connection| deployments::current(connection).await);
    let mut waiting = waiting.await?;
    waiting.retain(|version| {
        version.area == area
            && matches!(version.stage, VersionStage::Staged | VersionStage::AwaitingApproval)
    });
    match waiting.as_slice() {
        [one] => Ok(one.digest.clone()),
        [] => Err(AreaActionError::NoneWaits(area.to_owned())),
        several => Err(ambiguous(area, "the version that waits", several)),
    }
}

/// Returns the digest of the version that an operator named for a rollback. Its
/// checks and approvals are not repeated, so it must have been live.
///
/// # Errors
/// No version matches, several do, or the version is live or never was.
pub(super) async fn rollback_target(
    app: &App,
    state: &DesiredAndRunningArea,
    named: &str,
) -> Result<String, AreaActionError> {
    let area = &state.area;
    let digest = digest_of(app, area, named).await?;
    let is_overridden = state.desired.overridden(&state.running).is_some();
    if state.desired.live() == Some(&digest) && !is_overridden {
        return Err(AreaActionError::AlreadyLive { area: area.clone(), digest });
    }
    let was_live = rows::version(app, area, &digest).await?.live_at.is_some();
    // A version that an earlier release stored from the folder has no time.
    if was_live || state.desired.previous() == Some(&digest) {
        Ok(digest)
    } else {
        Err(AreaActionError::NeverLive { area: area.clone(), digest })
    }
}

fn ambiguous(area: &str, named: &str, found: &[StoredVersion]) -> AreaActionError {
    let line = |version: &StoredVersion| {
        let StoredVersion { version: number, digest, stage, received_at, received_by, .. } =
            version;
        let (digest, at) = (digest.get(..SHOWN).unwrap_or(digest), received_at.to_rfc3339());
        format!("- {digest} {number}, {stage}, received {at} from {received_by}")
    };
    let candidates = found.iter().map(line).collect::<Vec<_>>().join("\n");
    AreaActionError::Ambiguous { area: area.to_owned(), named: named.to_owned(), candidates }
}
