//! Rate limits: for each session or access token and workspace, and for each client address at
//! sign-in. In a fleet, all nodes share these limits. The limits for unknown credentials and for
//! pages are separate on each node.

mod fleet;
mod gate;

use std::net::IpAddr;
use std::num::NonZeroU32;

use fleet::SharedStateBackend;
pub use fleet::share_rates;
use gate::KeyedRateLimit;

use assurance_core::config::RatesConfig;
use assurance_core::domain::id::{AccessTokenId, SessionId, WorkspaceId};
use assurance_core::domain::manifest::RateClass;
use assurance_outside::rate_store::RateStoreError;

/// A rate limit's name, its quota, and the time in which the quota is restored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RatePolicy {
    /// Name of the rate limit in the `RateLimit` headers.
    pub name: &'static str,
    /// Maximum number of units that a key can use at once.
    pub quota: u32,
    /// Time in which the full quota is restored, in seconds.
    pub window_s: u64,
}

/// State of one rate limit for one key: the policy, the units left, and the time until the quota is
/// restored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RateLimitStatus {
    /// Name, quota and window of the rate limit.
    pub policy: RatePolicy,
    /// Units of the quota that are left.
    pub remaining: u32,
    /// Seconds until the full quota is restored.
    pub reset_s: u64,
}

/// Refusal of a request by a rate limit, with the time after which the same request is admitted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RateLimited {
    /// Status of the rate limit that refused the request; no units remain.
    pub status: RateLimitStatus,
    /// Seconds after which the client may send the request again, at least 1.
    pub retry_after_s: u64,
}

/// Status of a rate limit after units were taken from it; `None` if rate limits are off.
type TakeResult = Result<Option<RateLimitStatus>, RateLimited>;

/// The service's rate limits. Admits everything if `rates.enabled` is false.
#[derive(Debug)]
pub struct Limiter {
    gates: Option<ServiceRateLimits>,
    shared_state: Option<SharedStateBackend>,
    light: NonZeroU32,
    standard: NonZeroU32,
    heavy: NonZeroU32,
}

#[derive(Debug)]
struct ServiceRateLimits {
    session: KeyedRateLimit<SessionId>,
    token: KeyedRateLimit<AccessTokenId>,
    workspace: KeyedRateLimit<WorkspaceId>,
    sign_in: KeyedRateLimit<IpAddr>,
    guess: KeyedRateLimit<IpAddr>,
    page: KeyedRateLimit<IpAddr>,
}

impl ServiceRateLimits {
    fn new(rates: &RatesConfig, shared: bool) -> Self {
        let (session, workspace) = (rates.session_per_minute, rates.workspace_per_minute);
        let (sign_in, guess) = (rates.sign_in_per_minute, rates.unknown_sessions_per_minute);
        let page = rates.pages_per_minute;
        Self {
            session: KeyedRateLimit::new("session", rates.session_burst, session, shared),
            token: KeyedRateLimit::new("access-token", rates.session_burst, session, shared),
            workspace: KeyedRateLimit::new("workspace", rates.workspace_burst, workspace, shared),
            sign_in: KeyedRateLimit::new("sign-in", sign_in, sign_in, shared),
            guess: KeyedRateLimit::new("unknown-session", guess, guess, false),
            page: KeyedRateLimit::new("page", page, page, false),
        }
    }
}

impl Limiter {
    /// Creates the rate limits from the configuration. Without `rates.redis_url`, nodes share them
    /// in the database if `fleet` is true.
    ///
    /// # Errors
    /// `rates.redis_url` is not valid.
    pub fn new(rates: &RatesConfig, fleet: bool) -> Result<Self, RateStoreError> {
        metrics::describe_counter!(gate::REFUSALS, "Requests refused by a rate limit, by policy");
        let shared_state =
            if rates.enabled { SharedStateBackend::new(rates, fleet)? } else { None };
        Ok(Self {
            gates: rates.enabled.then(|| ServiceRateLimits::new(rates, shared_state.is_some())),
            shared_state,
            light: at_least_one(rates.light_units),
            standard: at_least_one(rates.standard_units),
            heavy: at_least_one(rates.heavy_units),
        })
    }

    /// Takes a request's units from the rate limit of its session. `None` if rate limits are off.
    ///
    /// # Errors
    /// Too few units are left; none were taken.
    pub fn session(&self, key: SessionId, class: RateClass) -> TakeResult {
        self.take(|gates| gates.session.take(&key, self.units(class)))
    }

    /// Takes a request's units from the rate limit of its access token, which has the same quota as
    /// a session. `None` if rate limits are off.
    ///
    /// # Errors
    /// Too few units are left; none were taken.
    pub fn token(&self, key: AccessTokenId, class: RateClass) -> TakeResult {
        self.take(|gates| gates.token.take(&key, self.units(class)))
    }

    /// Takes a request's units from the rate limit of its workspace. `None` if rate limits are off.
    ///
    /// # Errors
    /// Too few units are left; none were taken.
    pub fn workspace(&self, key: WorkspaceId, class: RateClass) -> TakeResult {
        self.take(|gates| gates.workspace.take(&key, self.units(class)))
    }

    /// Takes one unit from the sign-in limit of a client address. `None` if rate limits are off.
    ///
    /// # Errors
    /// No unit is left.
    pub fn sign_in(&self, address: IpAddr) -> TakeResult {
        self.take(|gates| gates.sign_in.take(&network_of(address), NonZeroU32::MIN))
    }

