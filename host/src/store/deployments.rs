//! The versions of areas that passed the checks, and which of them are live.

use super::Backend;
use super::connection::{Connection, on};
use super::error::Error;
use super::trials;
use crate::domain::deployment::{Deployment, Pointer, Stage};
use crate::domain::time::Timestamp;

/// The channel on which PostgreSQL tells every node that a pointer moved.
pub(super) const CHANNEL: &str = "assurance_live_areas";

type Row = (
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

/// Keeps a version; one that is known already keeps its stage, and learns who
/// signed it.
pub async fn insert(
    connection: &mut Connection,
    version: &Deployment,
    manifest: &str,
) -> Result<(), Error> {
    on!(connection, c => sqlx::query(
        "INSERT INTO area_versions (area, digest, version, manifest, size, object, publisher, \
         signature, stage, received_at, received_by) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) \
         ON CONFLICT (area, digest) DO UPDATE SET publisher = excluded.publisher, \
         signature = excluded.signature",
    )
    .bind(&version.area)
    .bind(&version.digest)
    .bind(&version.version)
    .bind(manifest)
    .bind(version.size.cast_signed())
    .bind(&version.object)
    .bind(&version.publisher)
    .bind(&version.signature)
    .bind(version.stage.as_str())
    .bind(version.received_at.0)
    .bind(&version.received_by)
    .execute(&mut *c)
    .await?.rows_affected());
    Ok(())
}

/// One version.
pub async fn find(
    connection: &mut Connection,
    area: &str,
    digest: &str,
) -> Result<Option<Deployment>, Error> {
    let row: Option<Row> = on!(connection, c => {
        sqlx::query_as(versions!("WHERE area = $1 AND digest = $2"))
            .bind(area)
            .bind(digest)
            .fetch_optional(&mut *c)
            .await?
    });
    row.map(deployment).transpose()
}

/// What a version said it is, as JSON.
pub async fn manifest(
    connection: &mut Connection,
    area: &str,
    digest: &str,
) -> Result<Option<String>, Error> {
    Ok(on!(connection, c => {
        sqlx::query_scalar("SELECT manifest FROM area_versions WHERE area = $1 AND digest = $2")
            .bind(area)
            .bind(digest)
            .fetch_optional(&mut *c)
            .await?
    }))
}

/// An area's versions received before a number, newest first.
pub async fn history(
    connection: &mut Connection,
    area: &str,
    before: i64,
    limit: u32,
) -> Result<Vec<Deployment>, Error> {
    let rows: Vec<Row> = on!(connection, c => {
        sqlx::query_as(versions!("WHERE area = $1 AND number < $2 ORDER BY number DESC LIMIT $3"))
            .bind(area)
            .bind(before)
            .bind(i64::from(limit))
            .fetch_all(&mut *c)
            .await?
    });
    rows.into_iter().map(deployment).collect()
}

/// Every version that answers or could at once, oldest first.
pub async fn current(connection: &mut Connection) -> Result<Vec<Deployment>, Error> {
    let rows: Vec<Row> = on!(connection, c => {
        sqlx::query_as(versions!(
            "WHERE stage NOT IN ('retired', 'withdrawn') OR EXISTS (SELECT 1 FROM live_areas l \
             WHERE l.area = area_versions.area AND l.previous = area_versions.digest) \
             ORDER BY number"
        ))
        .fetch_all(&mut *c)
        .await?
    });
    rows.into_iter().map(deployment).collect()
}

/// Where every area's pointer is.
pub async fn pointers(connection: &mut Connection) -> Result<Vec<Pointer>, Error> {
    let rows: Vec<PointerRow> = on!(connection, c => {
        sqlx::query_as(pointers!("ORDER BY area")).fetch_all(&mut *c).await?
    });
    Ok(rows.into_iter().map(pointer).collect())
}

/// Where one area's pointer is.
pub async fn pointer_of(connection: &mut Connection, area: &str) -> Result<Option<Pointer>, Error> {
    let row: Option<PointerRow> = on!(connection, c => {
        sqlx::query_as(pointers!("WHERE area = $1")).bind(area).fetch_optional(&mut *c).await?
    });
    Ok(row.map(pointer))
}

/// Moves an area's pointer, to nothing where the area is taken out, and tells
/// every node. What it pointed to gets the stage `left`. A rollback goes to
/// what was retired last, after a removal to what was removed; a trial of the
/// area ends. [`Error::RunAgain`]
/// where the pointer is not at `revision` any more; 0 stands for an area that
/// has none.
pub async fn point(
    connection: &mut Connection,
    now: &Moved<'_>,
    revision: i64,
    left: Stage,
) -> Result<(), Error> {
    trials::overtake(connection, now.area, now.digest, now.at).await?;
    set_stage(connection, now.area, Stage::Live, left).await?;
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
    let moved = on!(connection, c => {
        sqlx::query(sql)
            .bind(now.area)
            .bind(now.digest)
            .bind(previous)
            .bind(now.at.0)
            .bind(now.by)
            .bind(revision)
            .execute(&mut *c)
            .await?
            .rows_affected()
    });
    if moved == 0 {
        return Err(Error::RunAgain);
    }
    tell(connection, now.area).await
}

/// Grants a version what it asks for. Answers whether it was waiting for that.
pub async fn approve(
    connection: &mut Connection,
    area: &str,
    digest: &str,
    by: &str,
    at: Timestamp,
) -> Result<bool, Error> {
    let approved = on!(connection, c => sqlx::query(
        "UPDATE area_versions SET stage = 'staged', approved_at = $3, approved_by = $4 \
         WHERE area = $1 AND digest = $2 AND stage = 'awaiting_approval'",
    )
    .bind(area)
    .bind(digest)
    .bind(at.0)
    .bind(by)
    .execute(&mut *c)
    .await?.rows_affected());
    Ok(approved > 0)
}

/// Where a pointer goes, when, and who moves it.
#[derive(Clone, Copy, Debug)]
pub struct Moved<'a> {
    /// The area.
    pub area: &'a str,
    /// The version that answers from now on.
    pub digest: Option<&'a str>,
    /// The version that answered until now, where the pointer does not say it:
    /// it came from a folder.
    pub answered: Option<&'a str>,
    /// When.
    pub at: Timestamp,
    /// The operator.
    pub by: &'a str,
}

