//! Rates across a fleet, without a look at the database by any request: a
//! distributed token bucket with asynchronous reconciliation.
//!
//! Each node has buckets of its own, tells on an interval what it let through,
//! and takes what the others let through out of its own buckets, into debt
//! where too little is left. Each counts what a node ever told of a key, so a
//! row that is read twice changes nothing.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use uuid::Uuid;

use super::super::App;
use crate::domain::time::Timestamp;
use crate::store;
use crate::store::rate_uses::{self, RateUse};

/// Rows that are committed so much later than they are dated are still seen.
const LATE_MS: i64 = 5_000;

/// A row of which nothing was told for so long is forgotten; what was heard of
/// it is remembered twice as long, so that it is never charged again.
const FORGET_AFTER_MS: i64 = 600_000;
const SWEEP_EVERY: Duration = Duration::from_secs(60);

/// Tells and hears until it is dropped. A node that is cut off limits alone.
pub async fn share_rates(app: App) {
    let every = Duration::from_millis(u64::from(app.config.rates.share_ms));
    let (mut heard, mut alone, mut swept_at) = (Heard::new(), false, Instant::now());
    while app.limiter.is_shared() {
        tokio::time::sleep(every).await;
        let sweep = swept_at.elapsed() >= SWEEP_EVERY;
        let exchanged = exchange(&app, &mut heard, sweep).await;
        if sweep {
            swept_at = Instant::now();
        }
        if let (Err(error), false) = (&exchanged, alone) {
            tracing::warn!(%error, "rates are limited by this node alone until it can tell others");
        }
        alone = exchanged.is_err();
    }
}

/// What could not be told is not told later: by then it is long past.
async fn exchange(app: &App, heard: &mut Heard, sweep: bool) -> Result<(), store::Error> {
    let (node, told) = (app.node.id(), app.limiter.untold());
    let exchanged = app.store.in_time(async {
        let mut connection = app.store.writer().await?;
        rate_uses::tell(&mut connection, node, &told).await?;
        let others = rate_uses::others(&mut connection, node, heard.since()).await?;
        if sweep {
            rate_uses::sweep(&mut connection, FORGET_AFTER_MS * 1_000).await?;
        }
        connection.release();
        Ok(others)
    });
    for (key, units) in heard.news(exchanged.await?) {
        app.limiter.used_elsewhere(&key, units);
    }
    Ok(())
}

/// What was heard of other nodes.
#[derive(Debug)]
struct Heard {
    /// By node and key: units, and when they were told.
    uses: HashMap<(Uuid, String), (i64, Timestamp)>,
    latest: Timestamp,
    begun: bool,
}

impl Heard {
    /// Nothing yet.
    fn new() -> Self {
        Self { uses: HashMap::new(), latest: Timestamp(0), begun: false }
    }

    fn since(&self) -> Timestamp {
        self.latest.plus_ms(-LATE_MS)
    }

    /// What was let through since it was last heard, by key. What was before
    /// this node began is not charged: how long before, nobody knows.
    fn news(&mut self, rows: Vec<RateUse>) -> Vec<(String, u64)> {
        let mut news = Vec::new();
        for row in rows {
            self.latest = self.latest.max(row.told_at);
            let key = row.key.clone();
            let before = self.uses.insert((row.node, row.key), (row.units, row.told_at));
            // Less than before: the row was swept, and begun again.
            let known = before.map_or(0, |(units, _)| units);
            let since = if row.units < known { row.units } else { row.units - known };
            if self.begun && since > 0 {
                news.push((key, since.unsigned_abs()));
            }
        }
        self.begun = true;
        let forget_before = self.latest.plus_ms(-2 * FORGET_AFTER_MS);
        self.uses.retain(|_, (_, told_at)| *told_at >= forget_before);
        news
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(node: u128, units: i64, at: i64) -> RateUse {
        let node = Uuid::from_u128(node);
        RateUse { node, key: "session a".to_owned(), units, told_at: Timestamp(at) }
    }

    fn units(news: Vec<(String, u64)>) -> Vec<u64> {
        news.into_iter().map(|(_, units)| units).collect()
    }

    #[test]
    fn what_is_read_twice_is_charged_once() {
        let mut heard = Heard::new();
        assert_eq!(units(heard.news(vec![told(1, 100, 1)])), [] as [u64; 0]);
        assert_eq!(units(heard.news(vec![told(1, 103, 2), told(2, 5, 2)])), [3, 5]);
        assert_eq!(units(heard.news(vec![told(1, 103, 2), told(2, 6, 3)])), [1]);
        assert_eq!(units(heard.news(vec![told(1, 2, 9)])), [2], "begun again");
    }
}
