//! Shares rate limits between the nodes of a fleet: a distributed token bucket with asynchronous
//! reconciliation. No request reads the database for it.
//!
//! Each node has its own buckets and periodically reports the units it admitted. Each node
//! subtracts the units of other nodes from its buckets; the balance may become negative. Reports
//! contain totals, so reading a row twice changes nothing.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use uuid::Uuid;

use super::super::App;
use assurance_core::domain::time::Timestamp;
use assurance_store as store;
use assurance_store::rate_uses::{self, RateUse};

/// Overlap of two reads, in milliseconds. A row may commit this long after its timestamp, so recent
/// rows are read again.
const LATE_MS: i64 = 5_000;

/// Age at which an unchanged row is deleted, in milliseconds. A node remembers its last total twice
/// as long, so that the row is never charged twice.
const FORGET_AFTER_MS: i64 = 600_000;
const SWEEP_EVERY: Duration = Duration::from_secs(60);

/// Exchanges usage with other nodes until the future is dropped. Without the database, a node
/// enforces the limits alone.
pub async fn share_rates(app: App) {
    let every = Duration::from_millis(u64::from(app.config.rates.share_ms));
    let (mut peers, mut alone, mut swept_at) = (PeerUsage::new(), false, Instant::now());
    while app.limiter.is_shared() {
        tokio::time::sleep(every).await;
        let sweep = swept_at.elapsed() >= SWEEP_EVERY;
        let exchanged = exchange(&app, &mut peers, sweep).await;
        if sweep {
            swept_at = Instant::now();
        }
        if let (Err(error), false) = (&exchanged, alone) {
            tracing::warn!(
                %error,
                "cannot share rate limits with other nodes; this node enforces them alone"
            );
        }
        alone = exchanged.is_err();
    }
}

/// Reports this node's usage and reads that of other nodes. Usage that cannot be reported is
/// discarded.
async fn exchange(app: &App, peers: &mut PeerUsage, sweep: bool) -> Result<(), store::Error> {
    let (node, usage) = (app.node.id(), app.limiter.take_unreported());
    let exchanged = app.store.in_time(async {
        let mut connection = app.store.writer().await?;
        rate_uses::report(&mut connection, node, &usage).await?;
        let others = rate_uses::others(&mut connection, node, peers.since()).await?;
        if sweep {
            rate_uses::sweep(&mut connection, FORGET_AFTER_MS * 1_000).await?;
        }
        connection.release();
        Ok(others)
    });
    for (key, units) in peers.new_usage(exchanged.await?) {
        app.limiter.used_elsewhere(&key, units);
    }
    Ok(())
}

/// Usage that other nodes reported.
#[derive(Debug)]
struct PeerUsage {
    /// Total units and time of the last report, by node and key.
    uses: HashMap<(Uuid, String), (i64, Timestamp)>,
    latest: Timestamp,
    begun: bool,
}

impl PeerUsage {
    /// Starts without any reports.
    fn new() -> Self {
        Self { uses: HashMap::new(), latest: Timestamp(0), begun: false }
    }

    fn since(&self) -> Timestamp {
        self.latest.plus_ms(-LATE_MS)
    }

    /// Returns the units admitted since the last call, by key. The first call returns none, because
    /// the time at which those units were used is unknown.
    fn new_usage(&mut self, rows: Vec<RateUse>) -> Vec<(String, u64)> {
        let mut new_usage = Vec::new();
        for row in rows {
            self.latest = self.latest.max(row.told_at);
            let key = row.key.clone();
            let before = self.uses.insert((row.node, row.key), (row.units, row.told_at));
            // A lower total means that the row was deleted and created again.
            let known = before.map_or(0, |(units, _)| units);
            let since = if row.units < known { row.units } else { row.units - known };
            if self.begun && since > 0 {
                new_usage.push((key, since.unsigned_abs()));
            }
        }
        self.begun = true;
        let forget_before = self.latest.plus_ms(-2 * FORGET_AFTER_MS);
        self.uses.retain(|_, (_, told_at)| *told_at >= forget_before);
        new_usage
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(node: u128, units: i64, at: i64) -> RateUse {
        let node = Uuid::from_u128(node);
        RateUse { node, key: "session a".to_owned(), units, told_at: Timestamp(at) }
    }

    fn units(new_usage: Vec<(String, u64)>) -> Vec<u64> {
        new_usage.into_iter().map(|(_, units)| units).collect()
    }

    #[test]
    fn what_is_read_twice_is_charged_once() {
        let mut peers = PeerUsage::new();
        assert_eq!(units(peers.new_usage(vec![report(1, 100, 1)])), [] as [u64; 0]);
        assert_eq!(units(peers.new_usage(vec![report(1, 103, 2), report(2, 5, 2)])), [3, 5]);
        assert_eq!(units(peers.new_usage(vec![report(1, 103, 2), report(2, 6, 3)])), [1]);
        assert_eq!(units(peers.new_usage(vec![report(1, 2, 9)])), [2], "begun again");
    }
}
