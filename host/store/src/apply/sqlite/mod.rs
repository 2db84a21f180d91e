//! Writes the effects of calls to SQLite: scripts of a few statements, each
//! sent to the connection's thread as one message. Most calls need only one,
//! because a message costs more than a statement.

mod script;

use std::collections::BTreeMap;

use super::super::connection::Connection;
use super::super::error::Error;
use super::super::idempotency::StoredReply;
use super::super::jobs::{self, ROWS_PER_INSERT};
use super::super::sql::{Sql, SqlParameter};
use super::{DocumentDelete, DocumentInsert, DocumentUpdate, Effects, ReadBlob, ReadDocument};
use assurance_core::domain::job::{EventDeliveryJobTemplate, RequestedEventsDocumentField};
use assurance_core::domain::sealed::StoredSecret;
use assurance_core::domain::time::Timestamp;
use script::{Expectation, Script};

/// Maximum number of rows in one statement. Each number of rows has its own
/// statement text, and all texts together must fit into the statement cache.
const ROWS: usize = 32;

/// Writes all effects of calls, in a transaction that the caller has begun,
/// after the statement `first`, if it is not empty. Returns the number of
/// requested deliveries that were enqueued. Several calls at once must be
/// [insertions](Effects::insertion_shape). If one of them fails, all do. A
/// document that one of them inserts receives the requested events of all.
pub(crate) async fn apply(
    connection: &mut Connection,
    calls: &[&Effects],
    first: &str,
) -> Result<u64, Error> {
    let mut script = Script::default();
    if !first.is_empty() {
        script.begin(first);
    }
    for effects in calls {
        script.checks(connection, effects).await?;
    }
    script.replies(connection, calls).await?;
    for effects in calls {
        script.changes(connection, effects).await?;
    }
    script.inserts(connection, calls).await?;
    for effects in calls {
        script.secrets_and_blobs(connection, effects).await?;
    }
    script.jobs(connection, calls).await?;
    script.deliveries(connection, calls).await?;
    for effects in calls {
        script.job_ends(connection, effects).await?;
    }
    script.run(connection).await?;
    Ok(script.delivered)
}

impl Script {
    /// Adds the statements that verify what a call has read.
    async fn checks(
        &mut self,
        connection: &mut Connection,
        effects: &Effects,
    ) -> Result<(), Error> {
        for (collection, seen) in by_collection(&effects.seen, |one| &one.collection) {
            for seen in seen.chunks(ROWS) {
                self.check(collection, seen, effects);
                self.run_if_long(connection).await?;
            }
        }
        for seen in effects.seen_blobs.chunks(ROWS) {
            self.check_blobs(seen, effects);
            self.run_if_long(connection).await?;
        }
        Ok(())
    }

    /// Adds the statements that delete and change documents.
    async fn changes(
        &mut self,
        connection: &mut Connection,
        effects: &Effects,
    ) -> Result<(), Error> {
        for (collection, gone) in by_collection(&effects.deletes, |one| &one.collection) {
            for gone in gone.chunks(ROWS) {
                self.delete(collection, gone, effects);
                self.expect(gone.len(), || Error::RunAgain);
                self.run_if_long(connection).await?;
            }
        }
        for (collection, changed) in by_collection(&effects.updates, |one| &one.collection) {
            for changed in changed.chunks(ROWS) {
                self.update(collection, changed, effects);
                self.expect(changed.len(), || Error::RunAgain);
                self.run_if_long(connection).await?;
            }
        }
        Ok(())
    }

    /// Adds the statements that insert documents.
    async fn inserts(
        &mut self,
        connection: &mut Connection,
        calls: &[&Effects],
    ) -> Result<(), Error> {
        let new = each(calls, |effects| &effects.inserts);
        for (collection, new) in by_collection(&new, |(_, one)| &one.collection) {
            for new in new.chunks(ROWS) {
                self.insert(collection, new);
                self.expect(new.len(), || Error::AlreadyExists);
                self.run_if_long(connection).await?;
            }
        }
        Ok(())
    }

    async fn secrets_and_blobs(
        &mut self,
        connection: &mut Connection,
        effects: &Effects,
    ) -> Result<(), Error> {
        for (name, sealed) in &effects.secrets {
            self.secret(name, sealed.as_ref(), effects);
            self.run_if_long(connection).await?;
        }
        for (name, blob) in &effects.blobs {
            self.blob(name, blob.as_ref(), effects);
            self.run_if_long(connection).await?;
        }
        Ok(())
    }

