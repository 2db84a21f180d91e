//! The last trial of each area, running or ended.

use super::connection::{Connection, execute, fetch_all, fetch_optional};
use super::deployments::notify;
use super::error::{Error, changed_or, parsed, unreadable};
use assurance_core::domain::deployment::VersionStage;
use assurance_core::domain::time::Timestamp;
use assurance_core::domain::trial::{Trial, TrialShare, TrialState};

type Row =
    (String, String, String, i64, String, String, Option<String>, i64, i64, String, Option<i64>);

macro_rules! trials {
    ($rest:literal) => {
        concat!(
            "SELECT area, digest, mode, share, workspaces, state, why, revision, begun_at, \
             begun_by, ended_at FROM area_trials ",
            $rest
        )
    };
}

/// Returns the last trial of every area, ordered by area.
pub async fn list(connection: &mut Connection) -> Result<Vec<Trial>, Error> {
    let rows: Vec<Row> = fetch_all!(connection, trials!("ORDER BY area"));
    rows.into_iter().map(trial).collect()
}

/// Returns an area's last trial, running or ended; `None` if there was none.
pub async fn of(connection: &mut Connection, area: &str) -> Result<Option<Trial>, Error> {
    let row: Option<Row> = fetch_optional!(connection, trials!("WHERE area = $1"), area);
    row.map(trial).transpose()
}

/// Begins a trial, which replaces the area's last one, sets its version's
/// stage, and notifies every node. Returns [`Error::RunAgain`] if the last
/// trial's revision is not the one before the new one's; 0 means that there was
/// none.
pub async fn begin(
    connection: &mut Connection,
    trial: &Trial,
    stage: VersionStage,
) -> Result<(), Error> {
    let workspaces = serde_json::to_string(&trial.workspaces).map_err(unreadable_workspaces)?;
    let begun = execute!(
        connection,
        "INSERT INTO area_trials (area, digest, mode, share, workspaces, state, why, revision, \
         begun_at, begun_by) VALUES ($1, $2, $3, $4, $5, 'running', $6, $7, $8, $9) \
         ON CONFLICT (area) DO UPDATE SET digest = excluded.digest, mode = excluded.mode, \
         share = excluded.share, workspaces = excluded.workspaces, state = excluded.state, \
         why = excluded.why, revision = excluded.revision, begun_at = excluded.begun_at, \
         begun_by = excluded.begun_by, ended_at = NULL \
         WHERE area_trials.revision = excluded.revision - 1",
        &trial.area,
        &trial.digest,
        trial.mode.as_str(),
        trial.share.hundredths(),
        workspaces,
        &trial.why,
        trial.revision,
        trial.begun_at.0,
        &trial.begun_by
    );
    if begun == 0 {
        return Err(Error::RunAgain);
    }
    set_stage(connection, &trial.area, &trial.digest, stage).await?;
    notify(connection, &trial.area).await
}

/// State, reason and time with which a version's trial ends.
#[derive(Clone, Copy, Debug)]
pub struct TrialEnd<'a> {
    /// State of the trial after its end.
    pub state: TrialState,
    /// Reason for the end of the trial; `None` if none is given.
    pub why: Option<&'a str>,
    /// Time at which the trial ended.
    pub at: Timestamp,
    /// Stage, after the trial, of the version that was on trial.
    pub stage: VersionStage,
}

/// Ends a running trial and notifies every node. Returns false if the trial at
/// this revision is not running any more.
pub async fn end(
    connection: &mut Connection,
    trial: &Trial,
    ending: &TrialEnd<'_>,
) -> Result<bool, Error> {
    let ended = execute!(
        connection,
        "UPDATE area_trials SET state = $3, why = COALESCE($4, why), ended_at = $5, \
         revision = revision + 1 WHERE area = $1 AND revision = $2 AND state = 'running'",
        &trial.area,
        trial.revision,
        ending.state.as_str(),
        ending.why,
        ending.at.0
    );
    if ended == 0 {
        return Ok(false);
    }
    set_stage(connection, &trial.area, &trial.digest, ending.stage).await?;
    notify(connection, &trial.area).await?;
    Ok(true)
}

/// Ends an area's running trial because its live version changes: either the
/// tried version is live now, or the version it was compared with is not.
pub(super) async fn end_for_new_pointer(
    connection: &mut Connection,
    area: &str,
    now_live: Option<&str>,
    at: Timestamp,
) -> Result<(), Error> {
    let Some(trial) = of(connection, area).await? else { return Ok(()) };
    let promoted = now_live == Some(trial.digest.as_str());
    let (state, why) = if promoted {
        (TrialState::Promoted, None)
    } else {
        (TrialState::Stopped, Some("the live version was changed"))
    };
    end(connection, &trial, &TrialEnd { state, why, at, stage: VersionStage::Staged }).await?;
    Ok(())
}

