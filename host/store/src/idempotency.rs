//! Stored responses for idempotency keys.

use super::apply::{AutocommitOrTransaction, Effects, apply};
use super::connection::{Connection, Tx, execute, fetch_optional, scalar};
use super::error::Error;
use super::{Backend, Store};
use assurance_core::domain::id::{UserId, WorkspaceId};
use assurance_core::domain::time::Timestamp;

/// A response that is stored for an idempotency key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredReply {
    /// Workspace of the request; the nil UUID if the request creates a
    /// workspace.
    pub workspace: WorkspaceId,
    /// User who sent the request.
    pub user: UserId,
    /// Operation id of the request's route, or of the host's own operation.
    pub operation: String,
    /// Idempotency key from the request's header. If the request has an access
    /// token, the token's id and a space precede it.
    pub key: String,
    /// SHA-256 of the request's canonical body and its parameters.
    pub fingerprint: [u8; 32],
    /// HTTP status of the response.
    pub status: u16,
    /// Encrypted body of the response, in base64; `None` if the response has
    /// none.
    pub body: Option<String>,
    /// Resource version of the response, sent as `ETag`; `None` if it has none.
    pub version: Option<u64>,
    /// Time from which the idempotency key can be used again.
    pub expires_at: Timestamp,
}

type Row = (Vec<u8>, i64, Option<String>, Option<i64>, i64);

/// Returns the response stored for an idempotency key; `None` if there is none
/// or it has expired.
pub async fn find(
    store: &Store,
    workspace: WorkspaceId,
    user: UserId,
    operation: &str,
    key: &str,
    now: Timestamp,
) -> Result<Option<StoredReply>, Error> {
    let mut connection = store.reader().await?;
    let row: Option<Row> = fetch_optional!(
        connection,
        "SELECT fingerprint, status, body, version, expires_at FROM idempotency \
         WHERE workspace_id = $1 AND user_id = $2 AND operation = $3 AND key = $4 \
         AND expires_at > $5",
        workspace.0,
        user.0,
        operation.to_owned(),
        key.to_owned(),
        now.0
    );
    connection.release();
    Ok(row.map(|(fingerprint, status, body, version, expires_at)| StoredReply {
        workspace,
        user,
        operation: operation.to_owned(),
        key: key.to_owned(),
        // A fingerprint with another length matches no request.
        fingerprint: fingerprint.try_into().unwrap_or_default(),
        status: u16::try_from(status).unwrap_or_default(),
        body,
        version: version.map(i64::cast_unsigned),
        expires_at: Timestamp(expires_at),
    }))
}

/// Stores the response to a request that the host itself handles. Returns
/// [`Error::KeyTaken`] if one is already stored for the idempotency key.
pub async fn keep(tx: &mut Tx, reply: StoredReply, now: Timestamp) -> Result<(), Error> {
    let nothing_else = Effects::new(reply.workspace, "", now);
    // No call of an area uses the keys of the host's operations, so the gate is
    // not needed.
    let within = AutocommitOrTransaction::Transaction { gated: true };
    apply(tx, Effects { reply: Some(reply), ..nothing_else }, within).await?;
    Ok(())
}

/// Returns the number of bytes of a workspace's stored responses.
pub(super) async fn stored_bytes(
    connection: &mut Connection,
    workspace: WorkspaceId,
) -> Result<i64, Error> {
    let sql = "SELECT CAST(coalesce(sum(octet_length(body)), 0) AS bigint) FROM idempotency \
               WHERE workspace_id = $1";
    Ok(scalar!(connection, sql, workspace.0))
}

/// Deletes at most `limit` expired responses that were stored for idempotency
/// keys. Returns their number.
pub async fn sweep(connection: &mut Connection, now: Timestamp, limit: u32) -> Result<u64, Error> {
    let sql = match connection.backend() {
        Backend::Sqlite => {
            "DELETE FROM idempotency WHERE (workspace_id, user_id, operation, key) IN \
             (SELECT workspace_id, user_id, operation, key FROM idempotency \
             WHERE expires_at <= $1 LIMIT $2)"
        }
        // After waiting for another transaction, PostgreSQL tests only the outer conditions on
        // the changed row. The last one keeps a new response for an expired key; no index answers
        // it, so that each batch reads its own rows only.
        Backend::Postgres => {
            "DELETE FROM idempotency WHERE ctid = ANY (ARRAY(SELECT ctid FROM idempotency \
             WHERE expires_at <= $1 LIMIT $2)) AND expires_at + 0 <= $1"
        }
    };
    Ok(execute!(connection, sql, now.0, i64::from(limit)))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::TransactionAccess;
    use crate::testing::on_both;

    const WORKSPACE: WorkspaceId = WorkspaceId(uuid::Uuid::from_u128(7));
    const USER: UserId = UserId(uuid::Uuid::from_u128(8));

    /// Writes a response at a time, in a transaction that is still open.
    async fn begin_to_keep(store: &Store, now: i64, reply: StoredReply) -> Tx {
        let mut tx = store.begin(TransactionAccess::WriteLocked).await.unwrap();
        keep(&mut tx, reply, Timestamp(now)).await.unwrap();
        tx
    }

    on_both! {
        async fn a_response_that_replaces_an_expired_one_during_a_sweep_stays(store: &Store) {
            let expired = StoredReply {
                workspace: WORKSPACE,
                user: USER,
                operation: "make_item".into(),
                key: "key-00001".into(),
                fingerprint: [1; 32],
                status: 201,
                body: None,
                version: None,
                expires_at: Timestamp(5),
            };
            begin_to_keep(store, 1, expired.clone()).await.commit().await.unwrap();
            let renewed = StoredReply { expires_at: Timestamp(99), ..expired };
            let tx = begin_to_keep(store, 6, renewed.clone()).await;
            let sweeping = store.write(async |c| sweep(c, Timestamp(6), 10).await);
            let renewing = async {
                tokio::time::sleep(Duration::from_millis(300)).await;
                tx.commit().await.unwrap();
            };
            let (swept, ()) = tokio::join!(sweeping, renewing);
            assert_eq!(swept.unwrap(), 0);
            let found = find(store, WORKSPACE, USER, "make_item", "key-00001", Timestamp(6)).await;
            assert_eq!(found.unwrap(), Some(renewed));
        }
    }
}