    /// Adds the statements that enqueue jobs.
    async fn jobs(&mut self, connection: &mut Connection, calls: &[&Effects]) -> Result<(), Error> {
        let jobs: Vec<_> = each(calls, |effects| &effects.jobs)
            .into_iter()
            .map(|(effects, job)| (job, effects.now))
            .collect();
        let (merged, others): (Vec<_>, Vec<_>) =
            jobs.into_iter().partition(|(job, _)| job.is_merged());
        for jobs in others.chunks(ROWS_PER_INSERT) {
            jobs::push_insert(self.begin(""), jobs);
            self.run_if_long(connection).await?;
        }
        for jobs in merged.chunks(ROWS) {
            jobs::push_insert_merged(self.begin(""), jobs);
            self.run_if_long(connection).await?;
        }
        Ok(())
    }

    async fn job_ends(
        &mut self,
        connection: &mut Connection,
        effects: &Effects,
    ) -> Result<(), Error> {
        for end in &effects.job_ends {
            jobs::push_end(self.begin(""), end, effects.now);
            self.expect(end.jobs.len(), || Error::LeaseLost);
            self.run_if_long(connection).await?;
        }
        Ok(())
    }

    /// Adds the statement that verifies that documents are as they were read.
    fn check(&mut self, collection: &str, seen: &[&ReadDocument], effects: &Effects) {
        let sql = self.begin(
            "SELECT count(*) FILTER (WHERE u.column2 = d.version), \
             count(*) FILTER (WHERE u.column2 = 0) FROM (VALUES ",
        );
        // 0 means that the document did not exist; versions begin at 1.
        rows(sql, seen, |one| {
            let version = one.version.unwrap_or_default().cast_signed();
            vec![one.id.as_str().into(), version.into()]
        });
        sql.push(") AS u CROSS JOIN ").push_table(collection);
        sql.push(" AS d WHERE d.workspace_id = ").bind(effects.workspace.0);
        sql.push(" AND d.id = u.column1");
        let there = seen.iter().filter(|one| one.version.is_some()).count() as i64;
        self.require(Expectation::Unchanged(there));
    }

    /// Adds the statement that verifies that blobs are as they were read.
    fn check_blobs(&mut self, seen: &[ReadBlob], effects: &Effects) {
        let sql = self.begin(
            "SELECT count(*) FILTER (WHERE u.column3 = b.object), \
             count(*) FILTER (WHERE u.column3 = '') FROM (VALUES ",
        );
        // The empty object means that there was no blob.
        rows(sql, seen, |one| {
            let object = one.object.as_deref().unwrap_or_default();
            vec![one.area.as_str().into(), one.name.as_str().into(), object.into()]
        });
        sql.push(") AS u CROSS JOIN blobs AS b WHERE b.workspace_id = ");
        sql.bind(effects.workspace.0);
        sql.push(" AND b.area = u.column1 AND b.name = u.column2");
        let there = seen.iter().filter(|one| one.object.is_some()).count() as i64;
        self.require(Expectation::Unchanged(there));
    }

    /// Adds the statements that enqueue a delivery of an event for each document
    /// that requests it.
    async fn deliveries(
        &mut self,
        connection: &mut Connection,
        calls: &[&Effects],
    ) -> Result<(), Error> {
        let mut deliveries = each(calls, |effects| &effects.deliveries);
        deliveries.sort_by(|(_, one), (_, next)| one.requests.cmp(&next.requests));
        for alike in deliveries.chunk_by(|(_, one), (_, next)| one.requests == next.requests) {
            for alike in alike.chunks(ROWS) {
                self.deliver(&alike[0].1.requests, alike);
                self.run_if_long(connection).await?;
            }
        }
        Ok(())
    }

