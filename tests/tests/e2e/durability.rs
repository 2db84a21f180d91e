//! `kill -9` at any time: acknowledged writes are stored, and retries have one effect.

use std::collections::BTreeMap;
use std::time::Duration;

use assurance_tests::client::try_send;
use assurance_tests::operators::items;
use assurance_tests::{Builder, Client, both_backends};
use reqwest::Method;
use serde_json::{Value, json};

const CASES: &str = "/v1/workspaces/{ws}/support/cases";
const HISTORY: &str = "/v1/workspaces/{ws}/support/case-history?limit=100";
const ROUNDS: u64 = 8;
const WRITERS: u64 = 4;

/// Results of one writer: the id for each acknowledged key, and the key without a response.
struct WriterResults {
    acknowledged: BTreeMap<String, String>,
    unanswered: Option<String>,
}

async fn write_until_cut(client: Client, round: u64, writer: u64) -> WriterResults {
    let mut learned = WriterResults { acknowledged: BTreeMap::new(), unanswered: None };
    for count in 0_u64.. {
        let key = format!("round-{round}-writer-{writer}-{count}");
        match open(&client, &key).await {
            Some(id) => drop(learned.acknowledged.insert(key, id)),
            None => {
                learned.unanswered = Some(key);
                break;
            }
        }
    }
    learned
}

/// Opens a case whose subject is its key; `None` without a response.
pub(crate) async fn open(client: &Client, key: &str) -> Option<String> {
    let body = json!({ "subject": key, "description": "d" });
    let request = client.request(Method::POST, CASES).header("idempotency-key", key);
    let answer = try_send(request.json(&body)).await.ok()?;
    Some(answer.expect(201)["id"].as_str().expect("an id").to_owned())
}

/// Returns all cases. `read` returns the page at a path.
pub(crate) async fn everything(read: impl AsyncFn(&str) -> Value) -> Vec<Value> {
    let mut found = Vec::new();
    let mut path = HISTORY.to_owned();
    loop {
        let page = read(&path).await;
        found.extend(items(&page["items"]).iter().cloned());
        match page["next_cursor"].as_str() {
            Some(cursor) => path = format!("{HISTORY}&cursor={cursor}"),
            None => return found,
        }
    }
}

/// Returns the id of each case by its subject, which is its idempotency key.
pub(crate) fn ids_by_key(cases: &[Value]) -> BTreeMap<String, String> {
    let text = |case: &Value, name: &str| case[name].as_str().expect("text").to_owned();
    cases.iter().map(|case| (text(case, "subject"), text(case, "id"))).collect()
}

/// Asserts that the stored cases are the acknowledged ones, which are ids by idempotency keys.
pub(crate) fn check_stored(cases: &[Value], acknowledged: &BTreeMap<String, String>) {
    let found = ids_by_key(cases);
    assert_eq!(found.len(), cases.len(), "a key had two effects");
    assert!(acknowledged.len() > 20, "{} writes", acknowledged.len());
    let lost: Vec<_> = acknowledged.keys().filter(|key| !found.contains_key(*key)).collect();
    assert!(lost.is_empty(), "acknowledged and lost: {lost:?}");
    assert_eq!(&found, acknowledged, "every key has one effect, and its id was returned");
}

both_backends! {
    async fn a_killed_host_has_every_acknowledged_write_once(backend) {
        let (mut host, mut ada) = Builder::new(backend).areas(&["support"]).start_with_owner().await;
        let mut acknowledged = BTreeMap::new();
        for round in 0..ROUNDS {
            let writers: Vec<_> = (0..WRITERS)
                .map(|writer| tokio::spawn(write_until_cut(ada.clone(), round, writer)))
                .collect();
            tokio::time::sleep(Duration::from_millis(150 + 37 * round)).await;
            host.kill9();
            let mut unanswered = Vec::new();
            for writer in writers {
                let learned = writer.await.expect("no panic");
                acknowledged.extend(learned.acknowledged);
                unanswered.extend(learned.unanswered);
            }
            host.start().await;
            ada = ada.at(&host);
            for key in unanswered {
                let id = open(&ada, &key).await.expect("an answer");
                assert_eq!(open(&ada, &key).await.as_ref(), Some(&id), "{key}");
                acknowledged.insert(key, id);
            }
        }
        let cases = everything(async |path| ada.get(path).await.expect(200)).await;
        check_stored(&cases, &acknowledged);
    }
}
