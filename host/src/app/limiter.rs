//! How often somebody may ask: the generic cell rate algorithm, per session,
//! per workspace and, for sign-in, per address. State is sharded by key;
//! nothing here is a lock that all requests share.

use std::hash::Hash;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::time::Duration;

use governor::clock::{Clock as _, DefaultClock};
use governor::middleware::StateInformationMiddleware;
use governor::state::keyed::DashMapStateStore;
use governor::{Quota, RateLimiter};

use crate::config::Rates;
use crate::domain::id::{SessionId, WorkspaceId};
use crate::domain::manifest::RateClass;

/// One rule: so many units, all regained within so many seconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Policy {
    /// As clients read it.
    pub name: &'static str,
    /// Units that can be used at once.
    pub quota: u32,
    /// Seconds in which all are regained.
    pub window_s: u64,
}

/// Where somebody stands under one policy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Standing {
    /// The rule.
    pub policy: Policy,
    /// Units left.
    pub remaining: u32,
    /// Seconds until all are regained.
    pub reset_s: u64,
}

/// Refused; the wait until the same request would pass.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Spent {
    /// Nothing is left there.
    pub standing: Standing,
    /// Seconds.
    pub retry_after_s: u64,
}

/// The service's rate limits; without any where they are switched off.
#[derive(Debug)]
pub struct Limiter {
    gates: Option<Gates>,
    light: NonZeroU32,
    standard: NonZeroU32,
    heavy: NonZeroU32,
}

#[derive(Debug)]
struct Gates {
    session: Gate<SessionId>,
    workspace: Gate<WorkspaceId>,
    sign_in: Gate<IpAddr>,
}

type Cells<K> = RateLimiter<K, DashMapStateStore<K>, DefaultClock, StateInformationMiddleware>;

#[derive(Debug)]
struct Gate<K: Hash + Eq + Clone> {
    cells: Cells<K>,
    policy: Policy,
}

impl Limiter {
    /// Limits as configured.
    #[must_use]
    pub fn new(rates: &Rates) -> Self {
        let per_minute = rates.sign_in_per_minute;
        Self {
            gates: rates.enabled.then(|| Gates {
                session: Gate::new("session", rates.session_burst, rates.session_per_minute),
                workspace: Gate::new(
                    "workspace",
                    rates.workspace_burst,
                    rates.workspace_per_minute,
                ),
                sign_in: Gate::new("sign-in", per_minute, per_minute),
            }),
            light: at_least_one(rates.light_units),
            standard: at_least_one(rates.standard_units),
            heavy: at_least_one(rates.heavy_units),
        }
    }

    /// Takes a request's units from its session.
    ///
    /// # Errors
    /// Too few are left; none were taken.
    pub fn session(&self, key: SessionId, class: RateClass) -> Result<Option<Standing>, Spent> {
        let gate = self.gates.as_ref().map(|gates| &gates.session);
        gate.map(|gate| gate.take(&key, self.units(class))).transpose()
    }

    /// Takes a request's units from its workspace.
    ///
    /// # Errors
    /// Too few are left; none were taken.
    pub fn workspace(&self, key: WorkspaceId, class: RateClass) -> Result<Option<Standing>, Spent> {
        let gate = self.gates.as_ref().map(|gates| &gates.workspace);
        gate.map(|gate| gate.take(&key, self.units(class))).transpose()
    }

    /// Takes one attempt from an address that wants to sign in.
    ///
    /// # Errors
    /// Too few are left.
    pub fn sign_in(&self, address: IpAddr) -> Result<Option<Standing>, Spent> {
        let gate = self.gates.as_ref().map(|gates| &gates.sign_in);
        gate.map(|gate| gate.take(&network_of(address), NonZeroU32::MIN)).transpose()
    }

    /// Forgets whoever has regained everything.
    pub fn forget_idle(&self) {
        if let Some(gates) = &self.gates {
            gates.session.cells.retain_recent();
            gates.workspace.cells.retain_recent();
            gates.sign_in.cells.retain_recent();
        }
    }

    fn units(&self, class: RateClass) -> NonZeroU32 {
        match class {
            RateClass::Light => self.light,
            RateClass::Standard => self.standard,
            RateClass::Heavy => self.heavy,
        }
    }
}

impl<K: Hash + Eq + Clone> Gate<K> {
    fn new(name: &'static str, burst: u32, per_minute: u32) -> Self {
        let (burst, per_minute) = (at_least_one(burst), at_least_one(per_minute));
        let one_per = Duration::from_secs(60) / per_minute.get();
        let quota = Quota::with_period(one_per)
            .unwrap_or_else(|| Quota::per_minute(per_minute))
            .allow_burst(burst);
        let window = u64::from(burst.get()) * 60;
        let policy = Policy {
            name,
            quota: burst.get(),
            window_s: window.div_ceil(u64::from(per_minute.get())),
        };
        let cells = RateLimiter::dashmap(quota).with_middleware();
        Self { cells, policy }
    }

    /// A request that weighs more than everything takes everything.
    fn take(&self, key: &K, units: NonZeroU32) -> Result<Standing, Spent> {
        let units = units.min(at_least_one(self.policy.quota));
        match self.cells.check_key_n(key, units) {
            Ok(Ok(state)) => Ok(self.standing(state.remaining_burst_capacity())),
            Ok(Err(not_until)) => {
                let wait = not_until.wait_time_from(self.cells.clock().now());
                Err(self.spent(wait))
            }
            Err(_too_heavy) => Err(self.spent(Duration::from_secs(self.policy.window_s))),
        }
    }

    fn standing(&self, remaining: u32) -> Standing {
        let used = u64::from(self.policy.quota.saturating_sub(remaining));
        let reset_s = (used * self.policy.window_s).div_ceil(u64::from(self.policy.quota).max(1));
        Standing { policy: self.policy, remaining, reset_s }
    }

    fn spent(&self, wait: Duration) -> Spent {
        let retry_after_s = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
        Spent { standing: self.standing(0), retry_after_s: retry_after_s.max(1) }
    }
}

/// One person usually has a whole /64 of IPv6.
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
        Limiter::new(&Rates {
            session_burst: burst,
            session_per_minute: per_minute,
            ..Rates::default()
        })
    }

    #[test]
    fn heavy_requests_use_more_and_refusals_say_how_long() {
        let limiter = limiter(20, 60);
        let session = SessionId::new();
        let standing = limiter.session(session, RateClass::Standard).unwrap().unwrap();
        assert_eq!(standing.policy, Policy { name: "session", quota: 20, window_s: 20 });
        assert_eq!((standing.remaining, standing.reset_s), (18, 2));
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
    fn switched_off_there_is_nothing_to_tell() {
        let limiter = Limiter::new(&Rates { enabled: false, ..Rates::default() });
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
