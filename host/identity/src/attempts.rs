//! Counts attempts to sign in before they are made.
//!
//! Failures are counted for the account together with the network, so that
//! nobody can lock a person out from another network. All networks and devices
//! that the account has not used before share one daily limit. A device that
//! the account has used before is counted alone.

use std::net::{IpAddr, Ipv4Addr};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

use super::{IdentityService, backoff};
use assurance_core::config::SignInProtectionConfig;
use assurance_core::domain::time::Timestamp;
use assurance_store::connection::Connection;
use assurance_store::{self as store, TransactionAccess, sign_in_failures, sign_in_places};

/// Origin of a sign-in attempt: the client's address and device.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ClientAddressAndDevice<'a> {
    /// The client's address; `None` for a code from a signed-in person.
    pub(super) address: Option<IpAddr>,
    /// Value of the client's device cookie; `None` if the client sent none.
    pub(super) device: Option<&'a str>,
}

/// A sign-in attempt with the failure counters in which it is counted.
#[derive(Clone, Debug)]
pub(super) struct CountedSignInAttempt {
    account: String,
    /// Time of the sign-in attempt.
    at: Timestamp,
    /// Counts the account's consecutive failures from this device or network,
    /// or with codes of the signed-in person.
    here: FailureCounterIncrement,
    /// Counts failures from the client's address, of any account; `None` for a
    /// known device, or for a code from a signed-in person.
    address: Option<FailureCounterIncrement>,
    /// Counts the account's failures per day from devices and networks that it
    /// has not used before; `None` if it has used this one.
    elsewhere: Option<FailureCounterIncrement>,
}

/// One failure counter in which a sign-in attempt is counted.
#[derive(Clone, Debug)]
struct FailureCounterIncrement {
    subject: String,
    /// Time of the last failure (`last_at`) to which the counter is set back
    /// when the attempt is withdrawn.
    former: Timestamp,
}

/// Reason why a sign-in attempt is refused without checking the password.
#[derive(Debug, thiserror::Error)]
pub(super) enum AttemptRefusal {
    #[error("too early")]
    Until(Timestamp),
    #[error(transparent)]
    Store(#[from] store::Error),
}

impl IdentityService {
    /// Counts a sign-in attempt as failed in advance. Refuses it while the
    /// account or the address is delayed, or if the account's daily limit for
    /// unknown devices and networks is used up.
    pub(super) async fn begin_attempt(
        &self,
        email: &str,
        source: ClientAddressAndDevice<'_>,
        now: Timestamp,
    ) -> Result<CountedSignInAttempt, AttemptRefusal> {
        let settings = &self.0.settings.sign_in;
        let mut tx = self.0.store.begin(TransactionAccess::WriteLocked).await?;
        let mut attempt = self.attempt(&mut tx, email, source, now).await?;
        // Always in this order, so that two attempts cannot deadlock.
        if let Some(address) = &mut attempt.address {
            count(&mut tx, address, settings.address_free_failures, settings, now).await?;
        }
        count(&mut tx, &mut attempt.here, settings.account_free_failures, settings, now).await?;
        if let Some(elsewhere) = &mut attempt.elsewhere {
            let known = sign_in_failures::lock(&mut tx, &elsewhere.subject, now).await?;
            let most = settings.account_daily_failures;
            let counted = backoff::count_daily(&known, most, now).map_err(AttemptRefusal::Until)?;
            sign_in_failures::put(&mut tx, &elsewhere.subject, &counted).await?;
            // A day that has begun stays begun.
            elsewhere.former = counted.last_at;
        }
        tx.commit().await?;
        Ok(attempt)
    }

    async fn attempt(
        &self,
        connection: &mut Connection,
        email: &str,
        source: ClientAddressAndDevice<'_>,
        now: Timestamp,
    ) -> Result<CountedSignInAttempt, store::Error> {
        let account = self.account(email);
        let counter = |subject: String| FailureCounterIncrement { subject, former: now };
        let attempt = |place: &str, address: Option<IpAddr>, known: bool| CountedSignInAttempt {
            here: counter(format!("{account} {place}")),
            address: address.map(|address| counter(format!("address {}", subscriber(address)))),
            elsewhere: (!known).then(|| counter(format!("{account} elsewhere"))),
            account: account.clone(),
            at: now,
        };
        let Some(address) = source.address else { return Ok(attempt("codes", None, true)) };
        let since = self.known_since(now);
        if let Some(device) = source.device.map(device_place)
            && sign_in_places::is_known(connection, &account, &device, since).await?
        {
            return Ok(attempt(&device, None, true));
        }
        let place = network_place(address);
        let known = sign_in_places::is_known(connection, &account, &place, since).await?;
        Ok(attempt(&place, Some(address), known))
    }

