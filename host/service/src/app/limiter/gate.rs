//! One rate limit with the state of all keys: the generic cell rate algorithm. The state is sharded
//! by key, so requests do not share a lock.

use std::convert::Infallible;
use std::hash::Hash;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use dashmap::DashMap;
use governor::clock::{Clock as _, DefaultClock, Reference as _};
use governor::middleware::StateInformationMiddleware;
use governor::nanos::Nanos;
use governor::state::StateStore;
use governor::state::keyed::{DashMapStateStore, ShrinkableKeyedStateStore};
use governor::{Quota, RateLimiter};
use metrics::counter;

use super::{RateLimitStatus, RateLimited, RatePolicy};

/// Maximum debt of a rate limit's key, in windows of its policy. It bounds the wait that usage on
/// other nodes can cause.
const MOST_OWED_WINDOWS: u64 = 2;

/// A node charges a key's units to the fleet's common state when they are at least the quota
/// divided by this number.
const UNCHARGED_PART: u32 = 64;

/// Metric: requests that a rate limit refused, by policy.
pub(super) const REFUSALS: &str = "assurance_rate_limit_refusals_total";

type Instant = <DefaultClock as governor::clock::Clock>::Instant;

#[derive(Debug)]
pub(super) struct KeyedRateLimit<K: Hash + Eq + Clone> {
    limiter: RateLimiter<K, RateLimitCells<K>, DefaultClock, StateInformationMiddleware>,
    cells: RateLimitCells<K>,
    /// Time at which the rate limit was created: the zero point of the times in `cells`.
    began: Instant,
    one_per: Duration,
    pub(super) policy: RatePolicy,
    /// Units of each key that this node has admitted and not yet charged to the fleet; `None` on a
    /// single node.
    uncharged: Option<DashMap<K, u32>>,
}

/// Time at which each key of a rate limit has its full quota again. Shared with governor's limiter,
/// which cannot charge units beyond the quota.
#[derive(Debug)]
struct RateLimitCells<K: Hash + Eq + Clone>(Arc<DashMapStateStore<K>>);

impl<K: Hash + Eq + Clone> StateStore for RateLimitCells<K> {
    type Key = K;

    fn measure_and_replace<T, F, E>(&self, key: &K, f: F) -> Result<T, E>
    where
        F: Fn(Option<Nanos>) -> Result<(T, Nanos), E>,
    {
        self.0.measure_and_replace(key, f)
    }
}

impl<K: Hash + Eq + Clone> ShrinkableKeyedStateStore<K> for RateLimitCells<K> {
    fn retain_recent(&self, drop_below: Nanos) {
        ShrinkableKeyedStateStore::retain_recent(&*self.0, drop_below);
    }