    /// Checks whether an address may send requests with an unknown session or token.
    ///
    /// # Errors
    /// The address used too many unknown sessions and tokens.
    pub fn may_guess(&self, address: IpAddr) -> Result<(), RateLimited> {
        let gates = self.gates.as_ref();
        gates.map_or(Ok(()), |gates| gates.guess.check(&network_of(address)))
    }

    /// Counts a request with an unknown session or token against its address.
    pub fn guessed(&self, address: IpAddr) {
        if let Some(gates) = &self.gates {
            gates.guess.owe(&network_of(address), 1);
        }
    }

    /// Takes one unit from the page limit of a client address. `None` if rate limits are off.
    ///
    /// # Errors
    /// No unit is left.
    pub fn page(&self, address: IpAddr) -> TakeResult {
        self.take(|gates| gates.page.take(&network_of(address), NonZeroU32::MIN))
    }

    /// Returns the rate limit status of a session without taking units; `None` if rate limits are
    /// off.
    #[must_use]
    pub fn session_status(&self, key: SessionId) -> Option<RateLimitStatus> {
        self.gates.as_ref().map(|gates| gates.session.status_of(&key))
    }

    /// Returns the rate limit status of an access token without taking units; `None` if rate limits
    /// are off.
    #[must_use]
    pub fn token_status(&self, key: AccessTokenId) -> Option<RateLimitStatus> {
        self.gates.as_ref().map(|gates| gates.token.status_of(&key))
    }

    /// Returns the status of a client address's sign-in limit without taking units; `None` if rate
    /// limits are off.
    #[must_use]
    pub fn sign_in_status(&self, address: IpAddr) -> Option<RateLimitStatus> {
        self.gates.as_ref().map(|gates| gates.sign_in.status_of(&network_of(address)))
    }

    /// Deletes the state of keys that have their full quota, in all rate limits of this node.
    pub fn forget_idle(&self) {
        if let Some(gates) = &self.gates {
            gates.session.forget_idle();
            gates.token.forget_idle();
            gates.workspace.forget_idle();
            gates.sign_in.forget_idle();
            gates.guess.forget_idle();
            gates.page.forget_idle();
        }
    }

    fn take(
        &self,
        from: impl FnOnce(&ServiceRateLimits) -> Result<RateLimitStatus, RateLimited>,
    ) -> TakeResult {
        self.gates.as_ref().map(from).transpose()
    }

    fn units(&self, class: RateClass) -> NonZeroU32 {
        match class {
            RateClass::Light => self.light,
            RateClass::Standard => self.standard,
            RateClass::Heavy => self.heavy,
        }
    }
}

/// Returns the network whose addresses share one rate limit: a /64 for IPv6, because one client
/// usually has a whole /64.
fn network_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => IpAddr::V6((u128::from(v6) & !u128::from(u64::MAX)).into()),
        v4 @ IpAddr::V4(_) => v4,
    }
}

fn at_least_one(number: u32) -> NonZeroU32 {
    NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limiter(burst: u32, per_minute: u32) -> Limiter {
        let rates = RatesConfig::default();
        let rates = RatesConfig { session_burst: burst, session_per_minute: per_minute, ..rates };
        Limiter::new(&rates, true).unwrap()
    }

    #[test]
    fn heavy_requests_use_more_and_refusals_say_how_long() {
        let limiter = limiter(20, 60);
        let session = SessionId::new();
        let status = limiter.session(session, RateClass::Standard).unwrap().unwrap();
        assert_eq!(status.policy, RatePolicy { name: "session", quota: 20, window_s: 20 });
        assert_eq!((status.remaining, status.reset_s), (18, 2));
        let spent = limiter.session(session, RateClass::Heavy).unwrap_err();
        assert_eq!(spent.retry_after_s, 2);
        assert!(limiter.session(SessionId::new(), RateClass::Heavy).is_ok());
    }

    #[test]
    fn a_request_heavier_than_the_quota_passes_when_all_is_left() {
        let limiter = limiter(5, 60);
        assert!(limiter.session(SessionId::new(), RateClass::Heavy).is_ok());
    }

    #[test]
    fn who_guesses_too_often_waits_and_who_does_not_guess_does_not() {
        let rates = RatesConfig { unknown_sessions_per_minute: 3, ..RatesConfig::default() };
        let limiter = Limiter::new(&rates, false).unwrap();
        let (guesser, other) = (IpAddr::from([192, 0, 2, 1]), IpAddr::from([192, 0, 2, 2]));
        for _ in 0..3 {
            assert_eq!(limiter.may_guess(guesser), Ok(()));
            assert_eq!(limiter.may_guess(guesser), Ok(()), "to look costs nothing");
            limiter.guessed(guesser);
        }
        let spent = limiter.may_guess(guesser).unwrap_err();
        assert!((1..=20).contains(&spent.retry_after_s), "{spent:?}");
        assert_eq!(limiter.may_guess(other), Ok(()));
    }

    #[test]
    fn switched_off_there_is_nothing_to_tell() {
        let rates = RatesConfig { enabled: false, ..RatesConfig::default() };
        let limiter = Limiter::new(&rates, true).unwrap();
        assert_eq!(limiter.session(SessionId::new(), RateClass::Heavy), Ok(None));
    }

    #[test]
    fn neighbours_in_one_ipv6_network_share_a_limit() {
        let one = network_of("2001:db8::1".parse().unwrap());
        assert_eq!(one, network_of("2001:db8::2".parse().unwrap()));
        assert_ne!(one, network_of("2001:db8:0:1::1".parse().unwrap()));
        assert_eq!(
            network_of("::ffff:192.0.2.1".parse().unwrap()),
            "192.0.2.1".parse::<IpAddr>().unwrap()
        );
    }
}