    /// Adds the statement that enqueues deliveries of events to the documents of
    /// one collection. Most documents do not contain an event's name; a
    /// backslash may stand for a part of it.
    fn deliver(
        &mut self,
        requests: &RequestedEventsDocumentField,
        deliveries: &[(&Effects, &EventDeliveryJobTemplate)],
    ) {
        let sql = self.begin(
            "INSERT INTO jobs (workspace_id, id, payload, resource_id, area, kind, lane, \
             max_attempts, timeout_ms, available_at, created_at, updated_at, status, attempts) \
             SELECT d.workspace_id, CAST(substr(e.column2, 1, 13) || unhex(printf('%06x', \
             row_number() OVER (PARTITION BY e.column2 ORDER BY d.id) - 1)) AS BLOB), \
             e.column3 || ',\"requested_by\":' || json_quote(d.id) || '}', \
             CASE WHEN length(d.id) = 36 AND length(unhex(d.id, '-')) = 16 \
             THEN unhex(d.id, '-') END, e.column4, e.column5, e.column6, e.column7, e.column8, \
             e.column9, e.column10, e.column10, 'queued', 0 FROM (VALUES ",
        );
        rows(sql, deliveries, |(effects, EventDeliveryJobTemplate { job, event, .. })| {
            vec![
                effects.workspace.0.into(),
                job.id.0.into(),
                job.payload.strip_suffix('}').unwrap_or(&job.payload).into(),
                job.area.as_str().into(),
                job.kind.as_str().into(),
                job.lane.as_str().into(),
                i64::from(job.max_attempts).into(),
                i64::from(job.timeout_ms).into(),
                job.available_at.0.into(),
                effects.now.0.into(),
                event.as_str().into(),
            ]
        });
        sql.push(") AS e CROSS JOIN ").push_table(&requests.collection);
        sql.push(
            " AS d WHERE d.workspace_id = e.column1 AND (instr(d.body, e.column11) > 0 \
             OR instr(d.body, '\\') > 0) AND EXISTS (SELECT 1 FROM json_each(d.body, '$.' || ",
        );
        sql.bind(requests.member.as_str()).push(") WHERE value = e.column11)");
        self.require(Expectation::Delivered);
    }

    fn delete(&mut self, collection: &str, gone: &[&DocumentDelete], effects: &Effects) {
        let sql = self.begin("DELETE FROM ");
        sql.push_table(collection).push(" WHERE workspace_id = ");
        sql.bind(effects.workspace.0);
        sql.push(" AND (id, version) IN (VALUES ");
        rows(sql, gone, |one| vec![one.id.as_str().into(), one.from.cast_signed().into()]);
        sql.push(")");
    }

    fn update(&mut self, collection: &str, changed: &[&DocumentUpdate], effects: &Effects) {
        let sql = self.begin("UPDATE ");
        sql.push_table(collection).push(
            " AS d SET version = u.column3, created_at = u.column4, body = u.column5, updated_at = ",
        );
        sql.bind(effects.now.0).push(" FROM (VALUES ");
        rows(sql, changed, |one| {
            vec![
                one.id.as_str().into(),
                one.from.cast_signed().into(),
                one.to.cast_signed().into(),
                one.created_at.0.into(),
                one.body.as_str().into(),
            ]
        });
        sql.push(") AS u WHERE d.workspace_id = ").bind(effects.workspace.0);
        sql.push(" AND d.id = u.column1 AND d.version = u.column2");
    }

    fn insert(&mut self, collection: &str, new: &[&(&Effects, &DocumentInsert)]) {
        let sql = self.begin("INSERT INTO ");
        sql.push_table(collection)
            .push(" (workspace_id, id, version, created_at, updated_at, body) VALUES ");
        rows(sql, new, |(effects, one)| {
            vec![
                effects.workspace.0.into(),
                one.id.as_str().into(),
                one.version.cast_signed().into(),
                effects.now.0.into(),
                effects.now.0.into(),
                one.body.as_str().into(),
            ]
        });
    }

    fn secret(&mut self, name: &str, secret: Option<&StoredSecret>, effects: &Effects) {
        let Some(secret) = secret else { return self.forget("secrets", name, effects) };
        let sql = self.begin(
            "INSERT INTO secrets \
             (workspace_id, area, name, sealed, origin, component, updated_at) VALUES ",
        );
        rows(sql, &[()], |()| {
            vec![
                effects.workspace.0.into(),
                effects.area.as_str().into(),
                name.into(),
                secret.sealed.clone().into(),
                secret.origin.as_str().into(),
                secret.component.as_str().into(),
                effects.now.0.into(),
            ]
        });
        sql.push(
            " ON CONFLICT (workspace_id, area, name) DO UPDATE SET \
             sealed = excluded.sealed, origin = excluded.origin, \
             component = excluded.component, updated_at = excluded.updated_at",
        );
    }

