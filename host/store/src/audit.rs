//! The audit log of operators' decisions. Entries can only be added and read; a
//! database trigger refuses changes and deletions.

use super::connection::{Connection, execute, fetch_all};
use super::error::{Error, parsed, unreadable};
use assurance_core::domain::deployment::{AuditEntry, NewAuditEntry};
use assurance_core::domain::time::Timestamp;

type Row =
    (i64, i64, String, Option<String>, Option<String>, String, Option<String>, Option<String>);

/// Adds an entry to the audit log.
pub async fn append(connection: &mut Connection, line: &NewAuditEntry) -> Result<(), Error> {
    let changed = line.changed.as_ref().map(ToString::to_string);
    execute!(
        connection,
        "INSERT INTO audit_log (at, who, area, digest, step, why, changed) \
         VALUES ($1, $2, $3, $4, $5, $6, $7)",
        line.at.0,
        &line.who,
        &line.area,
        &line.digest,
        line.step.as_str(),
        &line.why,
        changed
    );
    Ok(())
}

/// Lists entries with ids below `before`, newest first; only those of `area` if
/// it is set.
pub async fn list(
    connection: &mut Connection,
    area: Option<&str>,
    before: i64,
    limit: u32,
) -> Result<Vec<AuditEntry>, Error> {
    let sql = "SELECT id, at, who, area, digest, step, why, changed FROM audit_log \
               WHERE id < $1 AND ($2 IS NULL OR area = $2) ORDER BY id DESC LIMIT $3";
    let rows: Vec<Row> = fetch_all!(connection, sql, before, area, i64::from(limit));
    rows.into_iter().map(line).collect()
}

fn line(row: Row) -> Result<AuditEntry, Error> {
    let step = parsed("audit_log.step", &row.5)?;
    let changed = row.7.map(|text| serde_json::from_str(&text)).transpose();
    let changed = changed.map_err(|problem| unreadable("audit_log.changed", problem))?;
    let (at, who, area, digest, why) = (Timestamp(row.1), row.2, row.3, row.4, row.6);
    Ok(AuditEntry { id: row.0, said: NewAuditEntry { at, who, area, digest, step, why, changed } })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::connection::on;
    use crate::testing::on_both;
    use assurance_core::domain::deployment::AuditAction;

    fn said(area: &str, step: AuditAction) -> NewAuditEntry {
        NewAuditEntry {
            at: Timestamp(7),
            who: "ada".into(),
            area: Some(area.into()),
            digest: None,
            step,
            why: Some("because".into()),
            changed: Some(json!({"live": "d"})),
        }
    }

    on_both! {
        async fn lines_are_read_newest_first_and_by_area(store: &Store) {
            let mut connection = store.writer().await.unwrap();
            for area in ["notes", "support", "notes"] {
                append(&mut connection, &said(area, AuditAction::Staged)).await.unwrap();
            }
            let all = list(&mut connection, None, i64::MAX, 2).await.unwrap();
            assert_eq!(all.len(), 2);
            let rest = list(&mut connection, None, all[1].id, 2).await.unwrap();
            assert_eq!((rest.len(), &rest[0].said), (1, &said("notes", AuditAction::Staged)));
            let notes = list(&mut connection, Some("notes"), i64::MAX, 9).await.unwrap();
            assert_eq!(notes.len(), 2);
        }

        async fn no_line_is_ever_changed_or_deleted(store: &Store) {
            let mut connection = store.writer().await.unwrap();
            append(&mut connection, &said("notes", AuditAction::Activated)).await.unwrap();
            for forbidden in ["UPDATE audit_log SET who = 'x'", "DELETE FROM audit_log"] {
                let refused = async {
                    on!(connection, c => sqlx::query(forbidden).execute(&mut *c).await.map(drop))
                };
                let refused = refused.await.expect_err("the trigger refuses").to_string();
                assert!(refused.contains("only ever added to"), "{refused}");
            }
            assert_eq!(list(&mut connection, None, i64::MAX, 9).await.unwrap().len(), 1);
        }
    }
}
