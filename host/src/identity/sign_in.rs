//! Signing in: password, then a code where the account has a second factor.
//!
//! An unknown e-mail, a wrong password and an account without one take the
//! same time and get the same answer; only who knows the password learns that
//! a code is asked for.

use std::net::IpAddr;

use super::attempts::{Attempt, Early, Whence};
use super::password::HashError;
use super::second_factor::CodeError;
use super::sessions::Origin;
use super::{Identity, NewSession};
use crate::domain::people::User;
use crate::domain::time::Timestamp;
use crate::store::{self, Access, mfa, users};

/// Times a sign-in that lost a race in the database is tried again.
const RERUNS: u32 = 3;

/// One attempt.
#[derive(Clone)]
pub struct SignIn {
    /// In any case, with space around.
    pub email: String,
    /// As typed.
    pub password: String,
    /// From the authenticator, or a recovery code.
    pub code: Option<String>,
    /// Where the client is.
    pub ip: Option<IpAddr>,
    /// What the client says it is.
    pub user_agent: Option<String>,
    /// The value of the device cookie that it sent.
    pub device: Option<String>,
}

impl SignIn {
    fn whence(&self) -> Whence<'_> {
        Whence { address: self.ip, device: self.device.as_deref() }
    }
}

impl std::fmt::Debug for SignIn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SignIn").field("ip", &self.ip).finish_non_exhaustive()
    }
}

/// Why nobody is signed in.
#[derive(Debug, thiserror::Error)]
pub enum SignInError {
    /// No such account, or not its password.
    #[error("the e-mail or the password is wrong")]
    WrongCredentials,
    /// The password is right; a code is needed.
    #[error("this account needs a code from its authenticator, or a recovery code")]
    CodeRequired,
    /// The password is right, the code is not.
    #[error("the code is wrong, or was used before")]
    WrongCode,
    /// Too many wrong codes: recovery codes are not taken meanwhile.
    #[error("recovery codes are locked after too many wrong codes; use the authenticator")]
    RecoveryLocked {
        /// From then on they are.
        until: Timestamp,
    },
    /// Too many failures on this account from here, or from this address.
    #[error("too many failed attempts")]
    TooManyAttempts {
        /// From then on one is taken.
        retry_at: Timestamp,
    },
    /// Too many sign-ins at a time.
    #[error("too many sign-ins at the moment")]
    Busy,
    /// The store cannot be asked.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// The host's own mistake.
    #[error("host fault: {0}")]
    Host(String),
}

/// Somebody who knew the password.
pub(super) struct Proof {
    user: User,
    /// The hash that it was held against.
    checked: String,
    /// One by today's parameters, where that one is by older ones.
    pub(super) renewed: Option<String>,
}

impl Identity {
    /// Signs a person in, always with a new session.
    ///
    /// # Errors
    /// Says why not, and no more than the caller may know.
    pub async fn sign_in(&self, given: SignIn) -> Result<NewSession, SignInError> {
        let account = self.account_label(&given.email);
        let address = given.ip.map(|ip| ip.to_string());
        let answer = self.judge(given).await;
        let outcome = match &answer {
            Ok(_) => "signed_in",
            Err(SignInError::WrongCredentials) => "wrong_credentials",
            Err(SignInError::CodeRequired) => "code_required",
            Err(SignInError::WrongCode | SignInError::RecoveryLocked { .. }) => "wrong_code",
            Err(SignInError::TooManyAttempts { .. }) => "too_many_attempts",
            Err(SignInError::Busy | SignInError::Store(_) | SignInError::Host(_)) => "failed",
        };
        metrics::counter!("assurance_sign_ins_total", "outcome" => outcome).increment(1);
        let made = answer.as_ref().ok().map(|made| &made.principal);
        tracing::info!(
            target: "security",
            event = "sign_in",
            outcome,
            account,
            user.id = made.map(|made| made.user.id.to_string()),
            session.id = made.map(|made| made.session.id.to_string()),
            client.address = address,
            "sign-in"
        );
        answer
    }

