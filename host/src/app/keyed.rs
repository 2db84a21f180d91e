//! A call under an `Idempotency-Key`: claimed while it runs, kept with its
//! effect, answered again from what was kept.

use super::App;
use super::call::{Answered, Refused};
use super::idempotency::{Claim, Fingerprint, Scope};
use crate::domain::time::Timestamp;
use crate::store;
use crate::work::{CallError, IdempotentReply};

/// What the host keeps about an idempotent call.
#[derive(Debug)]
pub(super) struct Keyed {
    scope: Scope,
    fingerprint: Fingerprint,
    _claim: Claim,
}

impl Keyed {
    /// The key for this call, unless another call has it.
    pub(super) fn claim(
        app: &App,
        scope: Scope,
        fingerprint: Fingerprint,
    ) -> Result<Self, Refused> {
        let claim = app.in_flight.claim(&scope).ok_or(Refused::InProgress)?;
        Ok(Self { scope, fingerprint, _claim: claim })
    }

    /// What is kept together with the call's effect.
    pub(super) fn record(&self, app: &App, answered: &Answered, now: Timestamp) -> IdempotentReply {
        IdempotentReply {
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

    /// The first answer to the key, where there is one: the same again, or a
    /// refusal where the body is another.
    pub(super) async fn stored(
        &self,
        app: &App,
    ) -> Result<Option<Result<Answered, Refused>>, Refused> {
        let Scope { workspace, user, operation, key } = &self.scope;
        let now = app.clock.now();
        let found =
            store::idempotency::find(&app.store, *workspace, *user, operation, key, now).await?;
        let Some(mut first) = found else { return Ok(None) };
        if let Some(sealed) = first.body.take() {
            let body = self.scope.open(&app.keys, &sealed);
            let body = body.map_err(|error| Refused::Failed(CallError::Host(error.into())))?;
            first.body = Some(body);
        }
        Ok(Some(replay(first, &self.fingerprint)))
    }
}

fn replay(first: IdempotentReply, fingerprint: &Fingerprint) -> Result<Answered, Refused> {
    if first.fingerprint != *fingerprint {
        return Err(Refused::KeyReused);
    }
    Ok(Answered { status: first.status, body: first.body, version: first.version, replayed: true })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::id::{UserId, WorkspaceId};

    fn first() -> IdempotentReply {
        IdempotentReply {
            workspace: WorkspaceId::new(),
            user: UserId::new(),
            operation: "create_note".into(),
            key: "k-12345678".into(),
            fingerprint: [7; 32],
            status: 201,
            body: Some("{}".into()),
            version: Some(1),
            expires_at: Timestamp(0),
        }
    }

    #[test]
    fn the_same_body_gets_the_first_answer_again() {
        let answered = replay(first(), &[7; 32]).unwrap();
        assert!(answered.replayed);
        assert_eq!((answered.status, answered.body.as_deref()), (201, Some("{}")));
    }

    #[test]
    fn another_body_under_the_key_is_refused() {
        assert!(matches!(replay(first(), &[8; 32]), Err(Refused::KeyReused)));
    }
}
