//! Builds PostgreSQL's statement for all effects of a call, with a common table
//! expression (CTE) for each kind of effect. Calls of one workspace that only
//! insert can share a statement: its text does not depend on their number.
//!
//! All CTEs see the state before the statement, and each one changes other
//! rows. Their order matters only for unique indexes. Some CTEs must change a
//! certain number of rows. The SQL function `must_match` checks this number
//! inside the statement, and the whole statement fails if it differs.

mod jobs;

use std::collections::BTreeMap;

use uuid::Uuid;

use super::super::Backend;
use super::super::connection::Connection;
use super::super::error::Error;
use super::super::gates::gate_key;
use super::super::sql::{Sql, SqlParameter, each_row};
use super::{
    AutocommitOrTransaction, DocumentDelete, DocumentInsert, DocumentUpdate, Effects, ReadDocument,
};
use assurance_core::domain::time::Timestamp;

/// Writes all effects of calls of one workspace, at least one, by one statement.
/// Several calls must be [insertions](Effects::insertion_shape) of one shape; if one
/// of them fails, all do. Returns the number of requested deliveries that were
/// enqueued.
pub(crate) async fn apply(
    connection: &mut Connection,
    calls: &[&Effects],
    within: AutocommitOrTransaction,
) -> Result<u64, Error> {
    let mut enqueued = 0;
    // Reads to the end: the commit may fail after the row.
    each_row(connection, statement(calls, within), |row| {
        enqueued = row.integer(0)?.cast_unsigned();
        Ok(())
    })
    .await?;
    Ok(enqueued)
}

fn statement(calls: &[&Effects], within: AutocommitOrTransaction) -> Sql {
    let sql = Sql::new(Backend::Postgres, "WITH ");
    let mut ctes = CteBuilder { sql, checks: Vec::new(), requested: Vec::new() };
    ctes.transaction(within);
    // Several calls have nothing else than what they insert.
    let effects = calls[0];
    ctes.gate(effects, within);
    for (number, (collection, of)) in by_collection(calls).iter().enumerate() {
        ctes.documents(number, collection, of, effects);
    }
    ctes.jobs(calls);
    ctes.deliveries(calls);
    ctes.secrets(effects);
    ctes.blobs(effects);
    ctes.replies(calls);
    ctes.job_ends(effects);
    ctes.end()
}

/// The effects of calls on the documents of one collection. Insertions come with
/// the times of their calls.
#[derive(Debug, Default)]
struct CollectionEffects<'e> {
    seen: Vec<&'e ReadDocument>,
    deletes: Vec<&'e DocumentDelete>,
    updates: Vec<&'e DocumentUpdate>,
    inserts: Vec<(Timestamp, &'e DocumentInsert)>,
}

/// Returns the effects on documents by the full name of their collection.
fn by_collection<'e>(calls: &[&'e Effects]) -> BTreeMap<&'e str, CollectionEffects<'e>> {
    let mut all: BTreeMap<&str, CollectionEffects<'_>> = BTreeMap::new();
    for effects in calls {
        for one in &effects.seen {
            all.entry(&one.collection).or_default().seen.push(one);
        }
        for one in &effects.deletes {
            all.entry(&one.collection).or_default().deletes.push(one);
        }
        for one in &effects.updates {
            all.entry(&one.collection).or_default().updates.push(one);
        }
        for one in &effects.inserts {
            all.entry(&one.collection).or_default().inserts.push((effects.now, one));
        }
    }
    all
}

struct CteBuilder {
    sql: Sql,
    /// SQL expressions of numbers of rows, the numbers that they must have, and
    /// the SQLSTATE of the error if one has another.
    checks: Vec<(String, usize, &'static str)>,
    /// SQL expressions that count the enqueued deliveries.
    requested: Vec<String>,
}

impl CteBuilder {
    /// Asserts that the statement runs inside a transaction of the store, or
    /// outside any, as `within` requires. A single statement inside a
    /// transaction that was left open would be reported as committed and rolled
    /// back later.
    fn transaction(&mut self, within: AutocommitOrTransaction) {
        let wanted = usize::from(within != AutocommitOrTransaction::Autocommit);
        let marker = "(coalesce(current_setting('assurance.transaction', true), '') = 'open')";
        self.checks.push((format!("{marker}::int::bigint"), wanted, "AS002"));
    }

