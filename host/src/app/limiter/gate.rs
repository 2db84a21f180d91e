//! One rule, and where everybody stands under it: the generic cell rate
//! algorithm. State is sharded by key; nothing here is a lock that all
//! requests share.

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

use super::{Policy, Spent, Standing};

/// What is owed is never more than everything, twice: nobody waits longer than
/// that for what other nodes let through.
const MOST_OWED_WINDOWS: u64 = 2;

type Instant = <DefaultClock as governor::clock::Clock>::Instant;

#[derive(Debug)]
pub(super) struct Gate<K: Hash + Eq + Clone> {
    limiter: RateLimiter<K, Cells<K>, DefaultClock, StateInformationMiddleware>,
    cells: Cells<K>,
    /// What the cells count time from.
    began: Instant,
    one_per: Duration,
    policy: Policy,
    /// Units let through since the fleet was last told, where there is one.
    untold: Option<DashMap<K, i64>>,
}

/// When each key will have regained everything. Shared with the limiter, which
/// can test and take, but not let anybody owe.
#[derive(Debug)]
struct Cells<K: Hash + Eq + Clone>(Arc<DashMapStateStore<K>>);

impl<K: Hash + Eq + Clone> StateStore for Cells<K> {
    type Key = K;

    fn measure_and_replace<T, F, E>(&self, key: &K, f: F) -> Result<T, E>
    where
        F: Fn(Option<Nanos>) -> Result<(T, Nanos), E>,
    {
        self.0.measure_and_replace(key, f)
    }
}

impl<K: Hash + Eq + Clone> ShrinkableKeyedStateStore<K> for Cells<K> {
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

impl<K: Hash + Eq + Clone> Gate<K> {
    pub(super) fn new(name: &'static str, burst: u32, per_minute: u32, shared: bool) -> Self {
        let (burst, per_minute) = (super::at_least_one(burst), super::at_least_one(per_minute));
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
        let (clock, cells) = (DefaultClock::default(), Arc::<DashMapStateStore<K>>::default());
        Self {
            began: clock.now(),
            limiter: RateLimiter::new(quota, Cells(Arc::clone(&cells)), clock),
            cells: Cells(cells),
            one_per: quota.replenish_interval(),
            policy,
            untold: shared.then(DashMap::new),
        }
    }

    /// A request that weighs more than everything takes everything.
    pub(super) fn take(&self, key: &K, units: NonZeroU32) -> Result<Standing, Spent> {
        let units = units.min(super::at_least_one(self.policy.quota));
        match self.limiter.check_key_n(key, units) {
            Ok(Ok(state)) => {
                if let Some(untold) = &self.untold {
                    *untold.entry(key.clone()).or_default() += i64::from(units.get());
                }
                Ok(self.standing(state.remaining_burst_capacity()))
            }
            Ok(Err(not_until)) => {
                let wait = not_until.wait_time_from(self.limiter.clock().now());
                Err(self.spent(wait, units.get()))
            }
            Err(_too_heavy) => {
                Err(self.spent(Duration::from_secs(self.policy.window_s), self.policy.quota))
            }
        }
    }

    /// Whether a unit is left; takes none.
    pub(super) fn look(&self, key: &K) -> Result<(), Spent> {
        let nothing_new = |at| Err::<(Infallible, Nanos), Option<Nanos>>(at);
        let regained_at = match self.cells.measure_and_replace(key, nothing_new) {
            Ok(never) => match never {},
            Err(at) => at.map_or(0, Nanos::as_u64),
        };
        let now = self.limiter.clock().now().duration_since(self.began).as_u64();
        let rest = nanos(self.one_per).saturating_mul(u64::from(self.policy.quota - 1));
        match regained_at.saturating_sub(now).saturating_sub(rest) {
            0 => Ok(()),
            wait => Err(self.spent(Duration::from_nanos(wait), 1)),
        }
    }

    /// What was let through since this was last asked.
    pub(super) fn untold(&self) -> Vec<(K, i64)> {
        let mut told = Vec::new();
        if let Some(untold) = &self.untold {
            untold.retain(|key, units| {
                told.push((key.clone(), *units));
                false
            });
        }
        told
    }

