//! Verifies second-factor codes: codes of the authenticator (each time step
//! once) and recovery codes (each once). Too many wrong codes lock the recovery
//! codes.

use tokio::task::JoinError;
use tracing::Instrument as _;

use super::attempts::{AttemptRefusal, ClientAddressAndDevice};
use super::{IdentityService, SessionPrincipal, recovery, totp};
use assurance_core::domain::id::UserId;
use assurance_core::domain::sealed::authenticator_place;
use assurance_core::domain::time::Timestamp;
use assurance_store::connection::Connection;
use assurance_store::{self as store, TransactionAccess, mfa};

/// Reason why a code, or the change that requires it, is refused.
#[derive(Debug, thiserror::Error)]
pub enum CodeError {
    /// The code is wrong, has expired, or was already used.
    #[error("the code is wrong, or was used before")]
    Wrong,
    /// Recovery codes are locked after too many wrong codes.
    #[error("recovery codes are locked after too many wrong codes; use the authenticator")]
    RecoveryLocked {
        /// Time at which the lock ends.
        until: Timestamp,
    },
    /// Too many failed attempts on this account.
    #[error("too many failed attempts")]
    TooManyAttempts {
        /// Time from which an attempt is accepted.
        retry_at: Timestamp,
    },
    /// The account has no authenticator, or no enrollment is pending.
    #[error("the account has no authenticator")]
    NotEnrolled,
    /// An authenticator exists; it must be disabled first.
    #[error("the account has an authenticator already; disable it first")]
    AlreadyEnabled,
    /// An error of the store, such as an unavailable database.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// An internal error of the host.
    #[error("host fault: {0}")]
    Host(String),
}

impl From<AttemptRefusal> for CodeError {
    fn from(early: AttemptRefusal) -> Self {
        match early {
            AttemptRefusal::Until(retry_at) => Self::TooManyAttempts { retry_at },
            AttemptRefusal::Store(error) => Self::Store(error),
        }
    }
}

impl From<JoinError> for CodeError {
    fn from(error: JoinError) -> Self {
        Self::Host(error.to_string())
    }
}

impl IdentityService {
    /// Verifies a code of a signed-in person. It counts like a sign-in, so that
    /// a stolen session cannot be used to guess codes. Runs in its own task,
    /// like a sign-in.
    pub(super) async fn take_code_of(
        &self,
        principal: &SessionPrincipal,
        code: &str,
    ) -> Result<(), CodeError> {
        let (service, principal, code) = (self.clone(), principal.clone(), code.to_owned());
        let taking = async move { service.take_counted_code(&principal, &code).await };
        tokio::spawn(taking.in_current_span()).await?
    }

    async fn take_counted_code(
        &self,
        principal: &SessionPrincipal,
        code: &str,
    ) -> Result<(), CodeError> {
        let now = self.0.clock.now();
        let attempt = self
            .begin_attempt(&principal.user.email, ClientAddressAndDevice::default(), now)
            .await?;
        let taken = self.take_code(principal.user.id, code, now).await;
        if !matches!(taken, Err(CodeError::Wrong | CodeError::RecoveryLocked { .. })) {
            self.withdraw_now(&attempt).await?;
        }
        taken
    }

    /// Verifies a person's code and marks it as used, or records that it was
    /// wrong.
    pub(super) async fn take_code(
        &self,
        user: UserId,
        code: &str,
        now: Timestamp,
    ) -> Result<(), CodeError> {
        let mut tx = self.0.store.begin(TransactionAccess::WriteLocked).await?;
        let known = mfa::lock(&mut tx, user).await?.filter(|totp| totp.confirmed_at.is_some());
        let Some(known) = known else { return Err(CodeError::NotEnrolled) };
        let code = &totp::without_spaces(code);
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
            // The person has the authenticator, so the lock against guessing
            // recovery codes ends.
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