    /// Writes the first CTE, which tests whether the workspace's gate is open
    /// to this call. All other CTEs select from it, and so run after it. The
    /// test does not wait, because the statement already holds locks on its
    /// tables.
    fn gate(&mut self, effects: &Effects, within: AutocommitOrTransaction) {
        self.sql.push("gate AS MATERIALIZED (SELECT ");
        if within == (AutocommitOrTransaction::Transaction { gated: true }) {
            self.sql.push("1");
        } else {
            self.sql.push("pg_try_advisory_xact_lock_shared(");
            self.sql.bind(gate_key(effects.workspace)).push(") AS open");
            self.check("gate WHERE open", 1, "AS003");
        }
        self.sql.push(")");
    }

    /// Writes the CTEs of one collection, the `number`th of the statement. The
    /// name of the collection is a literal, so that the planner looks at the
    /// partition of this collection only.
    fn documents(
        &mut self,
        number: usize,
        collection: &str,
        of: &CollectionEffects<'_>,
        effects: &Effects,
    ) {
        self.seen(number, collection, &of.seen, effects);
        self.deletes(number, collection, &of.deletes, effects);
        self.updates(number, collection, of, effects);
        self.inserts(number, collection, of, effects);
    }

    /// Writes the CTE of documents that were read: those that are unchanged,
    /// and those that did not exist at the read but do now (`came`).
    fn seen(&mut self, number: usize, collection: &str, seen: &[&ReadDocument], effects: &Effects) {
        if seen.is_empty() {
            return;
        }
        self.sql.push(&format!(", seen_{number} AS (SELECT u.version = 0 AS came FROM gate, "));
        // 0 means that the document did not exist; versions begin at 1.
        let read = seen.iter().map(|one| one.version.unwrap_or_default());
        self.sql.push_unnest([texts(seen.iter().map(|one| &one.id)), versions(read)]);
        // One look-up for each, as in `documents::many`.
        self.sql.push(
            " AS u(id, version) CROSS JOIN LATERAL (SELECT version FROM documents d \
             WHERE d.id = u.id AND ",
        );
        self.place(collection, effects);
        self.sql.push(" LIMIT 1) AS d WHERE u.version IN (0, d.version))");
        let there = seen.iter().filter(|one| one.version.is_some()).count();
        self.check(&format!("seen_{number} WHERE NOT came"), there, "40001");
        self.check(&format!("seen_{number} WHERE came"), 0, "40001");
    }

    fn deletes(
        &mut self,
        number: usize,
        collection: &str,
        gone: &[&DocumentDelete],
        effects: &Effects,
    ) {
        if gone.is_empty() {
            return;
        }
        self.sql
            .push(&format!(", del_{number} AS (DELETE FROM documents d USING gate, "))
            .push_unnest([
                texts(gone.iter().map(|one| &one.id)),
                versions(gone.iter().map(|one| one.from)),
            ])
            .push(" AS u(id, base) WHERE ");
        self.place(collection, effects);
        self.sql.push(" AND d.id = u.id AND d.version = u.base RETURNING 1)");
        self.check(&format!("del_{number}"), gone.len(), "40001");
    }

    fn updates(
        &mut self,
        number: usize,
        collection: &str,
        of: &CollectionEffects<'_>,
        effects: &Effects,
    ) {
        let changed = &of.updates;
        if changed.is_empty() {
            return;
        }
        self.sql.push(&format!(
            ", upd_{number} AS (UPDATE documents d SET version = u.version, \
             created_at = u.created_at, body = u.body::jsonb, updated_at = "
        ));
        self.sql.bind(effects.now.0).push(" FROM gate, ");
        self.sql.push_unnest([
            texts(changed.iter().map(|one| &one.id)),
            versions(changed.iter().map(|one| one.from)),
            versions(changed.iter().map(|one| one.to)),
            integers(changed.iter().map(|one| one.created_at.0)),
            texts(changed.iter().map(|one| &one.body)),
        ]);
        self.sql.push(" AS u(id, base, version, created_at, body) WHERE ");
        self.place(collection, effects);
        self.sql.push(" AND d.id = u.id AND d.version = u.base");
        self.after("del", number, !of.deletes.is_empty());
        self.sql.push(" RETURNING 1)");
        self.check(&format!("upd_{number}"), changed.len(), "40001");
    }