    /// Others let through so much: it is owed where it is not left.
    pub(super) fn owe(&self, key: &K, units: u64) {
        let one_per = nanos(self.one_per);
        let now = self.limiter.clock().now().duration_since(self.began).as_u64();
        let everything = one_per.saturating_mul(self.policy.quota.into());
        let latest = now.saturating_add(everything.saturating_mul(MOST_OWED_WINDOWS));
        let owed = one_per.saturating_mul(units);
        let owing = self.cells.measure_and_replace(key, |regained_at| {
            let regained_at = regained_at.map_or(now, |at| at.as_u64().max(now));
            let later = regained_at.saturating_add(owed).min(latest).max(regained_at);
            Ok::<_, Infallible>(((), Nanos::new(later)))
        });
        match owing {
            Ok(()) => {}
            Err(never) => match never {},
        }
    }

    /// Forgets whoever has regained everything.
    pub(super) fn forget_idle(&self) {
        self.limiter.retain_recent();
    }

    /// Where somebody stands; takes nothing.
    pub(super) fn standing_of(&self, key: &K) -> Standing {
        let nothing_new = |at| Err::<(Infallible, Nanos), Option<Nanos>>(at);
        // Whoever is not known here is not made known by that.
        let known = self.cells.0.contains_key(key);
        let regained_at = match known.then(|| self.cells.measure_and_replace(key, nothing_new)) {
            Some(Ok(never)) => match never {},
            Some(Err(at)) => at.map_or(0, Nanos::as_u64),
            None => 0,
        };
        let now = self.limiter.clock().now().duration_since(self.began).as_u64();
        let used = regained_at.saturating_sub(now).div_ceil(nanos(self.one_per).max(1));
        let used = u32::try_from(used).unwrap_or(u32::MAX);
        self.standing(self.policy.quota.saturating_sub(used))
    }

    fn standing(&self, remaining: u32) -> Standing {
        let used = u64::from(self.policy.quota.saturating_sub(remaining));
        let reset_s = (used * self.policy.window_s).div_ceil(u64::from(self.policy.quota).max(1));
        Standing { policy: self.policy, remaining, reset_s }
    }

    /// After the wait so many units are left; the others come after them.
    fn spent(&self, wait: Duration, units: u32) -> Spent {
        let rest = self.one_per.saturating_mul(self.policy.quota.saturating_sub(units));
        let reset_s = whole_seconds(wait.saturating_add(rest));
        let standing = Standing { policy: self.policy, remaining: 0, reset_s };
        Spent { standing, retry_after_s: whole_seconds(wait).max(1) }
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
        let gate: Gate<u8> = Gate::new("session", 10, 1, true);
        gate.owe(&1, 4);
        assert_eq!(gate.take(&1, ONE).unwrap().remaining, 5);
        gate.owe(&1, 8);
        let spent = gate.take(&1, ONE).unwrap_err();
        // Three are owed, and one is wanted: four minutes; in 13, all are there.
        assert!((239..=240).contains(&spent.retry_after_s), "{spent:?}");
        assert!((779..=780).contains(&spent.standing.reset_s), "{spent:?}");
        assert_eq!(gate.take(&2, ONE).unwrap().remaining, 9);
        let mut told = gate.untold();
        told.sort_unstable();
        assert_eq!(told, [(1, 1), (2, 1)]);
        assert!(gate.untold().is_empty());
    }

    #[test]
    fn to_tell_where_somebody_stands_takes_nothing() {
        let gate: Gate<u8> = Gate::new("session", 10, 1, true);
        assert_eq!((gate.standing_of(&1).remaining, gate.cells.0.len()), (10, 0));
        let taken = gate.take(&1, NonZeroU32::new(4).unwrap()).unwrap();
        assert_eq!((gate.standing_of(&1), gate.standing_of(&1)), (taken, taken));
        gate.owe(&1, 100);
        assert_eq!(gate.standing_of(&1).remaining, 0);
    }

    #[test]
    fn nobody_owes_for_longer_than_two_windows() {
        let gate: Gate<u8> = Gate::new("session", 10, 1, true);
        gate.owe(&1, u64::MAX);
        let spent = gate.take(&1, ONE).unwrap_err();
        assert!(spent.standing.reset_s <= 2 * spent.standing.policy.window_s, "{spent:?}");
    }

    #[test]
    fn where_there_is_no_fleet_nothing_is_kept_for_it() {
        let gate: Gate<u8> = Gate::new("session", 10, 1, false);
        gate.take(&1, ONE).unwrap();
        assert!(gate.untold().is_empty());
    }
}