    async fn judge(&self, given: SignIn) -> Result<NewSession, SignInError> {
        let now = self.0.clock.now();
        let email = super::people::normalise_email(&given.email);
        let attempt = self.begin_attempt(&email, given.whence(), now).await?;
        let mut proof = self.check_password(&email, &given.password).await?;
        self.check_code(&proof.user, given.code.as_deref(), &attempt, now).await?;
        let origin = Origin::new(given.ip, given.user_agent.clone());
        self.sweep_sometimes(now).await;
        for _ in 0..RERUNS {
            match self.welcome(&attempt, given.whence(), &proof, &origin).await {
                Err(store::Error::RunAgain) => {}
                other => return Ok(other?),
            }
            // What was lost may have been to a new password.
            proof = self.check_password(&email, &given.password).await?;
        }
        Ok(self.welcome(&attempt, given.whence(), &proof, &origin).await?)
    }

    /// What a success changes, all of it or nothing: [`store::Error::RunAgain`]
    /// where the password that was checked is not stored any more.
    pub(super) async fn welcome(
        &self,
        attempt: &Attempt,
        whence: Whence<'_>,
        proof: &Proof,
        origin: &Origin,
    ) -> Result<NewSession, store::Error> {
        let Proof { user, checked, renewed } = proof;
        let mut tx = self.0.store.begin(Access::WriteLocked).await?;
        let device = self.succeed(&mut tx, attempt, whence).await?;
        // From here on nobody replaces the password before this session is
        // there to be ended with the others.
        users::hold_password(&mut tx, user.id, checked, renewed.as_ref().unwrap_or(checked))
            .await?;
        let (made, ended) = self.open_session(&mut tx, user.clone(), origin.clone()).await?;
        tx.commit().await?;
        self.forget_sessions(&ended);
        Ok(NewSession { device: Some(device), ..made })
    }

    pub(super) async fn check_password(
        &self,
        email: &str,
        password: &str,
    ) -> Result<Proof, SignInError> {
        let mut reader = self.0.store.reader().await?;
        let found = users::by_email(&mut reader, email).await?;
        reader.release();
        let (user, stored) = found.map_or((None, None), |(user, hash)| (Some(user), hash));
        let verdict = self.0.passwords.verify(password, stored.clone()).await?;
        let (Some(user), Some(checked), true) = (user, stored, verdict.right) else {
            return Err(SignInError::WrongCredentials);
        };
        let renewed =
            if verdict.outdated { Some(self.0.passwords.hash(password).await?) } else { None };
        Ok(Proof { user, checked, renewed })
    }

    async fn check_code(
        &self,
        user: &User,
        code: Option<&str>,
        attempt: &Attempt,
        now: Timestamp,
    ) -> Result<(), SignInError> {
        if let Some(code) = code.map(str::trim).filter(|code| !code.is_empty()) {
            return match self.take_code(user.id, code, now).await {
                // A code nobody asked for is no reason to refuse.
                Ok(()) | Err(CodeError::NotEnrolled) => Ok(()),
                Err(error) => Err(error.into()),
            };
        }
        let mut reader = self.0.store.reader().await?;
        let enabled = mfa::status(&mut reader, user.id).await?.enabled;
        reader.release();
        if !enabled {
            return Ok(());
        }
        let mut tx = self.0.store.begin(Access::WriteLocked).await?;
        self.withdraw(&mut tx, attempt).await?;
        tx.commit().await?;
        Err(SignInError::CodeRequired)
    }
}

impl From<Early> for SignInError {
    fn from(early: Early) -> Self {
        match early {
            Early::Until(retry_at) => Self::TooManyAttempts { retry_at },
            Early::Store(error) => Self::Store(error),
        }
    }
}

impl From<HashError> for SignInError {
    fn from(error: HashError) -> Self {
        match error {
            HashError::Busy => Self::Busy,
            HashError::Failed(what) => Self::Host(what),
        }
    }
}

impl From<CodeError> for SignInError {
    fn from(error: CodeError) -> Self {
        match error {
            CodeError::Wrong | CodeError::NotEnrolled | CodeError::AlreadyEnabled => {
                Self::WrongCode
            }
            CodeError::RecoveryLocked { until } => Self::RecoveryLocked { until },
            CodeError::TooManyAttempts { retry_at } => Self::TooManyAttempts { retry_at },
            CodeError::Store(error) => Self::Store(error),
            CodeError::Host(what) => Self::Host(what),
        }
    }
}
