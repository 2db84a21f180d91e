//! Enrolling, confirming and disabling the second factor, and new recovery
//! codes.

use zeroize::Zeroizing;

use super::second_factor::CodeError;
use super::sessions::SessionOrigin;
use super::{IdentityService, NewSession, SessionPrincipal, recovery, totp};
use assurance_core::domain::sealed::authenticator_place;
use assurance_store::{self as store, TransactionAccess, mfa, sessions, users};

/// Secret for a person's authenticator app. It has no effect until it is
/// confirmed with a code.
pub struct TotpEnrollment {
    /// Secret of the authenticator in Base32, for manual input.
    pub secret: Zeroizing<String>,
    /// Secret of the authenticator as an `otpauth://` URL, for a QR code.
    pub otpauth_url: Zeroizing<String>,
}

/// Result of confirming a second factor.
pub struct FactorConfirmationResult {
    /// Recovery codes; they are shown once.
    pub recovery_codes: Vec<String>,
    /// New session, which replaces the one of this request.
    pub session: NewSession,
}

impl std::fmt::Debug for FactorConfirmationResult {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Confirmed").field("session", &self.session).finish_non_exhaustive()
    }
}

impl IdentityService {
    /// Begins the enrollment of an authenticator and replaces an unconfirmed
    /// one.
    ///
    /// # Errors
    /// [`CodeError::AlreadyEnabled`], or the database is unavailable.
    pub async fn enroll_totp(
        &self,
        principal: &SessionPrincipal,
    ) -> Result<TotpEnrollment, CodeError> {
        let user = &principal.user;
        let secret = totp::new_secret();
        let sealed = self.0.keys.seal(&authenticator_place(user.id), &*secret);
        let begun = self.0.store.write(async |c| mfa::begin_enrolment(c, user.id, &sealed).await);
        match begun.await {
            Err(store::Error::AlreadyExists) => return Err(CodeError::AlreadyEnabled),
            other => other?,
        }
        Ok(totp::enrollment(&*secret, &user.email))
    }

    /// Confirms the pending authenticator with one of its codes. All sessions
    /// end; the one of this request is replaced.
    ///
    /// # Errors
    /// [`CodeError::Wrong`], [`CodeError::NotEnrolled`],
    /// [`CodeError::AlreadyEnabled`], or the database is unavailable.
    pub async fn confirm_totp(
        &self,
        principal: &SessionPrincipal,
        code: &str,
    ) -> Result<FactorConfirmationResult, CodeError> {
        let now = self.0.clock.now();
        let user = principal.user.id;
        let mut tx = self.0.store.begin(TransactionAccess::WriteLocked).await?;
        // Waits for a sign-in that read that there is no second factor.
        users::hold(&mut tx, user).await?;
        let Some(pending) = mfa::lock(&mut tx, user).await? else {
            return Err(CodeError::NotEnrolled);
        };
        if pending.confirmed_at.is_some() {
            return Err(CodeError::AlreadyEnabled);
        }
        let secret = self.open_secret(user, &pending.sealed_secret)?;
        let step =
            totp::step_of(&secret, &totp::without_spaces(code), now).ok_or(CodeError::Wrong)?;
        if !mfa::take_step(&mut tx, user, step).await? {
            return Err(CodeError::Wrong);
        }
        mfa::confirm(&mut tx, user, now).await?;
        let recovery_codes = recovery::new_codes();
        mfa::replace_recovery_codes(&mut tx, user, &hashes(principal, &recovery_codes)).await?;
        // All sessions end, because the holder of another session may not have
        // the authenticator.
        let mut ended = sessions::delete_all(&mut tx, user).await?;
        let origin = SessionOrigin {
            ip: principal.session.ip.clone(),
            user_agent: principal.session.user_agent.clone(),
        };
        let (session, beyond) =
            self.open_session(&mut tx, (*principal.user).clone(), origin).await?;
        tx.commit().await?;
        ended.extend(beyond);
        self.forget_sessions(&ended);
        factor_changed(principal, "factor_enabled");
        Ok(FactorConfirmationResult { recovery_codes, session })
    }

    /// Replaces all recovery codes and unlocks them. Requires a code from the
    /// authenticator or an old recovery code.
    ///
    /// # Errors
    /// The code is refused, or the database is unavailable; see [`CodeError`].
    pub async fn renew_recovery_codes(
        &self,
        principal: &SessionPrincipal,
        code: &str,
    ) -> Result<Vec<String>, CodeError> {
        self.take_code_of(principal, code).await?;
        let codes = recovery::new_codes();
        let mut tx = self.0.store.begin(TransactionAccess::WriteLocked).await?;
        let user = principal.user.id;
        if mfa::lock(&mut tx, user).await?.is_none() {
            return Err(CodeError::NotEnrolled);
        }
        mfa::replace_recovery_codes(&mut tx, user, &hashes(principal, &codes)).await?;
        tx.commit().await?;
        factor_changed(principal, "recovery_codes_renewed");
        Ok(codes)
    }

    /// Removes the second factor and ends the person's other sessions. Requires
    /// a code.
    ///
    /// # Errors
    /// The code is refused, or the database is unavailable; see [`CodeError`].
    pub async fn disable_totp(
        &self,
        principal: &SessionPrincipal,
        code: &str,
    ) -> Result<(), CodeError> {
        self.take_code_of(principal, code).await?;
        let mut tx = self.0.store.begin(TransactionAccess::WriteLocked).await?;
        mfa::remove(&mut tx, principal.user.id).await?;
        let ended = sessions::delete_others(&mut tx, principal.user.id, principal.session.id);
        let ended = ended.await?;
        tx.commit().await?;
        self.forget_sessions(&ended);
        factor_changed(principal, "factor_disabled");
        Ok(())
    }

    /// Returns whether the session began recently enough to change the second
    /// factor or other credentials without another sign-in.
    #[must_use]
    pub fn is_recent(&self, principal: &SessionPrincipal) -> bool {
        let recent_ms = i64::from(self.0.settings.sign_in.recent_minutes) * 60_000;
        self.0.clock.now().ms_since(principal.session.created_at) < recent_ms
    }
}

/// Logs a change of the second factor.
fn factor_changed(principal: &SessionPrincipal, event: &str) {
    tracing::info!(
        target: "security",
        event,
        user.id = %principal.user.id,
        session.id = %principal.session.id,
        client.address = principal.session.ip,
        "second factor changed"
    );
}

fn hashes(principal: &SessionPrincipal, codes: &[String]) -> Vec<mfa::RecoveryCodeHash> {
    codes.iter().map(|code| recovery::hash(principal.user.id, code)).collect()
}
