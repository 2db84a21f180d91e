//! Stored versions of areas, and which of them are live.

#[cfg(test)]
mod tests;

use super::Backend;
use super::connection::{Connection, execute, fetch_all, fetch_optional, optional_scalar};
use super::error::{Error, changed_or, parsed};
use super::trials;
use assurance_core::domain::deployment::{LivePointer, StoredVersion, VersionStage};
use assurance_core::domain::time::Timestamp;

/// PostgreSQL channel that notifies all nodes of a changed live version or
/// trial of an area.
pub(super) const CHANNEL: &str = "assurance_live_areas";

type VersionRow = (
    i64,
    String,
    String,
    String,
    i64,
    String,
    Option<String>,
    Option<Vec<u8>>,
    String,
    i64,
    String,
    Option<i64>,
    Option<String>,
    Option<i64>,
);

type PointerRow = (String, Option<String>, Option<String>, i64, i64, String);

macro_rules! versions {
    ($rest:literal) => {
        concat!(
            "SELECT number, area, digest, version, size, object, publisher, signature, stage, \
             received_at, received_by, approved_at, approved_by, live_at FROM area_versions ",
            $rest
        )
    };
}

macro_rules! pointers {
    ($rest:literal) => {
        concat!(
            "SELECT area, digest, previous, revision, changed_at, changed_by FROM live_areas ",
            $rest
        )
    };
}

/// Stores a version of an area with its manifest. If it already exists, its
/// stage is kept and its signature is updated, and the time at which it went
/// live if there is one.
pub async fn insert(
    connection: &mut Connection,
    version: &StoredVersion,
    manifest: &str,
) -> Result<(), Error> {
    execute!(
        connection,
        "INSERT INTO area_versions (area, digest, version, manifest, size, object, publisher, \
         signature, stage, received_at, received_by, live_at) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) \
         ON CONFLICT (area, digest) DO UPDATE SET publisher = excluded.publisher, \
         signature = excluded.signature, \
         live_at = coalesce(excluded.live_at, area_versions.live_at)",
        &version.area,
        &version.digest,
        &version.version,
        manifest,
        version.size.cast_signed(),
        &version.object,
        &version.publisher,
        &version.signature,
        version.stage.as_str(),
        version.received_at.0,
        &version.received_by,
        version.live_at.map(|at| at.0)
    );
    Ok(())
}

/// Returns an area's version with this digest; `None` if there is none.
pub async fn find(
    connection: &mut Connection,
    area: &str,
    digest: &str,
) -> Result<Option<StoredVersion>, Error> {
    let row: Option<VersionRow> =
        fetch_optional!(connection, versions!("WHERE area = $1 AND digest = $2"), area, digest);
    row.map(deployment).transpose()
}

/// Lists an area's versions with this version number, or whose digest begins
/// with these characters in either case, newest first.
pub async fn matching(
    connection: &mut Connection,
    area: &str,
    named: &str,
    limit: u32,
) -> Result<Vec<StoredVersion>, Error> {
    let sql = versions!(
        "WHERE area = $1 AND (version = $2 OR substr(digest, 1, length($2)) = lower($2)) \
         ORDER BY number DESC LIMIT $3"
    );
    let rows: Vec<VersionRow> = fetch_all!(connection, sql, area, named, i64::from(limit));
    rows.into_iter().map(deployment).collect()
}

/// Returns the manifest of an area's version as JSON; `None` if there is no
/// such version.
pub async fn manifest(
    connection: &mut Connection,
    area: &str,
    digest: &str,
) -> Result<Option<String>, Error> {
    let sql = "SELECT manifest FROM area_versions WHERE area = $1 AND digest = $2";
    Ok(optional_scalar!(connection, sql, area, digest))
}

