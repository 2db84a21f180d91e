//! Changing the own password, which requires the current one.

use std::net::IpAddr;

use tracing::Instrument as _;

use super::attempts::{ClientAddressAndDevice, CountedSignInAttempt};
use super::sign_in::{PasswordProof, SignInError};
use super::{IdentityService, PeopleError, SessionPrincipal};
use assurance_store::{self as store, TransactionAccess, sessions, users};

/// Request of a signed-in person to change the own password.
#[derive(Clone)]
pub struct PasswordChange {
    /// The current password as typed.
    pub current: String,
    /// The new password as typed.
    pub new: String,
    /// The client's address; wrong attempts are counted for it.
    pub ip: Option<IpAddr>,
}

/// Reason why the password was not changed.
#[derive(Debug, thiserror::Error)]
pub enum ChangePasswordError {
    /// The current password is wrong, or was not checked.
    #[error(transparent)]
    Current(#[from] SignInError),
    /// The new password is too short or too long, or could not be hashed.
    #[error(transparent)]
    New(#[from] PeopleError),
}

impl From<store::Error> for ChangePasswordError {
    fn from(error: store::Error) -> Self {
        Self::Current(error.into())
    }
}

impl IdentityService {
    /// Replaces the password of a signed-in person, ends the person's other
    /// sessions, and deletes the count of failed sign-ins. A wrong current
    /// password counts as a failed sign-in, so that a stolen session cannot be
    /// used to guess it. Runs in its own task, like a sign-in.
    ///
    /// # Errors
    /// The password was not changed; [`ChangePasswordError`] has the reason.
    pub async fn change_password(
        &self,
        principal: &SessionPrincipal,
        change: PasswordChange,
    ) -> Result<(), ChangePasswordError> {
        let (service, principal) = (self.clone(), principal.clone());
        let changing = async move { service.change_and_log(&principal, change).await };
        tokio::spawn(changing.in_current_span()).await.map_err(SignInError::from)?
    }

    async fn change_and_log(
        &self,
        principal: &SessionPrincipal,
        change: PasswordChange,
    ) -> Result<(), ChangePasswordError> {
        let address = change.ip.map(|ip| ip.to_string());
        let changed = self.replace_password(principal, change).await;
        let outcome = match &changed {
            Ok(()) => "changed",
            Err(ChangePasswordError::Current(SignInError::WrongCredentials)) => "wrong_password",
            Err(ChangePasswordError::Current(SignInError::TooManyAttempts { .. })) => {
                "too_many_attempts"
            }
            Err(ChangePasswordError::New(PeopleError::InvalidPassword { .. })) => {
                "invalid_password"
            }
            Err(_) => "failed",
        };
        tracing::info!(
            target: "security",
            event = "password_change",
            outcome,
            user.id = %principal.user.id,
            session.id = %principal.session.id,
            client.address = address,
            "password change"
        );
        changed
    }

    async fn replace_password(
        &self,
        principal: &SessionPrincipal,
        change: PasswordChange,
    ) -> Result<(), ChangePasswordError> {
        self.check_new(&change.new)?;
        let source = ClientAddressAndDevice { address: change.ip, device: None };
        let now = self.0.clock.now();
        let attempt = self.begin_attempt(&principal.user.email, source, now).await;
        let attempt = attempt.map_err(SignInError::from)?;
        let replaced = self.replace_counted(principal, &change, &attempt).await;
        if let Err(ChangePasswordError::Current(SignInError::WrongCredentials)) | Ok(()) = replaced
        {
            return replaced;
        }
        self.withdraw_now(&attempt).await?;
        replaced
    }

    async fn replace_counted(
        &self,
        principal: &SessionPrincipal,
        change: &PasswordChange,
        attempt: &CountedSignInAttempt,
    ) -> Result<(), ChangePasswordError> {
        let email = &principal.user.email;
        let proof = self.check_password(email, &change.current).await?;
        let hash = self.hash_new(&change.new).await?;
        match self.store_password(principal, attempt, &proof, &hash).await {
            Err(store::Error::RunAgain) => {}
            other => return Ok(other?),
        }
        // The conflict may have been with another change of the password.
        let proof = self.check_password(email, &change.current).await?;
        Ok(self.store_password(principal, attempt, &proof, &hash).await?)
    }

    /// Commits all effects of a password change. Returns
    /// [`store::Error::RunAgain`] if the verified password hash is not stored
    /// any more.
    async fn store_password(
        &self,
        principal: &SessionPrincipal,
        attempt: &CountedSignInAttempt,
        proof: &PasswordProof,
        hash: &str,
    ) -> Result<(), store::Error> {
        let user = principal.user.id;
        let mut tx = self.0.store.begin(TransactionAccess::WriteLocked).await?;
        self.withdraw(&mut tx, attempt).await?;
        self.forget_failures(&mut tx, &principal.user.email).await?;
        users::hold_password(&mut tx, user, &proof.checked, hash).await?;
        let ended = sessions::delete_others(&mut tx, user, principal.session.id).await?;
        tx.commit().await?;
        self.forget_sessions(&ended);
        Ok(())
    }
}
