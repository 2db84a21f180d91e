//! Signing in: the password, then a code if the account has a second factor.
//!
//! An unknown email address, a wrong password and an account without a password
//! take the same time and get the same response. Only a caller who knows the
//! password can see that a code is required.

use std::net::IpAddr;

use tokio::task::JoinError;
use tracing::Instrument as _;

use super::attempts::{AttemptRefusal, ClientAddressAndDevice, CountedSignInAttempt};
use super::password::HashError;
use super::second_factor::CodeError;
use super::sessions::SessionOrigin;
use super::{IdentityService, NewSession};
use assurance_core::domain::people::User;
use assurance_core::domain::time::Timestamp;
use assurance_store::{self as store, TransactionAccess, mfa, users};

/// Maximum number of retries of a sign-in after write conflicts.
const RERUNS: u32 = 3;

/// A sign-in request.
#[derive(Clone)]
pub struct SignInAttempt {
    /// Email address; normalized by the service.
    pub email: String,
    /// Password as typed.
    pub password: String,
    /// Code of the authenticator, or a recovery code; `None` if the client sent
    /// none.
    pub code: Option<String>,
    /// IP address of the client that signs in.
    pub ip: Option<IpAddr>,
    /// `User-Agent` of the client that signs in.
    pub user_agent: Option<String>,
    /// Value of the device cookie, which marks a device of an earlier sign-in;
    /// `None` if the client sent none.
    pub device: Option<String>,
}

impl SignInAttempt {
    fn source(&self) -> ClientAddressAndDevice<'_> {
        ClientAddressAndDevice { address: self.ip, device: self.device.as_deref() }
    }
}

/// Reason why a sign-in is refused.
#[derive(Debug, thiserror::Error)]
pub enum SignInError {
    /// No account has this address, or the password is wrong.
    #[error("the e-mail or the password is wrong")]
    WrongCredentials,
    /// The password is right; a code is required.
    #[error("this account needs a code from its authenticator, or a recovery code")]
    CodeRequired,
    /// The password is right, but the code is wrong.
    #[error("the code is wrong, or was used before")]
    WrongCode,
    /// Recovery codes are locked after too many wrong codes.
    #[error("recovery codes are locked after too many wrong codes; use the authenticator")]
    RecoveryLocked {
        /// Time at which the lock ends.
        until: Timestamp,
    },
    /// Too many failed sign-ins of this account from this device or network, or
    /// from this address.
    #[error("too many failed attempts")]
    TooManyAttempts {
        /// Time from which an attempt is accepted.
        retry_at: Timestamp,
    },
    /// Too many concurrent sign-ins; the password was not checked.
    #[error("too many sign-ins at the moment")]
    Busy,
    /// An error of the store, such as an unavailable database.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// An internal error of the host.
    #[error("host fault: {0}")]
    Host(String),
}

impl SignInError {
    /// Returns whether a sign-in attempt that ended with this error stays
    /// counted as a failure.
    fn is_failure(&self) -> bool {
        matches!(self, Self::WrongCredentials | Self::WrongCode | Self::RecoveryLocked { .. })
    }
}

/// A person who has entered the right password, with the hash that it was
/// verified with.
pub(super) struct PasswordProof {
    user: User,
    /// Stored hash that the password was verified with.
    pub(super) checked: String,
    /// New hash of the password with the configured parameters; `None` if the
    /// stored hash has them.
    pub(super) renewed: Option<String>,
}

impl IdentityService {
    /// Signs a person in; always creates a new session. Runs in its own task, so
    /// that a disconnect or a timeout of the client does not leave the attempt
    /// counted as failed.
    ///
    /// # Errors
    /// The reason, without revealing to a caller without the right password
    /// whether the account exists.
    pub async fn sign_in(&self, given: SignInAttempt) -> Result<NewSession, SignInError> {
        let service = self.clone();
        let signing_in = async move { service.sign_in_and_log(given).await };
        tokio::spawn(signing_in.in_current_span()).await?
    }