/// Lists an area's versions with numbers below `before`, newest first.
pub async fn history(
    connection: &mut Connection,
    area: &str,
    before: i64,
    limit: u32,
) -> Result<Vec<StoredVersion>, Error> {
    let sql = versions!("WHERE area = $1 AND number < $2 ORDER BY number DESC LIMIT $3");
    let rows: Vec<VersionRow> = fetch_all!(connection, sql, area, before, i64::from(limit));
    rows.into_iter().map(deployment).collect()
}

/// Lists all versions of all areas that are live or can be activated at once,
/// oldest first.
pub async fn current(connection: &mut Connection) -> Result<Vec<StoredVersion>, Error> {
    let sql = versions!(
        "WHERE stage NOT IN ('retired', 'withdrawn') OR EXISTS (SELECT 1 FROM live_areas l \
         WHERE l.area = area_versions.area AND l.previous = area_versions.digest) \
         ORDER BY number"
    );
    let rows: Vec<VersionRow> = fetch_all!(connection, sql);
    rows.into_iter().map(deployment).collect()
}

/// Returns the live version of each area.
pub async fn pointers(connection: &mut Connection) -> Result<Vec<LivePointer>, Error> {
    let rows: Vec<PointerRow> = fetch_all!(connection, pointers!("ORDER BY area"));
    Ok(rows.into_iter().map(pointer).collect())
}

/// Returns the live version of one area; `None`
/// if the area has none.
pub async fn pointer_of(
    connection: &mut Connection,
    area: &str,
) -> Result<Option<LivePointer>, Error> {
    let row: Option<PointerRow> = fetch_optional!(connection, pointers!("WHERE area = $1"), area);
    Ok(row.map(pointer))
}

/// Makes other transactions that change the rows of areas wait until this one
/// ends. On SQLite, the transaction holds the write lock already.
pub async fn lock(connection: &mut Connection) -> Result<(), Error> {
    if connection.backend() == Backend::Postgres {
        execute!(connection, "LOCK TABLE live_areas, area_trials IN SHARE ROW EXCLUSIVE MODE");
    }
    Ok(())
}

/// Changes an area's live version (to `None` if the area is removed) and
/// notifies every node. The former live version gets the stage `left`; a
/// running trial of the area ends. A later rollback activates the former
/// version.
///
/// Returns [`Error::RunAgain`] if the pointer is not at `revision`; 0 means
/// that the area has no pointer yet.
pub async fn point(
    connection: &mut Connection,
    now: &PointerMove<'_>,
    revision: i64,
    left: VersionStage,
) -> Result<(), Error> {
    trials::end_for_new_pointer(connection, now.area, now.digest, now.at).await?;
    set_stage(connection, now.area, VersionStage::Live, left).await?;
    if let Some(digest) = now.digest {
        mark_live(connection, now.area, digest, now.at).await?;
    }
    let previous = match now.digest {
        Some(_) => last_retired(connection, now.area).await?,
        None => last_live(connection, now).await?,
    };
    let sql = if revision == 0 {
        "INSERT INTO live_areas (area, digest, previous, changed_at, changed_by, revision) \
         VALUES ($1, $2, $3, $4, $5, $6 + 1) ON CONFLICT (area) DO NOTHING"
    } else {
        "UPDATE live_areas SET digest = $2, previous = $3, changed_at = $4, changed_by = $5, \
         revision = revision + 1 WHERE area = $1 AND revision = $6"
    };
    let moved =
        execute!(connection, sql, now.area, now.digest, previous, now.at.0, now.by, revision);
    if moved == 0 {
        return Err(Error::RunAgain);
    }
    notify(connection, now.area).await
}

/// Withdraws an area's retired versions that went live after the version with
/// this digest: a rollback to it undoes them, and the next rollback must not
/// activate them.
pub async fn withdraw_later(
    connection: &mut Connection,
    area: &str,
    digest: &str,
) -> Result<(), Error> {
    let sql = "UPDATE area_versions SET stage = 'withdrawn' WHERE area = $1 AND stage = 'retired' \
               AND live_at > (SELECT live_at FROM area_versions WHERE area = $1 AND digest = $2)";
    execute!(connection, sql, area, digest);
    Ok(())
}

