//! Writes the effects of a call to SQLite: scripts of a few statements, each
//! sent to the connection's thread as one message. Most calls need only one,
//! because a message costs more than a statement.

use futures::TryStreamExt;
use sqlx::Either;

use super::super::Backend;
use super::super::connection::{Connection, DriverConnection};
use super::super::error::Error;
use super::super::idempotency::StoredReply;
use super::super::jobs::{self, ROWS_PER_INSERT};
use super::super::sql::{Row, Sql, SqlParameter};
use super::{
    CollectionEffects, DocumentDelete, DocumentInsert, DocumentUpdate, Effects, ReadBlob,
    ReadDocument,
};
use assurance_core::domain::job::{EventDeliveryJobTemplate, RequestedEventsDocumentField};
use assurance_core::domain::sealed::StoredSecret;

/// Maximum number of rows in one statement. Each number of rows has its own
/// statement text, and all texts together must fit into the statement cache.
const ROWS: usize = 32;
/// Number of statements after which a script is sent to SQLite, so that its
/// text stays short.
const STATEMENTS: usize = 8;

/// Writes all effects of a call, in a transaction that the caller has begun,
/// after the statement `first`, if it is not empty. Returns the number of
/// requested deliveries that were enqueued.
pub(crate) async fn apply(
    connection: &mut Connection,
    effects: &Effects,
    first: &str,
) -> Result<u64, Error> {
    let mut script = Script::default();
    if !first.is_empty() {
        script.begin(first);
    }
    let collections = effects.by_collection();
    for (collection, of) in &collections {
        for seen in of.seen.chunks(ROWS) {
            script.check(collection, seen, effects);
            script.run_if_long(connection).await?;
        }
    }
    for seen in effects.seen_blobs.chunks(ROWS) {
        script.check_blobs(seen, effects);
        script.run_if_long(connection).await?;
    }
    if let Some(reply) = &effects.reply {
        script.reply(reply, effects);
        script.expect(1, || Error::KeyTaken);
    }
    for (collection, of) in &collections {
        script.documents(connection, collection, of, effects).await?;
    }
    for (name, sealed) in &effects.secrets {
        script.secret(name, sealed.as_ref(), effects);
        script.run_if_long(connection).await?;
    }
    for (name, blob) in &effects.blobs {
        script.blob(name, blob.as_ref(), effects);
        script.run_if_long(connection).await?;
    }
    for jobs in effects.jobs.chunk_by(|one, next| !one.is_merged() && !next.is_merged()) {
        for jobs in jobs.chunks(ROWS_PER_INSERT) {
            match jobs {
                [job] if job.is_merged() => {
                    jobs::push_insert_merged(script.begin(""), job, effects.now);
                }
                jobs => jobs::push_insert(script.begin(""), jobs, effects.now),
            }
            script.run_if_long(connection).await?;
        }
    }
    for delivery in &effects.deliveries {
        script.deliver(delivery, effects);
        script.run_if_long(connection).await?;
    }
    for end in &effects.job_ends {
        jobs::push_end(script.begin(""), end, effects.now);
        script.expect(end.jobs.len(), || Error::LeaseLost);
        script.run_if_long(connection).await?;
    }
    script.run(connection).await?;
    Ok(script.delivered)
}

struct Script {
    sql: Sql,
    /// Required result of each statement of the script.
    expected: Vec<Expectation>,
    /// Number of deliveries that the scripts sent so far have enqueued.
    delivered: u64,
}

/// Required result of a statement that writes effects.
enum Expectation {
    Any,
    /// The statement must change this number of rows; otherwise the effects
    /// fail with the error.
    Changed(u64, fn() -> Error),
    /// The statement must find this number of documents or blobs unchanged, and
    /// none that was missing.
    Unchanged(i64),
    /// The statement enqueues any number of deliveries.
    Delivered,
}

impl Default for Script {
    fn default() -> Self {
        Self { sql: Sql::new(Backend::Sqlite, ""), expected: Vec::new(), delivered: 0 }
    }
}

impl Script {
    async fn run_if_long(&mut self, connection: &mut Connection) -> Result<(), Error> {
        if self.expected.len() < STATEMENTS { Ok(()) } else { self.run(connection).await }
    }

    async fn run(&mut self, connection: &mut Connection) -> Result<(), Error> {
        let sql = std::mem::replace(&mut self.sql, Sql::new(Backend::Sqlite, ""));
        let expected = std::mem::take(&mut self.expected);
        let DriverConnection::Sqlite(c) = connection.raw() else { return Ok(()) };
        if expected.is_empty() {
            return Ok(());
        }
        #[expect(deprecated, reason = "one message to the thread instead of one a statement")]
        let mut results = sql.sqlite()?.fetch_many(c);
        for expected in expected {
            let mut row = None;
            let changed = loop {
                match results.try_next().await? {
                    Some(Either::Right(found)) => row = Some(Row::Sqlite(found)),
                    Some(Either::Left(result)) => break result.rows_affected(),
                    None => return Err(Error::RunAgain),
                }
            };
            self.verify(&expected, changed, row.as_ref())?;
        }
        Ok(())
    }