    async fn sign_in_and_log(&self, given: SignInAttempt) -> Result<NewSession, SignInError> {
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

    async fn judge(&self, given: SignInAttempt) -> Result<NewSession, SignInError> {
        let now = self.0.clock.now();
        let email = super::people::normalize_email(&given.email);
        let attempt = self.begin_attempt(&email, given.source(), now).await?;
        let judged = self.judge_counted(&given, &email, &attempt, now).await;
        if judged.as_ref().is_err_and(|error| !error.is_failure()) {
            self.withdraw_now(&attempt).await?;
        }
        judged
    }

    async fn judge_counted(
        &self,
        given: &SignInAttempt,
        email: &str,
        attempt: &CountedSignInAttempt,
        now: Timestamp,
    ) -> Result<NewSession, SignInError> {
        let origin = SessionOrigin::new(given.ip, given.user_agent.clone());
        let mut code_taken = false;
        let mut reruns = 0..RERUNS;
        loop {
            // A conflict may have been with a change of the password or of the second factor.
            let proof = self.check_password(email, &given.password).await?;
            if !code_taken {
                code_taken = self.check_code(&proof.user, given.code.as_deref(), now).await?;
            }
            self.sweep_sometimes(now).await;
            match self.complete_sign_in(attempt, given.source(), &proof, code_taken, &origin).await
            {
                Err(store::Error::RunAgain) if reruns.next().is_some() => {}
                other => return Ok(other?),
            }
        }
    }

    /// Commits all changes of a successful sign-in. Returns
    /// [`store::Error::RunAgain`] if the verified password hash is not stored
    /// any more, or a second factor was confirmed meanwhile and no code was
    /// taken.
    pub(super) async fn complete_sign_in(
        &self,
        attempt: &CountedSignInAttempt,
        source: ClientAddressAndDevice<'_>,
        proof: &PasswordProof,
        code_taken: bool,
        origin: &SessionOrigin,
    ) -> Result<NewSession, store::Error> {
        let PasswordProof { user, checked, renewed } = proof;
        let mut tx = self.0.store.begin(TransactionAccess::WriteLocked).await?;
        let device = self.succeed(&mut tx, attempt, source).await?;
        // Locks the password until this session is stored, so that a password
        // change, and the confirmation of a second factor, also end this session.
        users::hold_password(&mut tx, user.id, checked, renewed.as_ref().unwrap_or(checked))
            .await?;
        if !code_taken && mfa::status(&mut tx, user.id).await?.enabled {
            return Err(store::Error::RunAgain);
        }
        let (made, ended) = self.open_session(&mut tx, user.clone(), origin.clone()).await?;
        tx.commit().await?;
        self.forget_sessions(&ended);
        Ok(NewSession { device: Some(device), ..made })
    }

    pub(super) async fn check_password(
        &self,
        email: &str,
        password: &str,
    ) -> Result<PasswordProof, SignInError> {
        let found = self.0.store.read(async |c| users::by_email(c, email).await).await?;
        let (user, stored) = found.map_or((None, None), |(user, hash)| (Some(user), hash));
        let verdict = self.0.passwords.verify(password, stored.clone()).await?;
        let (Some(user), Some(checked), true) = (user, stored, verdict.right) else {
            return Err(SignInError::WrongCredentials);
        };
        let renewed =
            if verdict.outdated { Some(self.0.passwords.hash(password).await?) } else { None };
        Ok(PasswordProof { user, checked, renewed })
    }

    /// Takes the code of a sign-in. Returns false if the account has no second
    /// factor, and ignores the code then.
    async fn check_code(
        &self,
        user: &User,
        code: Option<&str>,
        now: Timestamp,
    ) -> Result<bool, SignInError> {
        if let Some(code) = code.map(str::trim).filter(|code| !code.is_empty()) {
            return match self.take_code(user.id, code, now).await {
                Ok(()) => Ok(true),
                Err(CodeError::NotEnrolled) => Ok(false),
                Err(error) => Err(error.into()),
            };
        }
        let status = self.0.store.read(async |c| mfa::status(c, user.id).await).await?;
        if status.enabled { Err(SignInError::CodeRequired) } else { Ok(false) }
    }
}

impl From<AttemptRefusal> for SignInError {
    fn from(early: AttemptRefusal) -> Self {
        match early {
            AttemptRefusal::Until(retry_at) => Self::TooManyAttempts { retry_at },
            AttemptRefusal::Store(error) => Self::Store(error),
        }
    }
}

impl From<JoinError> for SignInError {
    fn from(error: JoinError) -> Self {
        Self::Host(error.to_string())
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
