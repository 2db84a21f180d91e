//! The answers that a retried request gets again.

use super::Store;
use super::apply::{Effects, Within, apply};
use super::connection::Tx;
use super::connection::{Connection, on};
use super::error::Error;
use crate::domain::id::{UserId, WorkspaceId};
use crate::domain::time::Timestamp;

/// One kept answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdempotentReply {
    /// The workspace of the request.
    pub workspace: WorkspaceId,
    /// Who asked.
    pub user: UserId,
    /// The route's operation id.
    pub operation: String,
    /// `Idempotency-Key`.
    pub key: String,
    /// SHA-256 of the canonical body.
    pub fingerprint: [u8; 32],
    /// The answer's status.
    pub status: u16,
    /// The answer's body.
    pub body: Option<String>,
    /// The answer's `ETag`.
    pub version: Option<u64>,
    /// Until when it is kept.
    pub expires_at: Timestamp,
}

type Row = (Vec<u8>, i64, Option<String>, Option<i64>, i64);

/// The answer kept for a key, where there is one at this moment.
pub async fn find(
    store: &Store,
    workspace: WorkspaceId,
    user: UserId,
    operation: &str,
    key: &str,
    now: Timestamp,
) -> Result<Option<IdempotentReply>, Error> {
    let mut connection = store.reader().await?;
    let row: Option<Row> = on!(connection, c => {
        sqlx::query_as(
            "SELECT fingerprint, status, body, version, expires_at FROM idempotency \
             WHERE workspace_id = $1 AND user_id = $2 AND operation = $3 AND key = $4 \
             AND expires_at > $5",
        )
        .bind(workspace.0)
        .bind(user.0)
        .bind(operation.to_owned())
        .bind(key.to_owned())
        .bind(now.0)
        .fetch_optional(&mut *c)
        .await?
    });
    connection.release();
    Ok(row.map(|(fingerprint, status, body, version, expires_at)| IdempotentReply {
        workspace,
        user,
        operation: operation.to_owned(),
        key: key.to_owned(),
        // A fingerprint of another length matches no request.
        fingerprint: fingerprint.try_into().unwrap_or_default(),
        status: u16::try_from(status).unwrap_or_default(),
        body,
        version: version.map(i64::cast_unsigned),
        expires_at: Timestamp(expires_at),
    }))
}

/// Keeps an answer beside what a transaction of the host's own writes;
/// [`Error::KeyTaken`] where its key has one already.
pub async fn keep(tx: &mut Tx, reply: IdempotentReply, now: Timestamp) -> Result<(), Error> {
    let nothing_else = Effects::new(reply.workspace, "", now);
    // There is nobody to wait for: no call of an area has this scope.
    let within = Within::Transaction { gated: true };
    apply(tx, Effects { reply: Some(reply), ..nothing_else }, within).await
}

/// Deletes at most `limit` answers that nobody gets any more; how many.
pub async fn sweep(connection: &mut Connection, now: Timestamp, limit: u32) -> Result<u64, Error> {
    Ok(on!(connection, c => {
        sqlx::query(
            "DELETE FROM idempotency WHERE (workspace_id, user_id, operation, key) IN \
             (SELECT workspace_id, user_id, operation, key FROM idempotency \
              WHERE expires_at <= $1 LIMIT $2)",
        )
        .bind(now.0)
        .bind(i64::from(limit))
        .execute(&mut *c)
        .await?
        .rows_affected()
    }))
}
