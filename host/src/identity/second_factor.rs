//! Judging one code: from the authenticator (each step once), or a recovery
//! code (each once), with a lock on recovery codes after too many wrong ones.

use super::attempts::{Early, Whence};
use super::{Identity, Principal, recovery, totp};
use crate::domain::id::UserId;
use crate::domain::sealed::authenticator_place;
use crate::domain::time::Timestamp;
use crate::store::connection::Connection;
use crate::store::{self, Access, mfa};

/// Why a code, or what it was to permit, is refused.
#[derive(Debug, thiserror::Error)]
pub enum CodeError {
    /// Not a code of this moment, or used before.
    #[error("the code is wrong, or was used before")]
    Wrong,
    /// Too many wrong codes: recovery codes are not taken meanwhile.
    #[error("recovery codes are locked after too many wrong codes; use the authenticator")]
    RecoveryLocked {
        /// From then on they are.
        until: Timestamp,
    },
    /// Too many failures on this account.
    #[error("too many failed attempts")]
    TooManyAttempts {
        /// From then on one is taken.
        retry_at: Timestamp,
    },
    /// There is no authenticator, or none in enrolment.
    #[error("the account has no authenticator")]
    NotEnrolled,
    /// There is one already; it is to be disabled first.
    #[error("the account has an authenticator already; disable it first")]
    AlreadyEnabled,
    /// The store cannot be asked.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// The host's own mistake.
    #[error("host fault: {0}")]
    Host(String),
}

impl From<Early> for CodeError {
    fn from(early: Early) -> Self {
        match early {
            Early::Until(retry_at) => Self::TooManyAttempts { retry_at },
            Early::Store(error) => Self::Store(error),
        }
    }
}

impl Identity {
    /// Takes a code of someone signed in, counted like a sign-in: a stolen
    /// session must not be a way to guess codes.
    pub(super) async fn take_code_of(
        &self,
        principal: &Principal,
        code: &str,
    ) -> Result<(), CodeError> {
        let now = self.0.clock.now();
        let attempt = self.begin_attempt(&principal.user.email, Whence::default(), now).await?;
        let taken = self.take_code(principal.user.id, code, now).await;
        if matches!(taken, Ok(()) | Err(CodeError::NotEnrolled)) {
            let mut tx = self.0.store.begin(Access::WriteLocked).await?;
            self.withdraw(&mut tx, &attempt).await?;
            tx.commit().await?;
        }
        taken
    }

    /// Takes a code, once; a wrong one is recorded.
    pub(super) async fn take_code(
        &self,
        user: UserId,
        code: &str,
        now: Timestamp,
    ) -> Result<(), CodeError> {
        let mut tx = self.0.store.begin(Access::WriteLocked).await?;
        let known = mfa::lock(&mut tx, user).await?.filter(|totp| totp.confirmed_at.is_some());
        let Some(known) = known else { return Err(CodeError::NotEnrolled) };
        let code = code.trim();
        let right = if totp::looks_like_one(code) {
            self.is_authenticators(&mut tx, user, &known, code, now).await?
        } else if known.recovery_locked_until > now {
            return Err(CodeError::RecoveryLocked { until: known.recovery_locked_until });
        } else {
            let hash = recovery::hash(user, code);
            mfa::take_recovery_code(&mut tx, user, &hash, now).await?
        };
        if right {
            mfa::forget_failures(&mut tx, user).await?;
        } else {
            self.record_wrong_code(&mut tx, user, now).await?;
        }
        tx.commit().await?;
        if right { Ok(()) } else { Err(CodeError::Wrong) }
    }

    async fn is_authenticators(
        &self,
        connection: &mut Connection,
        user: UserId,
        known: &mfa::Totp,
        code: &str,
        now: Timestamp,
    ) -> Result<bool, CodeError> {
        let secret = self.open_secret(user, &known.sealed_secret)?;
        let Some(step) = totp::step_of(&secret, code, now) else { return Ok(false) };
        let taken = mfa::take_step(connection, user, step).await?;
        if taken {
            // Who holds the authenticator is not who guessed.
            mfa::lock_recovery(connection, user, Timestamp(0)).await?;
        }
        Ok(taken)
    }

    async fn record_wrong_code(
        &self,
        connection: &mut Connection,
        user: UserId,
        now: Timestamp,
    ) -> Result<(), CodeError> {
        let settings = &self.0.settings.sign_in;
        let minutes = |count: u32| i64::from(count) * 60_000;
        let since = now.plus_ms(-minutes(settings.recovery_window_minutes));
        let failures = mfa::record_failure(connection, user, now, since).await?;
        if failures >= i64::from(settings.recovery_failures) {
            let until = now.plus_ms(minutes(settings.recovery_lock_minutes));
            mfa::lock_recovery(connection, user, until).await?;
            tracing::warn!(
                target: "security",
                event = "recovery_locked",
                user.id = %user,
                "recovery codes locked after wrong codes"
            );
        }
        Ok(())
    }

    pub(super) fn open_secret(
        &self,
        user: UserId,
        sealed: &[u8],
    ) -> Result<zeroize::Zeroizing<Vec<u8>>, CodeError> {
        let opened = self.0.keys.open(&authenticator_place(user), sealed);
        opened.map_err(|error| CodeError::Host(format!("authenticator secret: {error}")))
    }
}
