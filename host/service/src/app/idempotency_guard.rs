//! Executes a request once for each `Idempotency-Key`: claims the key while the request runs,
//! stores the response with the effects, and returns the stored response to retries.

use serde_json::Value as Json;

use super::App;
use super::call::{CallRefusal, CommittedResponse};
use super::claimed_keys::ClaimedKey;
use super::idempotency::{self, IdempotencyFingerprint, ScopedIdempotencyKey};
use assurance_core::domain::id::{UserId, WorkspaceId};
use assurance_core::domain::time::Timestamp;
use assurance_store as store;
use assurance_work::StoredReply;

/// Claimed idempotency key of a running request, with the request's fingerprint.
#[derive(Debug)]
pub(super) struct IdempotencyGuard {
    scope: ScopedIdempotencyKey,
    fingerprint: IdempotencyFingerprint,
    _claim: ClaimedKey<ScopedIdempotencyKey>,
}

impl IdempotencyGuard {
    /// Claims the idempotency key for this request.
    ///
    /// # Errors
    /// Another request with this key is running.
    pub(super) fn claim(
        app: &App,
        scope: ScopedIdempotencyKey,
        fingerprint: IdempotencyFingerprint,
    ) -> Result<Self, CallRefusal> {
        let claim = app.in_flight.claim(&scope).ok_or(CallRefusal::InProgress)?;
        Ok(Self { scope, fingerprint, _claim: claim })
    }

    /// Claims the idempotency key for an operation of the host itself; `None` if the client sent
    /// none. `request` is what the response depends on.
    ///
    /// # Errors
    /// Another request with this key is running.
    pub(super) fn of_host(
        app: &App,
        (workspace, user, operation): (WorkspaceId, UserId, &str),
        key: Option<String>,
        request: &Json,
    ) -> Result<Option<Self>, CallRefusal> {
        let Some(key) = key else { return Ok(None) };
        let scope = ScopedIdempotencyKey { workspace, user, operation: operation.to_owned(), key };
        let request = idempotency::of_json(request).map_err(CallRefusal::host)?;
        Self::claim(app, scope, request).map(Some)
    }

    /// Returns the response to store for the idempotency key, which is committed together with the
    /// request's effects.
    pub(super) fn record(
        &self,
        app: &App,
        answered: &CommittedResponse,
        now: Timestamp,
    ) -> StoredReply {
        StoredReply {
            workspace: self.scope.workspace,
            user: self.scope.user,
            operation: self.scope.operation.clone(),
            key: self.scope.key.clone(),
            fingerprint: self.fingerprint,
            status: answered.status,
            body: answered.body.as_ref().map(|body| self.scope.seal(&app.keys, body)),
            version: answered.version,
            expires_at: now.plus_ms(i64::from(app.config.idempotency.keep_hours) * 3_600_000),
        }
    }

    /// Returns the stored response for the idempotency key; `None` if there is none. The inner
    /// error means that the key was stored for a request with another body or other parameters.
    ///
    /// # Errors
    /// The database is unavailable, or the stored response does not decrypt.
    pub(super) async fn stored(
        &self,
        app: &App,
    ) -> Result<Option<Result<CommittedResponse, CallRefusal>>, CallRefusal> {
        let ScopedIdempotencyKey { workspace, user, operation, key } = &self.scope;
        let now = app.clock.now();
        let found =
            store::idempotency::find(&app.store, *workspace, *user, operation, key, now).await?;
        let Some(mut first) = found else { return Ok(None) };
        if let Some(sealed) = first.body.take() {
            first.body = Some(self.scope.open(&app.keys, &sealed).map_err(CallRefusal::host)?);
        }
        Ok(Some(replay(first, &self.fingerprint)))
    }
}

/// Why an operation of the host itself failed.
#[derive(Debug)]
pub enum HostOperationError<E> {
    /// A rule of the operation forbids it, or the database is unavailable.
    Operation(E),
    /// The idempotency key is refused, or its stored response cannot be read.
    Refused(CallRefusal),
}

impl<E> From<CallRefusal> for HostOperationError<E> {
    fn from(refused: CallRefusal) -> Self {
        Self::Refused(refused)
    }
}

/// Executes an operation of the host itself, or returns the stored response for the idempotency
/// key, from this node or another one.
pub(super) async fn once<E>(
    app: &App,
    guard: Option<&IdempotencyGuard>,
    operation: impl Future<Output = Result<CommittedResponse, E>>,
) -> Result<CommittedResponse, HostOperationError<E>> {
    if let Some(first) = earlier(app, guard).await? {
        return Ok(first);
    }
    match operation.await {
        Ok(response) => Ok(response),
        // Another node may have executed it for the same key.
        Err(error) => earlier(app, guard).await?.ok_or(HostOperationError::Operation(error)),
    }
}

async fn earlier(
    app: &App,
    guard: Option<&IdempotencyGuard>,
) -> Result<Option<CommittedResponse>, CallRefusal> {
    match guard {
        Some(guard) => guard.stored(app).await?.transpose(),
        None => Ok(None),
    }
}

fn replay(
    first: StoredReply,
    fingerprint: &IdempotencyFingerprint,
) -> Result<CommittedResponse, CallRefusal> {
    if first.fingerprint != *fingerprint {
        return Err(CallRefusal::KeyReused);
    }
    Ok(CommittedResponse {
        status: first.status,
        body: first.body,
        version: first.version,
        replayed: true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::stored_reply;

    #[test]
    fn the_same_body_gets_the_first_answer_again() {
        let answered = replay(stored_reply(), &[7; 32]).unwrap();
        assert!(answered.replayed);
        assert_eq!((answered.status, answered.body.as_deref()), (201, Some("{}")));
    }

    #[test]
    fn another_body_under_the_key_is_refused() {
        assert!(matches!(replay(stored_reply(), &[8; 32]), Err(CallRefusal::KeyReused)));
    }
}