    fn len(&self) -> usize {
        self.0.len()
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<K: Hash + Eq + Clone> KeyedRateLimit<K> {
    pub(super) fn new(name: &'static str, burst: u32, per_minute: u32, shared: bool) -> Self {
        let (burst, per_minute) = (super::at_least_one(burst), super::at_least_one(per_minute));
        let one_per = Duration::from_secs(60) / per_minute.get();
        let quota = Quota::with_period(one_per)
            .unwrap_or_else(|| Quota::per_minute(per_minute))
            .allow_burst(burst);
        let window = u64::from(burst.get()) * 60;
        let policy = RatePolicy {
            name,
            quota: burst.get(),
            window_s: window.div_ceil(u64::from(per_minute.get())),
        };
        let (clock, cells) = (DefaultClock::default(), Arc::<DashMapStateStore<K>>::default());
        Self {
            began: clock.now(),
            limiter: RateLimiter::new(quota, RateLimitCells(Arc::clone(&cells)), clock),
            cells: RateLimitCells(cells),
            one_per: quota.replenish_interval(),
            policy,
            uncharged: shared.then(DashMap::new),
        }
    }

    /// Takes units from a key's quota. A request that costs more than the quota takes the whole
    /// quota.
    pub(super) fn take(&self, key: &K, units: NonZeroU32) -> Result<RateLimitStatus, RateLimited> {
        let units = units.min(super::at_least_one(self.policy.quota));
        match self.limiter.check_key_n(key, units) {
            Ok(Ok(state)) => {
                if let Some(uncharged) = &self.uncharged {
                    *uncharged.entry(key.clone()).or_default() += units.get();
                }
                Ok(self.status(state.remaining_burst_capacity()))
            }
            Ok(Err(not_until)) => {
                let wait = not_until.wait_time_from(self.limiter.clock().now());
                Err(self.refusal(wait, units.get()))
            }
            Err(_too_heavy) => {
                Err(self.refusal(Duration::from_secs(self.policy.window_s), self.policy.quota))
            }
        }
    }

    /// Checks that one unit of a key's quota is left, without taking it.
    pub(super) fn check(&self, key: &K) -> Result<(), RateLimited> {
        let rest = nanos(self.one_per).saturating_mul(u64::from(self.policy.quota - 1));
        match self.regained_in(key).saturating_sub(rest) {
            0 => Ok(()),
            wait => Err(self.refusal(Duration::from_nanos(wait), 1)),
        }
    }

    /// Returns the time until a key has its full quota again, in nanoseconds.
    fn regained_in(&self, key: &K) -> u64 {
        let unchanged = |at| Err::<(Infallible, Nanos), Option<Nanos>>(at);
        let Err(regained_at) = self.cells.measure_and_replace(key, unchanged);
        let now = self.limiter.clock().now().duration_since(self.began).as_u64();
        regained_at.map_or(0, Nanos::as_u64).saturating_sub(now)
    }

    /// Takes the keys that are to be charged to the fleet, with their costs: the time in which the
    /// used units are restored, in microseconds. Keys with less than 1/64 of the quota wait for
    /// more.
    pub(super) fn take_uncharged(&self) -> Vec<(K, i64)> {
        let at_least = self.policy.quota / UNCHARGED_PART;
        let one_per_us = nanos(self.one_per).div_ceil(1_000);
        let mut charges = Vec::new();
        if let Some(uncharged) = &self.uncharged {
            uncharged.retain(|key, units| {
                let waits = *units < at_least;
                if !waits {
                    let cost_us = one_per_us.saturating_mul((*units).into());
                    charges.push((key.clone(), i64::try_from(cost_us).unwrap_or(i64::MAX)));
                }
                waits
            });
        }
        charges
    }

    /// Maximum debt of a rate limit's key in the fleet, in microseconds.
    pub(super) fn max_debt_us(&self) -> i64 {
        i64::try_from(self.max_debt_nanos() / 1_000).unwrap_or(i64::MAX)
    }

    /// Applies the fleet's state of a key: `wait_us` is the time until the key has its full quota
    /// again, in microseconds.
    pub(super) fn update(&self, key: &K, wait_us: i64) {
        let wait = wait_us.unsigned_abs().saturating_mul(1_000).min(self.max_debt_nanos());
        self.postpone(key, |now, regained_at| regained_at.max(now.saturating_add(wait)));
    }

    /// Charges units to a key, whether or not they are left. The balance may become negative.
    pub(super) fn owe(&self, key: &K, units: u32) {
        let owed = nanos(self.one_per).saturating_mul(units.into());
        self.postpone(key, |now, regained_at| {
            let latest = now.saturating_add(self.max_debt_nanos());
            regained_at.saturating_add(owed).min(latest).max(regained_at)
        });
    }

    /// Replaces the time at which a key has its full quota again. `later` gets the present time and
    /// the former time, which is not before the present; both in nanoseconds since `began`.
    fn postpone(&self, key: &K, later: impl Fn(u64, u64) -> u64) {
        let now = self.limiter.clock().now().duration_since(self.began).as_u64();
        let Ok(()) = self.cells.measure_and_replace(key, |regained_at| {
            let regained_at = regained_at.map_or(now, |at| at.as_u64().max(now));
            Ok::<_, Infallible>(((), Nanos::new(later(now, regained_at))))
        });
    }

    fn max_debt_nanos(&self) -> u64 {
        let window = nanos(self.one_per).saturating_mul(self.policy.quota.into());
        window.saturating_mul(MOST_OWED_WINDOWS)
    }

    /// Deletes the state of keys that have their full quota.
    pub(super) fn forget_idle(&self) {
        self.limiter.retain_recent();
        if let Some(uncharged) = &self.uncharged {
            uncharged.retain(|key, _| self.cells.0.contains_key(key));
        }
    }

    /// Returns the rate limit status of a key without taking units.
    pub(super) fn status_of(&self, key: &K) -> RateLimitStatus {
        // Reading must not create an entry for an unknown key.
        let known = self.cells.0.contains_key(key);
        let regained_in = if known { self.regained_in(key) } else { 0 };
        let used = regained_in.div_ceil(nanos(self.one_per).max(1));
        let used = u32::try_from(used).unwrap_or(u32::MAX);
        self.status(self.policy.quota.saturating_sub(used))
    }

    fn status(&self, remaining: u32) -> RateLimitStatus {
        let used = u64::from(self.policy.quota.saturating_sub(remaining));
        let reset_s = (used * self.policy.window_s).div_ceil(u64::from(self.policy.quota).max(1));
        RateLimitStatus { policy: self.policy, remaining, reset_s }
    }

    /// Returns the refusal of a request; `wait` is the time until `units` are available.
    fn refusal(&self, wait: Duration, units: u32) -> RateLimited {
        let rest = self.one_per.saturating_mul(self.policy.quota.saturating_sub(units));
        let reset_s = whole_seconds(wait.saturating_add(rest));
        let status = RateLimitStatus { policy: self.policy, remaining: 0, reset_s };
        counter!(REFUSALS, "policy" => self.policy.name).increment(1);
        RateLimited { status, retry_after_s: whole_seconds(wait).max(1) }
    }
}

fn whole_seconds(time: Duration) -> u64 {
    time.as_secs() + u64::from(time.subsec_nanos() > 0)
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: NonZeroU32 = NonZeroU32::MIN;

    #[test]
    fn what_others_let_through_is_owed_and_told() {
        let gate: KeyedRateLimit<u8> = KeyedRateLimit::new("session", 10, 1, true);
        gate.owe(&1, 4);
        assert_eq!(gate.take(&1, ONE).unwrap().remaining, 5);
        gate.owe(&1, 8);
        let spent = gate.take(&1, ONE).unwrap_err();
        // Three units are owed and one is requested: four minutes. After 13 minutes the full quota
        // is available.
        assert!((239..=240).contains(&spent.retry_after_s), "{spent:?}");
        assert!((779..=780).contains(&spent.status.reset_s), "{spent:?}");
        assert_eq!(gate.take(&2, ONE).unwrap().remaining, 9);
        let mut charges = gate.take_uncharged();
        charges.sort_unstable();
        assert_eq!(charges, [(1, 60_000_000), (2, 60_000_000)]);
        assert!(gate.take_uncharged().is_empty());
    }

    #[test]
    fn the_state_of_the_fleet_is_applied_once() {
        let gate: KeyedRateLimit<u8> = KeyedRateLimit::new("session", 10, 1, true);
        gate.take(&1, ONE).unwrap();
        gate.update(&1, 240_000_000);
        gate.update(&1, 240_000_000);
        assert_eq!(gate.status_of(&1).remaining, 6);
        // An older state changes nothing.
        gate.update(&1, 60_000_000);
        assert_eq!(gate.status_of(&1).remaining, 6);
    }

    #[test]
    fn small_use_is_charged_when_it_adds_up() {
        let gate: KeyedRateLimit<u8> = KeyedRateLimit::new("session", 640, 640, true);
        for _ in 0..9 {
            gate.take(&1, ONE).unwrap();
        }
        assert!(gate.take_uncharged().is_empty());
        gate.take(&1, ONE).unwrap();
        assert_eq!(gate.take_uncharged().len(), 1);
    }

    #[test]
    fn to_tell_where_somebody_stands_takes_nothing() {
        let gate: KeyedRateLimit<u8> = KeyedRateLimit::new("session", 10, 1, true);
        assert_eq!((gate.status_of(&1).remaining, gate.cells.0.len()), (10, 0));
        let taken = gate.take(&1, NonZeroU32::new(4).unwrap()).unwrap();
        assert_eq!((gate.status_of(&1), gate.status_of(&1)), (taken, taken));
        gate.owe(&1, 100);
        assert_eq!(gate.status_of(&1).remaining, 0);
    }

    #[test]
    fn nobody_owes_for_longer_than_two_windows() {
        let gate: KeyedRateLimit<u8> = KeyedRateLimit::new("session", 10, 1, true);
        gate.owe(&1, u32::MAX);
        let spent = gate.take(&1, ONE).unwrap_err();
        assert!(spent.status.reset_s <= 2 * spent.status.policy.window_s, "{spent:?}");
    }

    #[test]
    fn where_there_is_no_fleet_nothing_is_kept_for_it() {
        let gate: KeyedRateLimit<u8> = KeyedRateLimit::new("session", 10, 1, false);
        gate.take(&1, ONE).unwrap();
        assert!(gate.take_uncharged().is_empty());
    }
}