    fn inserts(
        &mut self,
        number: usize,
        collection: &str,
        of: &CollectionEffects<'_>,
        effects: &Effects,
    ) {
        let new = &of.inserts;
        if new.is_empty() {
            return;
        }
        self.sql.push(&format!(
            ", ins_{number} AS (INSERT INTO documents \
             (workspace_id, collection, id, version, created_at, updated_at, body) SELECT "
        ));
        self.sql.bind(effects.workspace.0).push(&format!(
            "::uuid, '{collection}', u.id, u.version, u.now, u.now, u.body::jsonb FROM gate, "
        ));
        self.sql.push_unnest([
            texts(new.iter().map(|(_, one)| &one.id)),
            versions(new.iter().map(|(_, one)| one.version)),
            integers(new.iter().map(|(now, _)| now.0)),
            texts(new.iter().map(|(_, one)| &one.body)),
        ]);
        self.sql.push(" AS u(id, version, now, body) WHERE true");
        self.after("del", number, !of.deletes.is_empty());
        self.after("upd", number, !of.updates.is_empty());
        self.sql.push(")");
    }

    /// Writes the condition that the document `d` is of this workspace and
    /// collection.
    fn place(&mut self, collection: &str, effects: &Effects) {
        self.sql
            .push("d.workspace_id = ")
            .bind(effects.workspace.0)
            .push(&format!(" AND d.collection = '{collection}'"));
    }

    fn secrets(&mut self, effects: &Effects) {
        let kept: Vec<_> = effects
            .secrets
            .iter()
            .filter_map(|(name, secret)| Some((name, secret.as_ref()?)))
            .collect();
        if !kept.is_empty() {
            self.sql.push(
                ", kept AS (INSERT INTO secrets \
                 (workspace_id, area, name, sealed, origin, component, updated_at) SELECT ",
            );
            self.owner(effects);
            self.sql.push(", u.name, u.sealed, u.origin, u.component, ");
            self.sql.bind(effects.now.0).push("::bigint FROM gate, ");
            self.sql.push_unnest([
                texts(kept.iter().map(|(name, _)| *name)),
                SqlParameter::Blobs(kept.iter().map(|(_, secret)| secret.sealed.clone()).collect()),
                texts(kept.iter().map(|(_, secret)| &secret.origin)),
                texts(kept.iter().map(|(_, secret)| &secret.component)),
            ]);
            self.sql.push(
                " AS u(name, sealed, origin, component) \
                 ON CONFLICT (workspace_id, area, name) DO UPDATE SET \
                 sealed = excluded.sealed, origin = excluded.origin, \
                 component = excluded.component, updated_at = excluded.updated_at)",
            );
        }
        let gone = effects.secrets.iter().filter(|(_, secret)| secret.is_none());
        self.forget("secrets", gone.map(|(name, _)| name.clone()).collect(), effects);
    }

    fn blobs(&mut self, effects: &Effects) {
        let kept: Vec<_> =
            effects.blobs.iter().filter_map(|(name, blob)| Some((name, blob.as_ref()?))).collect();
        if !kept.is_empty() {
            self.sql.push(
                ", named AS (INSERT INTO blobs \
                 (workspace_id, area, name, object, size, sha256, created_at) SELECT ",
            );
            self.owner(effects);
            self.sql.push(", u.name, u.object, u.size, u.sha256, ");
            self.sql.bind(effects.now.0).push("::bigint FROM gate, ");
            self.sql.push_unnest([
                texts(kept.iter().map(|(name, _)| *name)),
                texts(kept.iter().map(|(_, blob)| &blob.object)),
                versions(kept.iter().map(|(_, blob)| blob.size)),
                texts(kept.iter().map(|(_, blob)| &blob.sha256)),
            ]);
            self.sql.push(
                " AS u(name, object, size, sha256) \
                 ON CONFLICT (workspace_id, area, name) DO UPDATE SET object = excluded.object, \
                 size = excluded.size, sha256 = excluded.sha256, created_at = excluded.created_at)",
            );
        }
        let gone = effects.blobs.iter().filter(|(_, blob)| blob.is_none());
        self.forget("blobs", gone.map(|(name, _)| name.clone()).collect(), effects);
    }