async fn set_stage(
    connection: &mut Connection,
    area: &str,
    digest: &str,
    stage: VersionStage,
) -> Result<(), Error> {
    let sql = "UPDATE area_versions SET stage = $3 WHERE area = $1 AND digest = $2";
    changed_or(execute!(connection, sql, area, digest, stage.as_str()), Error::NotFound)
}

fn trial(row: Row) -> Result<Trial, Error> {
    Ok(Trial {
        area: row.0,
        digest: row.1,
        mode: parsed("area_trials.mode", &row.2)?,
        share: TrialShare::of_hundredths(row.3),
        workspaces: serde_json::from_str(&row.4).map_err(unreadable_workspaces)?,
        state: parsed("area_trials.state", &row.5)?,
        why: row.6,
        revision: row.7,
        begun_at: Timestamp(row.8),
        begun_by: row.9,
        ended_at: row.10.map(Timestamp),
    })
}

fn unreadable_workspaces(problem: serde_json::Error) -> Error {
    unreadable("area_trials.workspaces", problem)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deployments::{self, PointerMove};
    use crate::testing::{deployment, on_both};
    use crate::{Store, TransactionAccess};
    use assurance_core::domain::id::WorkspaceId;
    use assurance_core::domain::trial::TrialMode;

    fn canary(revision: i64) -> Trial {
        Trial {
            area: "notes".into(),
            digest: "b".into(),
            mode: TrialMode::Canary,
            share: TrialShare::of_percent(12.5).unwrap(),
            workspaces: [WorkspaceId(uuid::Uuid::nil())].into(),
            state: TrialState::Running,
            why: None,
            revision,
            begun_at: Timestamp(2),
            begun_by: "ada".into(),
            ended_at: None,
        }
    }

    /// Stores versions a (live) and b (staged) of notes.
    async fn scene(store: &Store) {
        let mut tx = store.begin(TransactionAccess::WriteLocked).await.unwrap();
        for digest in ["a", "b"] {
            deployments::insert(&mut tx, &deployment(digest), "{}").await.unwrap();
        }
        let moved = PointerMove {
            area: "notes",
            digest: Some("a"),
            answered: None,
            at: Timestamp(1),
            by: "ada",
        };
        deployments::point(&mut tx, &moved, 0, VersionStage::Retired).await.unwrap();
        tx.commit().await.unwrap();
    }

    async fn stage_of_b(connection: &mut Connection) -> VersionStage {
        deployments::find(connection, "notes", "b").await.unwrap().unwrap().stage
    }

    on_both! {
        async fn a_trial_is_read_as_it_was_begun_and_ends_once(store: &Store) {
            scene(store).await;
            let mut connection = store.writer().await.unwrap();
            begin(&mut connection, &canary(1), VersionStage::Canary).await.unwrap();
            assert_eq!(list(&mut connection).await.unwrap(), [canary(1)]);
            assert_eq!(stage_of_b(&mut connection).await, VersionStage::Canary);
            let stale = begin(&mut connection, &canary(1), VersionStage::Canary).await;
            assert!(matches!(stale, Err(Error::RunAgain)), "{stale:?}");
            begin(&mut connection, &canary(2), VersionStage::Canary).await.unwrap();

            let (state, stage) = (TrialState::RolledBack, VersionStage::Withdrawn);
            let ending = TrialEnd { state, why: Some("slow"), at: Timestamp(3), stage };
            assert!(!end(&mut connection, &canary(1), &ending).await.unwrap());
            assert!(end(&mut connection, &canary(2), &ending).await.unwrap());
            assert!(!end(&mut connection, &canary(3), &ending).await.unwrap());
            let ended = of(&mut connection, "notes").await.unwrap().unwrap();
            assert_eq!((ended.state, ended.why.as_deref()), (state, Some("slow")));
            assert_eq!(stage_of_b(&mut connection).await, VersionStage::Withdrawn);
        }

        async fn a_pointer_that_moves_ends_the_trial(store: &Store) {
            scene(store).await;
            let expected = [
                (1, Some("a"), TrialState::Stopped, VersionStage::Staged),
                (3, Some("b"), TrialState::Promoted, VersionStage::Live),
            ];
            for (revision, digest, state, stage) in expected {
                let mut tx = store.begin(TransactionAccess::WriteLocked).await.unwrap();
                begin(&mut tx, &canary(revision), VersionStage::Canary).await.unwrap();
                let pointer = deployments::pointer_of(&mut tx, "notes").await.unwrap().unwrap();
                let moved = PointerMove { area: "notes", digest, answered: None, at: Timestamp(4), by: "ada" };
                deployments::point(&mut tx, &moved, pointer.revision, VersionStage::Retired).await.unwrap();
                assert_eq!(of(&mut tx, "notes").await.unwrap().unwrap().state, state);
                assert_eq!(stage_of_b(&mut tx).await, stage);
                tx.commit().await.unwrap();
            }
        }
    }
}