async fn set_stage(
    connection: &mut Connection,
    area: &str,
    from: Stage,
    to: Stage,
) -> Result<(), Error> {
    on!(connection, c => {
        sqlx::query("UPDATE area_versions SET stage = $3 WHERE area = $1 AND stage = $2")
            .bind(area)
            .bind(from.as_str())
            .bind(to.as_str())
            .execute(&mut *c)
            .await?.rows_affected()
    });
    Ok(())
}

async fn mark_live(
    connection: &mut Connection,
    area: &str,
    digest: &str,
    now: Timestamp,
) -> Result<(), Error> {
    let found = on!(connection, c => sqlx::query(
        "UPDATE area_versions SET stage = 'live', live_at = $3 WHERE area = $1 AND digest = $2",
    )
    .bind(area)
    .bind(digest)
    .bind(now.0)
    .execute(&mut *c)
    .await?.rows_affected());
    if found == 0 { Err(Error::NotFound) } else { Ok(()) }
}

/// What a rollback of a removal brings: what answered last.
async fn last_live(connection: &mut Connection, now: &Moved<'_>) -> Result<Option<String>, Error> {
    if let Some(answered) = now.answered {
        return Ok(Some(answered.to_owned()));
    }
    let at = pointer_of(connection, now.area).await?;
    Ok(at.and_then(|at| at.digest.or(at.previous)))
}

async fn last_retired(connection: &mut Connection, area: &str) -> Result<Option<String>, Error> {
    Ok(on!(connection, c => sqlx::query_scalar(
        "SELECT digest FROM area_versions WHERE area = $1 AND stage = 'retired' \
         ORDER BY live_at DESC, number DESC LIMIT 1",
    )
    .bind(area)
    .fetch_optional(&mut *c)
    .await?))
}

/// Heard by the other nodes when the transaction commits.
pub(super) async fn tell(connection: &mut Connection, area: &str) -> Result<(), Error> {
    if connection.backend() == Backend::Postgres {
        on!(connection, c => {
            sqlx::query("SELECT pg_notify($1, $2)").bind(CHANNEL).bind(area).execute(&mut *c)
                .await?.rows_affected()
        });
    }
    Ok(())
}

fn deployment(row: Row) -> Result<Deployment, Error> {
    let stage = row.8.parse().map_err(|problem: String| {
        Error::Database(sqlx::Error::Decode(format!("area_versions.stage: {problem}").into()))
    })?;
    Ok(Deployment {
        number: row.0,
        area: row.1,
        digest: row.2,
        version: row.3,
        size: row.4.cast_unsigned(),
        object: row.5,
        publisher: row.6,
        signature: row.7,
        stage,
        received_at: Timestamp(row.9),
        received_by: row.10,
        approved_at: row.11.map(Timestamp),
        approved_by: row.12,
        live_at: row.13.map(Timestamp),
    })
}