    /// Writes the CTE that stores the responses for the idempotency keys. It
    /// replaces only expired responses.
    fn replies(&mut self, calls: &[&Effects]) {
        let replies: Vec<_> = each(calls, |effects| &effects.reply).collect();
        let Some((now, _)) = replies.first() else { return };
        let all = || replies.iter().map(|(_, reply)| *reply);
        let sql = &mut self.sql;
        sql.push(
            ", answer AS (INSERT INTO idempotency (workspace_id, user_id, operation, key, \
             fingerprint, status, body, version, expires_at) SELECT u.* FROM gate, ",
        );
        sql.push_unnest([
            uuids(all().map(|reply| reply.workspace.0)),
            uuids(all().map(|reply| reply.user.0)),
            texts(all().map(|reply| &reply.operation)),
            texts(all().map(|reply| &reply.key)),
            SqlParameter::Blobs(all().map(|reply| reply.fingerprint.to_vec()).collect()),
            integers(all().map(|reply| reply.status.into())),
            SqlParameter::MaybeTexts(all().map(|reply| reply.body.clone()).collect()),
            SqlParameter::MaybeIntegers(
                all().map(|reply| reply.version.map(u64::cast_signed)).collect(),
            ),
            integers(all().map(|reply| reply.expires_at.0)),
        ]);
        sql.push(
            " AS u ON CONFLICT (workspace_id, user_id, operation, key) DO UPDATE SET \
             fingerprint = excluded.fingerprint, status = excluded.status, \
             body = excluded.body, version = excluded.version, expires_at = excluded.expires_at \
             WHERE idempotency.expires_at <= ",
        );
        sql.bind(now.0).push(" RETURNING 1)");
        self.check("answer", replies.len(), "AS001");
    }

    fn end(mut self) -> Sql {
        self.requested.push("0::bigint".to_owned());
        self.sql.push(" SELECT ").push(&self.requested.join(" + "));
        for (rows, wanted, code) in self.checks {
            self.sql.push(&format!(", must_match({rows}, ")).bind(wanted as i64);
            self.sql.push(&format!(", '{code}')"));
        }
        self.sql
    }

    fn owner(&mut self, effects: &Effects) {
        self.sql.bind(effects.workspace.0).push("::uuid, ");
        self.sql.bind(effects.area.clone()).push("::text");
    }

    fn forget(&mut self, table: &str, names: Vec<String>, effects: &Effects) {
        if names.is_empty() {
            return;
        }
        self.sql.push(&format!(", no_{table} AS (DELETE FROM {table} t USING gate"));
        self.sql.push(" WHERE t.workspace_id = ").bind(effects.workspace.0);
        self.sql.push(" AND t.area = ").bind(effects.area.clone());
        self.sql.push(" AND t.name = ANY(").bind(names).push("))");
    }

    /// Makes the current CTE run after another one, if that `exists`, by
    /// reading the number of its rows.
    fn after(&mut self, arm: &str, number: usize, exists: bool) {
        if exists {
            self.sql.push(&format!(" AND (SELECT count(*) FROM {arm}_{number}) >= 0"));
        }
    }

    fn check(&mut self, arm: &str, rows: usize, code: &'static str) {
        self.checks.push((format!("(SELECT count(*) FROM {arm})"), rows, code));
    }
}

/// Returns the effects of one kind of all calls, each with the time of its call.
fn each<'e, T: 'e, I: IntoIterator<Item = &'e T>>(
    calls: &[&'e Effects],
    of: impl Fn(&'e Effects) -> I,
) -> impl Iterator<Item = (Timestamp, &'e T)> {
    calls.iter().flat_map(move |effects| {
        let now = effects.now;
        of(effects).into_iter().map(move |effect| (now, effect))
    })
}

fn texts<'a>(values: impl Iterator<Item = &'a String>) -> SqlParameter {
    SqlParameter::Texts(values.cloned().collect())
}

fn uuids(values: impl Iterator<Item = Uuid>) -> SqlParameter {
    SqlParameter::Uuids(values.collect())
}

fn integers(values: impl Iterator<Item = i64>) -> SqlParameter {
    SqlParameter::Integers(values.collect())
}

fn versions(values: impl Iterator<Item = u64>) -> SqlParameter {
    integers(values.map(u64::cast_signed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collections::ensure;
    use crate::testing::{collection, explained, fresh, put_numbered};
    use assurance_core::domain::id::WorkspaceId;

    #[tokio::test]
    async fn only_the_documents_seen_are_verified_even_before_anything_is_known_of_the_others() {
        let Some(fresh) = fresh(Backend::Postgres).await else { return };
        ensure(&fresh.store, &[collection("a.b", false)]).await.unwrap();
        let mut connection = fresh.store.writer().await.unwrap();
        put_numbered(&mut connection, 5_000).await;
        let mut effects = Effects::new(WorkspaceId(Uuid::nil()), "a", Timestamp(1));
        let seen = |n: usize| ReadDocument {
            collection: "a.b".to_owned(),
            id: n.to_string(),
            version: Some(1),
        };
        effects.seen = (1..=64).map(|n| seen(n * 50)).collect();
        let sql = statement(&[&effects], AutocommitOrTransaction::Autocommit);
        let plan = explained(&mut connection, sql).await.join("\n");
        assert!(!plan.contains("5000") && plan.contains("rows=1 loops=64"), "{plan}");
    }
}
