//! Shares rate limits between the nodes of a fleet. No request waits for it.
//!
//! Each node has its own buckets. Every `rates.share_ms` it charges the units that it admitted to
//! one common state of each key, in PostgreSQL or in Redis, and reads that state. So the work of a
//! node depends on the keys that clients use on it, not on the number of nodes.

use std::hash::Hash;
use std::time::{Duration, Instant};

use super::super::App;
use super::gate::KeyedRateLimit;
use assurance_core::config::RatesConfig;
use assurance_outside::rate_store::{RateStore, RateStoreError};
use assurance_store as store;
use assurance_store::rate_limits;

/// Interval at which a node deletes the common state of rate limit keys that have their full quota.
const FORGET_EVERY: Duration = Duration::from_secs(60);

/// Where the nodes of a fleet keep the common state of their rate limits.
#[derive(Debug)]
pub(super) enum SharedStateBackend {
    Database,
    Redis(Box<RateStore>),
}

impl SharedStateBackend {
    pub(super) fn new(rates: &RatesConfig, fleet: bool) -> Result<Option<Self>, RateStoreError> {
        match &rates.redis_url {
            Some(url) => Ok(Some(Self::Redis(Box::new(RateStore::new(url)?)))),
            None => Ok(fleet.then_some(Self::Database)),
        }
    }

    /// Charges the units that this node admitted for the keys of one rate limit to the fleet's
    /// common state, and applies that state to this node.
    async fn exchange<K: Hash + Eq + Clone + ToString>(
        &self,
        store: &store::Store,
        gate: &KeyedRateLimit<K>,
    ) -> anyhow::Result<()> {
        let mut keys = gate.take_uncharged();
        if keys.is_empty() {
            return Ok(());
        }
        // Nodes lock rows in the order of keys.
        keys.sort_by_cached_key(|(key, _)| key.to_string());
        let name = gate.policy.name;
        let charges: Vec<(String, i64)> =
            keys.iter().map(|(key, cost)| (format!("{name} {}", key.to_string()), *cost)).collect();
        let waits = self.charge(store, &charges, gate.max_debt_us()).await?;
        for ((key, _), wait_us) in keys.iter().zip(waits) {
            gate.update(key, wait_us);
        }
        Ok(())
    }

    async fn charge(
        &self,
        store: &store::Store,
        charges: &[(String, i64)],
        max_debt_us: i64,
    ) -> anyhow::Result<Vec<i64>> {
        let Self::Redis(redis) = self else {
            let waits = store.write(async |c| rate_limits::charge(c, charges, max_debt_us).await);
            return Ok(store.in_time(waits).await?);
        };
        Ok(redis.charge(charges, max_debt_us).await?)
    }

    async fn forget_regained(&self, store: &store::Store) -> anyhow::Result<()> {
        // Keys in Redis expire.
        let Self::Database = self else { return Ok(()) };
        Ok(store.in_time(store.write(async |c| rate_limits::forget_regained(c).await)).await?)
    }
}

/// Exchanges the use of rate limits with other nodes until the future is dropped. A node that
/// cannot reach the common state applies the limits alone, and logs it once.
pub async fn share_rates(app: App) {
    let Some(state) = &app.limiter.shared_state else { return };
    let every = Duration::from_millis(u64::from(app.config.rates.share_ms));
    let (mut alone, mut forgotten_at) = (false, Instant::now());
    loop {
        tokio::time::sleep(every).await;
        let mut exchanged = exchange(&app, state).await;
        if exchanged.is_ok() && forgotten_at.elapsed() >= FORGET_EVERY {
            forgotten_at = Instant::now();
            exchanged = state.forget_regained(&app.store).await;
        }
        if let (Err(error), false) = (&exchanged, alone) {
            tracing::warn!(
                %error,
                "cannot share rate limits with other nodes; this node applies them alone"
            );
        }
        alone = exchanged.is_err();
    }
}

/// Charges the units that this node's rate limits admitted to the fleet's common state. Units that
/// cannot be charged are discarded.
async fn exchange(app: &App, state: &SharedStateBackend) -> anyhow::Result<()> {
    let Some(gates) = &app.limiter.gates else { return Ok(()) };
    state.exchange(&app.store, &gates.session).await?;
    state.exchange(&app.store, &gates.token).await?;
    state.exchange(&app.store, &gates.workspace).await?;
    state.exchange(&app.store, &gates.sign_in).await
}