    fn blob(&mut self, name: &str, blob: Option<&super::StoredBlob>, effects: &Effects) {
        let Some(blob) = blob else { return self.forget("blobs", name, effects) };
        let sql = self.begin(
            "INSERT INTO blobs (workspace_id, area, name, object, size, sha256, created_at) VALUES ",
        );
        rows(sql, &[()], |()| {
            vec![
                effects.workspace.0.into(),
                effects.area.as_str().into(),
                name.into(),
                blob.object.as_str().into(),
                blob.size.cast_signed().into(),
                blob.sha256.as_str().into(),
                effects.now.0.into(),
            ]
        });
        sql.push(
            " ON CONFLICT (workspace_id, area, name) DO UPDATE SET object = excluded.object, \
             size = excluded.size, sha256 = excluded.sha256, created_at = excluded.created_at",
        );
    }

    fn forget(&mut self, table: &str, name: &str, effects: &Effects) {
        let sql = self.begin("DELETE FROM ");
        sql.push(table).push(" WHERE workspace_id = ").bind(effects.workspace.0);
        sql.push(" AND area = ").bind(effects.area.as_str()).push(" AND name = ").bind(name);
    }

    /// Adds the statements that store the responses for idempotency keys. They
    /// replace only expired responses. The calls' earliest time counts, so that
    /// of several calls none replaces a response that was valid for it.
    async fn replies(
        &mut self,
        connection: &mut Connection,
        calls: &[&Effects],
    ) -> Result<(), Error> {
        let replies: Vec<&StoredReply> =
            calls.iter().filter_map(|effects| effects.reply.as_ref()).collect();
        let now = calls.iter().map(|effects| effects.now).min();
        for replies in replies.chunks(ROWS) {
            self.reply(replies, now.unwrap_or(Timestamp(0)));
            self.expect(replies.len(), || Error::KeyTaken);
            self.run_if_long(connection).await?;
        }
        Ok(())
    }

    fn reply(&mut self, replies: &[&StoredReply], now: Timestamp) {
        let sql = self.begin(
            "INSERT INTO idempotency (workspace_id, user_id, operation, key, fingerprint, \
             status, body, version, expires_at) VALUES ",
        );
        rows(sql, replies, |reply| {
            vec![
                reply.workspace.0.into(),
                reply.user.0.into(),
                reply.operation.as_str().into(),
                reply.key.as_str().into(),
                reply.fingerprint.to_vec().into(),
                i64::from(reply.status).into(),
                reply.body.clone().into(),
                reply.version.map(u64::cast_signed).into(),
                reply.expires_at.0.into(),
            ]
        });
        sql.push(
            " ON CONFLICT (workspace_id, user_id, operation, key) DO UPDATE SET \
             fingerprint = excluded.fingerprint, status = excluded.status, \
             body = excluded.body, version = excluded.version, expires_at = excluded.expires_at \
             WHERE idempotency.expires_at <= ",
        );
        sql.bind(now.0);
    }
}

/// Returns documents by the full name of their collection.
fn by_collection<'t, T>(
    all: &'t [T],
    collection: impl Fn(&'t T) -> &'t str,
) -> BTreeMap<&'t str, Vec<&'t T>> {
    let mut found = BTreeMap::<_, Vec<_>>::new();
    for one in all {
        found.entry(collection(one)).or_default().push(one);
    }
    found
}

/// Returns a part of the effects of all calls, each with its call.
fn each<'e, T>(
    calls: &[&'e Effects],
    part: impl Fn(&'e Effects) -> &'e Vec<T>,
) -> Vec<(&'e Effects, &'e T)> {
    calls.iter().flat_map(|&effects| part(effects).iter().map(move |one| (effects, one))).collect()
}

/// Appends one list of placeholders for each row: `(?, …), (?, …)`.
fn rows<T>(sql: &mut Sql, rows: &[T], values: impl Fn(&T) -> Vec<SqlParameter>) {
    for (at, row) in rows.iter().enumerate() {
        sql.push(if at == 0 { "(" } else { ", (" });
        for (at, value) in values(row).into_iter().enumerate() {
            sql.push(if at == 0 { "" } else { ", " }).bind(value);
        }
        sql.push(")");
    }
}
