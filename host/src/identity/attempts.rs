//! Counts attempts to sign in before they are made.
//!
//! Failures count against the account together with the network they come
//! from, so that nobody keeps a person out from elsewhere. All networks and
//! devices that the account is not known from share one number of failures a
//! day. A device that the account is known from counts alone.

use std::net::{IpAddr, Ipv4Addr};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

use super::{Identity, backoff};
use crate::config::SignIn;
use crate::domain::time::Timestamp;
use crate::store::connection::Connection;
use crate::store::{self, Access, sign_in_failures, sign_in_places};

/// Where an attempt comes from.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Whence<'a> {
    /// The client's address; `None` for a code of somebody signed in.
    pub(super) address: Option<IpAddr>,
    /// The value of the client's device cookie.
    pub(super) device: Option<&'a str>,
}

/// What an attempt counts against.
#[derive(Clone, Debug)]
pub(super) struct Attempt {
    account: String,
    /// Failures of this account from this place, in a row.
    here: String,
    /// Failures from this address, whatever the account.
    address: Option<String>,
    /// Failures of this account from places it is not known from, in a day.
    elsewhere: Option<String>,
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
    /// has to wait here, the address has to wait, or the account's failures
    /// from unknown places are used up for the day.
    pub(super) async fn begin_attempt(
        &self,
        email: &str,
        whence: Whence<'_>,
        now: Timestamp,
    ) -> Result<Attempt, Early> {
        let settings = &self.0.settings.sign_in;
        let mut tx = self.0.store.begin(Access::WriteLocked).await?;
        let attempt = self.attempt(&mut tx, email, whence, now).await?;
        // Always in this order, so that two attempts cannot wait for each other.
        if let Some(address) = &attempt.address {
            count(&mut tx, address, settings.address_free_failures, settings, now).await?;
        }
        count(&mut tx, &attempt.here, settings.account_free_failures, settings, now).await?;
        if let Some(elsewhere) = &attempt.elsewhere {
            let known = sign_in_failures::lock(&mut tx, elsewhere, now).await?;
            let most = settings.account_daily_failures;
            let counted = backoff::count_daily(&known, most, now).map_err(Early::Until)?;
            sign_in_failures::put(&mut tx, elsewhere, &counted).await?;
        }
        tx.commit().await?;
        Ok(attempt)
    }

    async fn attempt(
        &self,
        connection: &mut Connection,
        email: &str,
        whence: Whence<'_>,
        now: Timestamp,
    ) -> Result<Attempt, store::Error> {
        let account = self.account(email);
        let attempt = |place: &str, address: Option<IpAddr>, known: bool| Attempt {
            here: format!("{account} {place}"),
            address: address.map(|address| format!("address {}", subscriber(address))),
            elsewhere: (!known).then(|| format!("{account} elsewhere")),
            account: account.clone(),
        };
        let Some(address) = whence.address else { return Ok(attempt("codes", None, true)) };
        let since = self.known_since(now);
        if let Some(device) = whence.device.map(device_place)
            && sign_in_places::is_known(connection, &account, &device, since).await?
        {
            return Ok(attempt(&device, None, true));
        }
        let place = network_place(address);
        let known = sign_in_places::is_known(connection, &account, &place, since).await?;
        Ok(attempt(&place, Some(address), known))
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
        sign_in_failures::take_back(connection, &attempt.here).await?;
        if let Some(elsewhere) = &attempt.elsewhere {
            sign_in_failures::take_back(connection, elsewhere).await?;
        }
        Ok(())
    }