    fn verify(
        &mut self,
        expected: &Expectation,
        changed: u64,
        row: Option<&Row>,
    ) -> Result<(), Error> {
        match expected {
            Expectation::Any => Ok(()),
            Expectation::Changed(rows, otherwise) if *rows != changed => Err(otherwise()),
            Expectation::Changed(..) => Ok(()),
            Expectation::Delivered => {
                self.delivered += changed;
                Ok(())
            }
            Expectation::Unchanged(there) => match row {
                Some(row) if row.integer(0)? == *there && row.integer(1)? == 0 => Ok(()),
                _ => Err(Error::RunAgain),
            },
        }
    }

    fn begin(&mut self, text: &str) -> &mut Sql {
        if !self.expected.is_empty() {
            self.sql.push("; ");
        }
        self.expected.push(Expectation::Any);
        self.sql.push(text)
    }

    fn expect(&mut self, rows: usize, otherwise: fn() -> Error) {
        self.require(Expectation::Changed(rows as u64, otherwise));
    }

    fn require(&mut self, expectation: Expectation) {
        if let Some(last) = self.expected.last_mut() {
            *last = expectation;
        }
    }

    /// Adds the statements that write the documents of one collection.
    async fn documents(
        &mut self,
        connection: &mut Connection,
        collection: &str,
        of: &CollectionEffects<'_>,
        effects: &Effects,
    ) -> Result<(), Error> {
        for gone in of.deletes.chunks(ROWS) {
            self.delete(collection, gone, effects);
            self.expect(gone.len(), || Error::RunAgain);
            self.run_if_long(connection).await?;
        }
        for changed in of.updates.chunks(ROWS) {
            self.update(collection, changed, effects);
            self.expect(changed.len(), || Error::RunAgain);
            self.run_if_long(connection).await?;
        }
        for new in of.inserts.chunks(ROWS) {
            self.insert(collection, new, effects);
            self.expect(new.len(), || Error::AlreadyExists);
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

    /// Adds the statement that enqueues a delivery of an event for each document
    /// that requests it. Most documents do not contain its name; a backslash
    /// may stand for a part of it.
    fn deliver(&mut self, delivery: &EventDeliveryJobTemplate, effects: &Effects) {
        let (job, RequestedEventsDocumentField { collection, member }) =
            (&delivery.job, &delivery.requests);
        let sql = self.begin(
            "INSERT INTO jobs (workspace_id, id, payload, resource_id, area, kind, lane, \
             max_attempts, timeout_ms, available_at, created_at, updated_at, status, attempts) \
             SELECT d.workspace_id, CAST(substr(",
        );
        sql.bind(job.id.0).push(", 1, 13) || ");
        sql.push("unhex(printf('%06x', row_number() OVER (ORDER BY d.id) - 1)) AS BLOB), ");
        sql.bind(job.payload.strip_suffix('}').unwrap_or(&job.payload));
        sql.push(" || ',\"requested_by\":' || json_quote(d.id) || '}', ");
        sql.push("CASE WHEN length(d.id) = 36 AND length(unhex(d.id, '-')) = 16 THEN unhex(d.id, '-') END, ");
        sql.bind(job.area.as_str()).push(", ").bind(job.kind.as_str()).push(", ");
        sql.bind(job.lane.as_str()).push(", ");
        sql.bind(i64::from(job.max_attempts)).push(", ");
        sql.bind(i64::from(job.timeout_ms)).push(", ");
        sql.bind(job.available_at.0).push(", ");
        sql.bind(effects.now.0).push(", ");
        sql.bind(effects.now.0).push(", 'queued', 0 FROM ");
        sql.push_table(collection).push(" AS d WHERE d.workspace_id = ");
        sql.bind(effects.workspace.0);
        sql.push(" AND (instr(d.body, ").bind(delivery.event.as_str());
        sql.push(") > 0 OR instr(d.body, '\\') > 0)");
        sql.push(" AND EXISTS (SELECT 1 FROM json_each(d.body, '$.' || ").bind(member.as_str());
        sql.push(") WHERE value = ").bind(delivery.event.as_str()).push(")");
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

    fn insert(&mut self, collection: &str, new: &[&DocumentInsert], effects: &Effects) {
        let sql = self.begin("INSERT INTO ");
        sql.push_table(collection)
            .push(" (workspace_id, id, version, created_at, updated_at, body) VALUES ");
        rows(sql, new, |one| {
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

    /// Adds the statement that stores the response for the idempotency key. It
    /// replaces only an expired response.
    fn reply(&mut self, reply: &StoredReply, effects: &Effects) {
        let sql = self.begin(
            "INSERT INTO idempotency (workspace_id, user_id, operation, key, fingerprint, \
             status, body, version, expires_at) VALUES ",
        );
        rows(sql, &[()], |()| {
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
        sql.bind(effects.now.0);
    }
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
