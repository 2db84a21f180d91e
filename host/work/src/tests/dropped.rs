//! Drops units of work at every await point, as a disconnected client or a
//! deadline does. Afterwards no connection is inside a transaction, and the
//! unit's writes are stored completely or not at all.

use std::task::Poll;
use std::time::Duration;

use super::*;
use assurance_store::testing::on_both;

/// More await points than any of the scenarios has.
const MOST_POLLS: u32 = 200;

/// Polls a future at most `times` times, then drops it.
async fn polled<F: Future>(times: u32, future: F) -> Option<F::Output> {
    let mut future = Box::pin(future);
    let mut left = times;
    std::future::poll_fn(move |context| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        future.as_mut().poll(context).map(Some)
    })
    .await
}

/// Operations of a unit; the ids of its documents begin with the given number.
#[derive(Clone, Copy, Debug)]
enum Scenario {
    /// Writes only: one statement on PostgreSQL.
    Writes,
    /// Queries, writes, queries its own writes, and writes again.
    Flushes,
    /// Violates a unique index while the transaction, with the gate, continues.
    Conflicts,
    /// Holds the workspace's gate.
    Gated,
}

const SCENARIOS: [Scenario; 4] =
    [Scenario::Writes, Scenario::Flushes, Scenario::Conflicts, Scenario::Gated];

async fn act(area: &Area, scenario: Scenario, n: u32) -> Result<(), Error> {
    let (one, two) = (format!("{n}-one"), format!("{n}-two"));
    let body = format!(r#"{{"name":"{one}"}}"#);
    let mut unit =
        area.with(|spec| spec.locked = matches!(scenario, Scenario::Gated | Scenario::Conflicts));
    if !matches!(scenario, Scenario::Writes) {
        aborted(unit.count("items", &[], None).await)?;
    }
    aborted(unit.write("items", vec![create(&one, &body)]).await)?;
    if matches!(scenario, Scenario::Flushes | Scenario::Conflicts) {
        aborted(unit.count("items", &[], None).await)?;
    }
    if matches!(scenario, Scenario::Conflicts) {
        let taken = vec![create(&format!("{n}-taken"), r#"{"email":"taken"}"#)];
        // Refused at once, or at the next query.
        let _ = unit.write("items", taken).await;
        let _ = unit.count("items", &[], None).await;
    }
    aborted(unit.write("items", vec![create(&two, &body)]).await)?;
    unit.commit(CommitAdditions { reply: Some(area.reply(&format!("key-{n}"))), jobs: Vec::new() })
        .await
}

/// Asserts that no connection is inside a transaction: writes on one are
/// visible to others.
async fn assert_sound(area: &Area, n: u32) {
    for round in 0..4 {
        let id = format!("after-{n}-{round}");
        put_in_the_end(area, create(&id, "{}")).await;
        assert!(area.get(&id).await.is_some(), "{id}");
        let mut tx =
            area.store.begin(assurance_store::TransactionAccess::WriteLocked).await.unwrap();
        tx.savepoint().await.unwrap();
        tx.roll_back_to_savepoint().await.unwrap();
        tx.commit().await.unwrap();
        area.store.writer().await.unwrap().release();
    }
}

on_both! {
    async fn at_any_point_leaves_all_or_nothing(store: &Store) {
        for scenario in SCENARIOS {
            let area = Area::installed(store).await;
            area.put(vec![create("taken", r#"{"email":"taken"}"#)]).await.unwrap();
            for n in 0..MOST_POLLS {
                let ended = polled(n, act(&area, scenario, n)).await;
                let acknowledged = matches!(ended, Some(Ok(())));
                let (one, two) = (format!("{n}-one"), format!("{n}-two"));
                let found = wait_for_end(&area, &one).await;
                assert_eq!(found, area.get(&two).await.is_some(), "{scenario:?} {n}: half");
                assert!(found || !acknowledged, "{scenario:?} {n}: acknowledged and lost");
                assert_sound(&area, n).await;
                assert_eq!(found, area.get(&one).await.is_some(), "{scenario:?} {n}: changed later");
                if acknowledged {
                    break;
                }
                assert!(n + 1 < MOST_POLLS, "{scenario:?} never ended");
            }
        }
    }
}

/// Returns whether a document exists once a pending rollback has ended.
async fn wait_for_end(area: &Area, id: &str) -> bool {
    tokio::time::sleep(Duration::from_millis(5)).await;
    area.get(id).await.is_some()
}