    /// It was a success: the account starts afresh here, is relieved of this
    /// attempt elsewhere, and is known from this network and this device.
    /// Returns the device's new cookie, which replaces the one it sent.
    pub(super) async fn succeed(
        &self,
        connection: &mut Connection,
        attempt: &Attempt,
        whence: Whence<'_>,
    ) -> Result<String, store::Error> {
        self.withdraw(connection, attempt).await?;
        sign_in_failures::forget(connection, &attempt.here).await?;
        let (account, now) = (&attempt.account, self.0.clock.now());
        if let Some(former) = whence.device {
            sign_in_places::forget(connection, account, &device_place(former)).await?;
        }
        let device = URL_SAFE_NO_PAD.encode(rand::random::<[u8; 32]>());
        let network = whence.address.map(network_place);
        for place in network.into_iter().chain([device_place(&device)]) {
            sign_in_places::keep(connection, account, &place, now).await?;
        }
        for kind in ["device", "network"] {
            sign_in_places::keep_newest(connection, account, kind, MOST_PLACES).await?;
        }
        Ok(device)
    }

    /// Forgets all failures of an account; a new password was set for it.
    pub(super) async fn forget_failures(
        &self,
        connection: &mut Connection,
        email: &str,
    ) -> Result<(), store::Error> {
        sign_in_failures::forget_all(connection, &self.account(email)).await
    }

    /// Places that were last used before then are forgotten.
    pub(super) fn known_since(&self, now: Timestamp) -> Timestamp {
        now.plus_ms(-i64::from(self.0.settings.sign_in.known_place_days) * backoff::DAY_MS)
    }

    /// An account as the log names it where nobody was recognized: people type
    /// passwords into the field of the e-mail address.
    pub(super) fn account_label(&self, email: &str) -> String {
        let account = self.account(&super::people::normalise_email(email));
        account.chars().skip("account ".len()).take(LABEL).collect()
    }

    fn account(&self, email: &str) -> String {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0.attempts_key)
            .expect("HMAC takes a key of any length");
        mac.update(email.as_bytes());
        format!("account {}", hex::encode(mac.finalize().into_bytes()))
    }
}

/// Characters of an account's label in the log.
const LABEL: usize = 16;

/// Devices, and networks, that an account is known from at most.
const MOST_PLACES: u32 = 20;

async fn count(
    connection: &mut Connection,
    subject: &str,
    free: u32,
    settings: &SignIn,
    now: Timestamp,
) -> Result<(), Early> {
    let known = sign_in_failures::lock(connection, subject, now).await?;
    let counted = backoff::count(&known, free, settings, now).map_err(Early::Until)?;
    Ok(sign_in_failures::put(connection, subject, &counted).await?)
}

/// A device by the hash of its cookie.
fn device_place(cookie: &str) -> String {
    format!("device {}", hex::encode(Sha256::digest(cookie.as_bytes())))
}

/// The network that an address is in: a person's provider gives them another
/// address of it tomorrow.
fn network_place(address: IpAddr) -> String {
    match address.to_canonical() {
        IpAddr::V4(address) => {
            let [a, b, c, _] = address.octets();
            format!("network {}/24", Ipv4Addr::new(a, b, c, 0))
        }
        address @ IpAddr::V6(_) => format!("network {}", subscriber(address)),
    }
}

/// One subscriber has a whole /64 of IPv6 to choose addresses from.
fn subscriber(address: IpAddr) -> String {
    match address.to_canonical() {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            format!("{a:x}:{b:x}:{c:x}:{d:x}::/64")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_stands_for_its_subscriber_and_its_network() {
        let of = |text: &str| subscriber(text.parse().unwrap());
        assert_eq!(of("203.0.113.9"), "203.0.113.9");
        assert_eq!(of("::ffff:203.0.113.9"), of("203.0.113.9"));
        assert_eq!(of("2001:db8:1:2::1"), of("2001:db8:1:2:ffff::9"));
        assert_ne!(of("2001:db8:1:2::1"), of("2001:db8:1:3::1"));
        let network = |text: &str| network_place(text.parse().unwrap());
        assert_eq!(network("203.0.113.9"), "network 203.0.113.0/24");
        assert_eq!(network("::ffff:203.0.113.9"), network("203.0.113.77"));
        assert_ne!(network("203.0.113.9"), network("203.0.114.9"));
        assert_eq!(network("2001:db8:1:2::1"), network("2001:db8:1:2:ffff::9"));
    }
}
