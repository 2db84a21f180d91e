//! Operators' changes of an account: disable, enable, remove a lost second
//! factor.

use super::IdentityService;
use assurance_core::domain::id::UserId;
use assurance_store::{self as store, TransactionAccess, access_tokens, mfa, sessions, users};

impl IdentityService {
    /// Disables an account, ends its sessions and revokes the access tokens that
    /// it made. Returns the number of ended sessions. From then on, every
    /// sign-in gets the response to a wrong password, and the account's
    /// memberships have no effect. Other nodes apply it within
    /// `session.cache_ms`.
    ///
    /// # Errors
    /// [`store::Error::NotFound`], or another error of the store.
    pub async fn disable(&self, user: UserId) -> Result<usize, store::Error> {
        let mut tx = self.0.store.begin(TransactionAccess::WriteLocked).await?;
        // Before the sessions are ended, because it waits for a sign-in that is
        // creating one.
        users::set_disabled(&mut tx, user, Some(self.0.clock.now())).await?;
        let ended = sessions::delete_all(&mut tx, user).await?;
        access_tokens::delete_of_user(&mut tx, user).await?;
        tx.commit().await?;
        self.forget_sessions(&ended);
        self.0.tokens.invalidate_where(|_, known| known.user.id == user);
        self.0.memberships.invalidate_where(|(of, _), _| *of == user);
        Ok(ended.len())
    }

    /// Enables an account again, with its previous password, second factor and
    /// memberships.
    ///
    /// # Errors
    /// [`store::Error::NotFound`], or another error of the store.
    pub async fn enable(&self, user: UserId) -> Result<(), store::Error> {
        self.0.store.write(async |c| users::set_disabled(c, user, None).await).await
    }

    /// Removes a person's second factor, confirmed or not, with the recovery
    /// codes, and ends all sessions. Returns whether there was one, and the
    /// number of ended sessions.
    ///
    /// # Errors
    /// The database is unavailable.
    pub async fn reset_factor(&self, user: UserId) -> Result<(bool, usize), store::Error> {
        let mut tx = self.0.store.begin(TransactionAccess::WriteLocked).await?;
        let existed = mfa::lock(&mut tx, user).await?.is_some();
        mfa::remove(&mut tx, user).await?;
        let ended = sessions::delete_all(&mut tx, user).await?;
        tx.commit().await?;
        self.forget_sessions(&ended);
        Ok((existed, ended.len()))
    }
}