fn pointer(row: PointerRow) -> Pointer {
    Pointer {
        area: row.0,
        digest: row.1,
        previous: row.2,
        revision: row.3,
        changed_at: Timestamp(row.4),
        changed_by: row.5,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::testing::on_both;
    use crate::store::{Access, Store};

    fn version(digest: &str) -> Deployment {
        Deployment {
            number: 0,
            area: "notes".into(),
            digest: digest.into(),
            version: "1.0.0".into(),
            size: 3,
            object: format!("components/{digest}"),
            publisher: None,
            signature: None,
            stage: Stage::Staged,
            received_at: Timestamp(1),
            received_by: "ada".into(),
            approved_at: None,
            approved_by: None,
            live_at: None,
        }
    }

    async fn go(store: &Store, digest: Option<&str>, left: Stage, at: i64) -> Result<(), Error> {
        let mut tx = store.begin(Access::WriteLocked).await?;
        let revision = pointer_of(&mut tx, "notes").await?.map_or(0, |pointer| pointer.revision);
        let at = Timestamp(at);
        let moved = Moved { area: "notes", digest, answered: None, at, by: "ada" };
        point(&mut tx, &moved, revision, left).await?;
        tx.commit().await
    }

    async fn state(store: &Store) -> (Option<String>, Option<String>) {
        let mut connection = store.reader().await.unwrap();
        let pointer = pointer_of(&mut connection, "notes").await.unwrap().unwrap();
        (pointer.digest, pointer.previous)
    }

    fn at(now: &str, previous: Option<&str>) -> (Option<String>, Option<String>) {
        (Some(now.into()), previous.map(str::to_owned))
    }

    on_both! {
        async fn a_pointer_goes_forward_back_and_to_nothing(store: &Store) {
            let mut connection = store.writer().await.unwrap();
            for digest in ["a", "b", "c"] {
                insert(&mut connection, &version(digest), "{}").await.unwrap();
            }
            drop(connection);
            go(store, Some("a"), Stage::Retired, 1).await.unwrap();
            assert_eq!(state(store).await, at("a", None));
            go(store, Some("b"), Stage::Retired, 2).await.unwrap();
            go(store, Some("c"), Stage::Retired, 3).await.unwrap();
            assert_eq!(state(store).await, at("c", Some("b")));
            go(store, Some("b"), Stage::Withdrawn, 4).await.unwrap();
            assert_eq!(state(store).await, at("b", Some("a")));
            go(store, None, Stage::Withdrawn, 5).await.unwrap();
            assert_eq!(state(store).await, (None, Some("b".into())));
            let mut reader = store.reader().await.unwrap();
            let history = history(&mut reader, "notes", i64::MAX, 10).await.unwrap();
            let stages: Vec<_> = history.iter().map(|v| (v.digest.as_str(), v.stage)).collect();
            let expected =
                [("c", Stage::Withdrawn), ("b", Stage::Withdrawn), ("a", Stage::Retired)];
            assert_eq!(stages, expected);
            assert_eq!(history[1].live_at, Some(Timestamp(4)));
        }

        async fn what_was_removed_comes_back_also_when_it_was_the_only_version(store: &Store) {
            let mut connection = store.writer().await.unwrap();
            for digest in ["a", "b"] {
                insert(&mut connection, &version(digest), "{}").await.unwrap();
            }
            drop(connection);
            go(store, Some("a"), Stage::Retired, 1).await.unwrap();
            for at in [2, 3] {
                go(store, None, Stage::Withdrawn, at).await.unwrap();
                assert_eq!(state(store).await, (None, Some("a".into())), "removed again or not");
            }
            go(store, Some("a"), Stage::Withdrawn, 4).await.unwrap();
            assert_eq!(state(store).await, at("a", None));
            go(store, Some("b"), Stage::Retired, 5).await.unwrap();
            go(store, None, Stage::Withdrawn, 6).await.unwrap();
            go(store, Some("b"), Stage::Withdrawn, 7).await.unwrap();
            assert_eq!(state(store).await, at("b", Some("a")), "the next step back is older");
        }

        async fn an_approval_is_given_once_and_stays_with_the_version(store: &Store) {
            let mut connection = store.writer().await.unwrap();
            let waiting = Deployment { stage: Stage::AwaitingApproval, ..version("a") };
            insert(&mut connection, &waiting, "{}").await.unwrap();
            let at = Timestamp(9);
            assert!(approve(&mut connection, "notes", "a", "bob", at).await.unwrap());
            assert!(!approve(&mut connection, "notes", "a", "eve", at).await.unwrap());
            insert(&mut connection, &waiting, "{}").await.unwrap();
            let kept = find(&mut connection, "notes", "a").await.unwrap().unwrap();
            assert_eq!((kept.stage, kept.approved_by.as_deref()), (Stage::Staged, Some("bob")));
        }

        async fn of_two_who_move_a_pointer_one_wins(store: &Store) {
            let mut connection = store.writer().await.unwrap();
            insert(&mut connection, &version("a"), "{}").await.unwrap();
            drop(connection);
            go(store, Some("a"), Stage::Retired, 1).await.unwrap();
            let digest = Some("a");
            let moved =
                Moved { area: "notes", digest, answered: None, at: Timestamp(2), by: "bob" };
            for stale in [0, 7] {
                let mut tx = store.begin(Access::WriteLocked).await.unwrap();
                let lost = point(&mut tx, &moved, stale, Stage::Retired).await;
                assert!(matches!(lost, Err(Error::RunAgain)), "{lost:?}");
            }
            let unknown = go(store, Some("x"), Stage::Retired, 2).await;
            assert!(matches!(unknown, Err(Error::NotFound)), "{unknown:?}");
            assert_eq!(state(store).await, at("a", None));
        }
    }
}
