//! A checker of isolation like Elle's for lists (Kingsbury and Alvaro, "Elle:
//! Inferring Isolation Anomalies from Experimental Observations", VLDB 2020).
//!
//! Concurrent calls read lists and append unique values to them. A list shows the
//! order of all its appends, so each read shows which calls came before and after
//! it. If these dependencies have a cycle, no order of the calls explains what
//! they read.

use std::collections::{BTreeMap, BTreeSet};

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng as _};

use super::*;
use assurance_store::testing::on_both;

const LISTS: u32 = 5;
const CLIENTS: u32 = 8;
const CALLS_PER_CLIENT: u32 = 60;

/// What a committed call read and appended: the list, the values that it read,
/// and the value that it appended, if any.
type Call = Vec<(String, Vec<u64>, Option<u64>)>;

fn values(document: &Document) -> Vec<u64> {
    let body: BTreeMap<String, Vec<u64>> = serde_json::from_str(&document.body).unwrap();
    body["values"].clone()
}

/// Reads some lists and appends to some of them. Returns `None` if the call lost
/// a race; its values must then appear nowhere.
async fn call(area: &Area, number: u64, random: &mut ChaCha8Rng) -> Option<Call> {
    // Half of the calls are those that commit together on SQLite.
    let isolation_profile = number.is_multiple_of(2).then(route).flatten();
    let mut unit = area.with(|spec| spec.isolation_profile = isolation_profile);
    let (mut call, mut writes) = (Call::new(), Vec::new());
    let lists: BTreeSet<u32> =
        (0..=random.next_u32() % 3).map(|_| random.next_u32() % LISTS).collect();
    for (at, list) in (0_u64..).zip(lists) {
        let list = format!("l{list}");
        let mut found = values(&unit.get("items", &list).await.ok()??);
        let read = found.clone();
        let appended = random.next_u32().is_multiple_of(2).then_some(number * 10 + at);
        if let Some(value) = appended {
            found.push(value);
            writes.push(replace(&list, None, &format!(r#"{{"values":{found:?}}}"#)));
        }
        call.push((list, read, appended));
    }
    if !writes.is_empty() {
        unit.write("items", writes).await.ok()?;
    }
    unit.commit(CommitAdditions::default()).await.ok()?;
    Some(call)
}

async fn client(area: Area, client: u32) -> Vec<Call> {
    let mut random = ChaCha8Rng::seed_from_u64(u64::from(client));
    let mut committed = Vec::new();
    for number in 0..CALLS_PER_CLIENT {
        let number = u64::from(client * CALLS_PER_CLIENT + number + 1);
        committed.extend(call(&area, number, &mut random).await);
    }
    committed
}

/// Returns the calls that must come after each call, by index. `lists` are the
/// values at the end.
fn dependencies(calls: &[Call], lists: &BTreeMap<String, Vec<u64>>) -> Vec<BTreeSet<usize>> {
    let mut writers = BTreeMap::new();
    for (at, call) in calls.iter().enumerate() {
        for (list, read, appended) in call {
            let of_list = &lists[list];
            assert!(of_list.starts_with(read), "{list}: {read:?} is no state of {of_list:?}");
            writers.extend(appended.map(|value| (value, at)));
        }
    }
    let all: BTreeSet<u64> = lists.values().flatten().copied().collect();
    assert_eq!(all.len(), lists.values().map(Vec::len).sum::<usize>(), "a value is there twice");
    assert_eq!(all, writers.keys().copied().collect(), "values of committed calls, and no others");
    let mut after = vec![BTreeSet::new(); calls.len()];
    let mut add = |from: usize, to: usize| from == to || after[from].insert(to);
    for values in lists.values() {
        values.windows(2).for_each(|two| _ = add(writers[&two[0]], writers[&two[1]]));
    }
    for (at, call) in calls.iter().enumerate() {
        for (list, read, _) in call {
            if let Some(last) = read.last() {
                add(writers[last], at);
            }
            if let Some(next) = lists[list].get(read.len()) {
                add(at, writers[next]);
            }
        }
    }
    after
}

/// Returns the calls that are in a cycle or behind one.
fn unordered(after: &[BTreeSet<usize>]) -> Vec<usize> {
    let mut before = vec![0; after.len()];
    after.iter().flatten().for_each(|to| before[*to] += 1);
    let mut free: Vec<usize> = (0..after.len()).filter(|at| before[*at] == 0).collect();
    while let Some(at) = free.pop() {
        for to in &after[at] {
            before[*to] -= 1;
            if before[*to] == 0 {
                free.push(*to);
            }
        }
    }
    (0..after.len()).filter(|at| before[*at] > 0).collect()
}

on_both! {
    async fn an_order_of_all_calls_explains_what_they_read(store: &Store) {
        let area = Area::installed(store).await;
        let lists = (0..LISTS).map(|list| create(&format!("l{list}"), r#"{"values":[]}"#));
        area.put(lists.collect()).await.unwrap();
        let clients = (0..CLIENTS).map(|number| tokio::spawn(client(area.clone(), number)));
        let ended = futures::future::join_all(clients).await;
        let calls: Vec<Call> = ended.into_iter().flat_map(Result::unwrap).collect();
        assert!(calls.len() > 50, "{} calls", calls.len());
        let mut last = BTreeMap::new();
        for list in (0..LISTS).map(|list| format!("l{list}")) {
            last.insert(list.clone(), values(&area.get(&list).await.unwrap()));
        }
        let unordered = unordered(&dependencies(&calls, &last));
        let shown: Vec<_> = unordered.iter().take(10).map(|at| &calls[*at]).collect();
        assert!(unordered.is_empty(), "a cycle: {shown:?}");
    }
}

#[test]
fn the_checker_finds_write_skew_and_lost_reads() {
    let one = vec![("x".to_owned(), vec![], Some(1)), ("y".to_owned(), vec![], None)];
    let other = vec![("x".to_owned(), vec![], None), ("y".to_owned(), vec![], Some(2))];
    let lists: BTreeMap<_, _> = [("x".to_owned(), vec![1]), ("y".to_owned(), vec![2])].into();
    assert_eq!(unordered(&dependencies(&[one.clone(), other.clone()], &lists)), [0, 1]);
    let later = vec![("x".to_owned(), vec![1], None), ("y".to_owned(), vec![], Some(2))];
    assert_eq!(unordered(&dependencies(&[one, later], &lists)), [] as [usize; 0]);
}