    /// Subtracts from all failure counters a sign-in attempt that neither
    /// failed nor succeeded.
    pub(super) async fn withdraw(
        &self,
        connection: &mut Connection,
        attempt: &CountedSignInAttempt,
    ) -> Result<(), store::Error> {
        let CountedSignInAttempt { at, here, address, elsewhere, .. } = attempt;
        for FailureCounterIncrement { subject, former } in
            address.iter().chain([here]).chain(elsewhere)
        {
            sign_in_failures::take_back(connection, subject, *at, *former).await?;
        }
        Ok(())
    }

    /// Withdraws a sign-in attempt that ends without a session from the failure
    /// counters, in a transaction of its own.
    pub(super) async fn withdraw_now(
        &self,
        attempt: &CountedSignInAttempt,
    ) -> Result<(), store::Error> {
        let mut tx = self.0.store.begin(TransactionAccess::WriteLocked).await?;
        self.withdraw(&mut tx, attempt).await?;
        tx.commit().await
    }

    /// Records a successful sign-in: resets the account's failures from this
    /// device or network, reverts this attempt in the daily count, and marks
    /// network and device as known. Returns the device's new cookie, which
    /// replaces the previous one.
    pub(super) async fn succeed(
        &self,
        connection: &mut Connection,
        attempt: &CountedSignInAttempt,
        source: ClientAddressAndDevice<'_>,
    ) -> Result<String, store::Error> {
        self.withdraw(connection, attempt).await?;
        sign_in_failures::forget(connection, &attempt.here.subject).await?;
        let (account, now) = (&attempt.account, self.0.clock.now());
        if let Some(former) = source.device {
            sign_in_places::forget(connection, account, &device_place(former)).await?;
        }
        let device = URL_SAFE_NO_PAD.encode(rand::random::<[u8; 32]>());
        let network = source.address.map(network_place);
        for place in network.into_iter().chain([device_place(&device)]) {
            sign_in_places::keep(connection, account, &place, now).await?;
        }
        for kind in ["device", "network"] {
            sign_in_places::keep_newest(connection, account, kind, MOST_PLACES).await?;
        }
        Ok(device)
    }

    /// Deletes all counted failures of an account after a new password was set.
    pub(super) async fn forget_failures(
        &self,
        connection: &mut Connection,
        email: &str,
    ) -> Result<(), store::Error> {
        sign_in_failures::forget_all(connection, &self.account(email)).await
    }

    /// Returns the time since when an account must have used a device or
    /// network for it to count as known.
    pub(super) fn known_since(&self, now: Timestamp) -> Timestamp {
        now.plus_ms(-i64::from(self.0.settings.sign_in.known_place_days) * backoff::DAY_MS)
    }

    /// Returns a pseudonym of the account for the log. The address itself is
    /// not logged, because people also type passwords into its field.
    pub(super) fn account_label(&self, email: &str) -> String {
        let account = self.account(&super::people::normalize_email(email));
        account.chars().skip("account ".len()).take(LABEL).collect()
    }

    fn account(&self, email: &str) -> String {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0.attempts_key)
            .expect("HMAC takes a key of any length");
        mac.update(email.as_bytes());
        format!("account {}", hex::encode(mac.finalize().into_bytes()))
    }
}

/// Length of an account's pseudonym in the log, in characters.
const LABEL: usize = 16;

/// Maximum number of known devices, and of known networks, of an account.
const MOST_PLACES: u32 = 20;

async fn count(
    connection: &mut Connection,
    counter: &mut FailureCounterIncrement,
    free: u32,
    settings: &SignInProtectionConfig,
    now: Timestamp,
) -> Result<(), AttemptRefusal> {
    let known = sign_in_failures::lock(connection, &counter.subject, now).await?;
    counter.former = known.last_at;
    let counted = backoff::count(&known, free, settings, now).map_err(AttemptRefusal::Until)?;
    Ok(sign_in_failures::put(connection, &counter.subject, &counted).await?)
}

/// Returns the key under which a device is stored as known: the hash of its
/// cookie.
fn device_place(cookie: &str) -> String {
    format!("device {}", hex::encode(Sha256::digest(cookie.as_bytes())))
}

/// Returns the key under which the network of a client's address is stored as
/// known. It is the network, because providers change the addresses of their
/// subscribers.
fn network_place(address: IpAddr) -> String {
    match address.to_canonical() {
        IpAddr::V4(address) => {
            let [a, b, c, _] = address.octets();
            format!("network {}/24", Ipv4Addr::new(a, b, c, 0))
        }
        address @ IpAddr::V6(_) => format!("network {}", subscriber(address)),
    }
}

/// Returns the subscriber's part of an address: in IPv6 the /64, which one
/// subscriber can use completely.
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