/// Approves the capabilities that an area's version requests. Returns whether
/// the version was waiting for approval.
pub async fn approve(
    connection: &mut Connection,
    area: &str,
    digest: &str,
    by: &str,
    at: Timestamp,
) -> Result<bool, Error> {
    let sql = "UPDATE area_versions SET stage = 'staged', approved_at = $3, approved_by = $4 \
               WHERE area = $1 AND digest = $2 AND stage = 'awaiting_approval'";
    let approved = execute!(connection, sql, area, digest, at.0, by);
    Ok(approved > 0)
}

/// A change of an area's live version, to another version or to none.
#[derive(Clone, Copy, Debug)]
pub struct PointerMove<'a> {
    /// Name of the area whose live version changes.
    pub area: &'a str,
    /// Digest of the area's new live version; `None` removes the area.
    pub digest: Option<&'a str>,
    /// Digest of the previous live version if it was loaded from a folder and
    /// so has no pointer; otherwise `None`.
    pub answered: Option<&'a str>,
    /// Time at which the live version changes.
    pub at: Timestamp,
    /// Operator who makes this change.
    pub by: &'a str,
}

async fn set_stage(
    connection: &mut Connection,
    area: &str,
    from: VersionStage,
    to: VersionStage,
) -> Result<(), Error> {
    let sql = "UPDATE area_versions SET stage = $3 WHERE area = $1 AND stage = $2";
    execute!(connection, sql, area, from.as_str(), to.as_str());
    Ok(())
}

async fn mark_live(
    connection: &mut Connection,
    area: &str,
    digest: &str,
    now: Timestamp,
) -> Result<(), Error> {
    let sql = "UPDATE area_versions SET stage = 'live', live_at = $3 \
               WHERE area = $1 AND digest = $2";
    changed_or(execute!(connection, sql, area, digest, now.0), Error::NotFound)
}

/// Returns the digest of the version that a rollback of a removal activates:
/// the last live one.
async fn last_live(
    connection: &mut Connection,
    now: &PointerMove<'_>,
) -> Result<Option<String>, Error> {
    if let Some(answered) = now.answered {
        return Ok(Some(answered.to_owned()));
    }
    let at = pointer_of(connection, now.area).await?;
    Ok(at.and_then(|at| at.digest.or(at.previous)))
}

async fn last_retired(connection: &mut Connection, area: &str) -> Result<Option<String>, Error> {
    let sql = "SELECT digest FROM area_versions WHERE area = $1 AND stage = 'retired' \
               ORDER BY live_at DESC, number DESC LIMIT 1";
    Ok(optional_scalar!(connection, sql, area))
}

/// Notifies the other nodes, when the transaction commits, that the live
/// pointer or trial of an area has changed.
pub(super) async fn notify(connection: &mut Connection, area: &str) -> Result<(), Error> {
    if connection.backend() == Backend::Postgres {
        execute!(connection, "SELECT pg_notify($1, $2)", CHANNEL, area);
    }
    Ok(())
}

fn deployment(row: VersionRow) -> Result<StoredVersion, Error> {
    Ok(StoredVersion {
        number: row.0,
        area: row.1,
        digest: row.2,
        version: row.3,
        size: row.4.cast_unsigned(),
        object: row.5,
        publisher: row.6,
        signature: row.7,
        stage: parsed("area_versions.stage", &row.8)?,
        received_at: Timestamp(row.9),
        received_by: row.10,
        approved_at: row.11.map(Timestamp),
        approved_by: row.12,
        live_at: row.13.map(Timestamp),
    })
}

fn pointer(row: PointerRow) -> LivePointer {
    LivePointer {
        area: row.0,
        digest: row.1,
        previous: row.2,
        revision: row.3,
        changed_at: Timestamp(row.4),
        changed_by: row.5,
    }
}
