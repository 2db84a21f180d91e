//! Counts attempts by account and by address before they are made.

use std::net::IpAddr;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::{Identity, backoff};
use crate::domain::time::Timestamp;
use crate::store::connection::Connection;
use crate::store::{self, Access, sign_in_failures};

/// Whom an attempt counts against.
#[derive(Clone, Debug)]
pub(super) struct Attempt {
    account: String,
    address: Option<String>,
}

/// An attempt that is not made.
#[derive(Debug, thiserror::Error)]
pub(super) enum Early {
    #[error("too early")]
    Until(Timestamp),
    #[error(transparent)]
    Store(#[from] store::Error),
}

impl Identity {
    /// Counts an attempt as failed in advance; refuses it while the account
    /// or the address has to wait.
    pub(super) async fn begin_attempt(
        &self,
        email: &str,
        address: Option<IpAddr>,
        now: Timestamp,
    ) -> Result<Attempt, Early> {
        let settings = &self.0.settings.sign_in;
        let attempt = Attempt { account: self.account(email), address: address.map(network) };
        let mut tx = self.0.store.begin(Access::WriteLocked).await?;
        // Always the address first, so that two attempts cannot wait for each
        // other.
        if let Some(address) = &attempt.address {
            count(&mut tx, address, settings.address_free_failures, settings, now).await?;
        }
        count(&mut tx, &attempt.account, settings.account_free_failures, settings, now).await?;
        tx.commit().await?;
        Ok(attempt)
    }

    /// It was no failure, and no success either: takes it back.
    pub(super) async fn withdraw(
        &self,
        connection: &mut Connection,
        attempt: &Attempt,
    ) -> Result<(), store::Error> {
        if let Some(address) = &attempt.address {
            sign_in_failures::take_back(connection, address).await?;
        }
        sign_in_failures::take_back(connection, &attempt.account).await
    }

    /// It was a success: the account starts afresh, the address is relieved
    /// of this attempt only.
    pub(super) async fn succeed(
        &self,
        connection: &mut Connection,
        attempt: &Attempt,
    ) -> Result<(), store::Error> {
        if let Some(address) = &attempt.address {
            sign_in_failures::take_back(connection, address).await?;
        }
        sign_in_failures::forget(connection, &attempt.account).await
    }

    fn account(&self, email: &str) -> String {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0.attempts_key)
            .expect("HMAC takes a key of any length");
        mac.update(email.as_bytes());
        format!("account {}", hex::encode(mac.finalize().into_bytes()))
    }
}

async fn count(
    connection: &mut Connection,
    subject: &str,
    free: u32,
    settings: &crate::config::SignIn,
    now: Timestamp,
) -> Result<(), Early> {
    let known = sign_in_failures::lock(connection, subject, now).await?;
    let counted = backoff::count(&known, free, settings, now).map_err(Early::Until)?;
    Ok(sign_in_failures::put(connection, subject, &counted).await?)
}

/// One subscriber has a whole /64 of IPv6 to choose addresses from.
fn network(address: IpAddr) -> String {
    match address.to_canonical() {
        IpAddr::V4(address) => format!("address {address}"),
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            format!("address {a:x}:{b:x}:{c:x}:{d:x}::/64")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_stands_for_its_subscriber() {
        let of = |text: &str| network(text.parse().unwrap());
        assert_eq!(of("203.0.113.9"), "address 203.0.113.9");
        assert_eq!(of("::ffff:203.0.113.9"), of("203.0.113.9"));
        assert_eq!(of("2001:db8:1:2::1"), of("2001:db8:1:2:ffff::9"));
        assert_ne!(of("2001:db8:1:2::1"), of("2001:db8:1:3::1"));
    }
}
