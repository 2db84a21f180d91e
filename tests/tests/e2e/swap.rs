//! Swaps an area while the host serves.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use assurance_tests::components::{area, version};
use assurance_tests::host::memory_kib;
use assurance_tests::{Backend, Builder, Client, TestHost, both_backends, until, within};
use reqwest::Method;
use tokio::task::JoinHandle;

/// Minimum number of swaps under load.
const SWAPS: usize = 60;
/// Minimum number of requests that are answered during the swaps.
const REQUESTS: u64 = 200;

const CASES: &str = "/v1/workspaces/{ws}/support/cases";

async fn until_digest_changes(host: &TestHost, name: &str, old: Option<&String>) -> String {
    until(format!("{name} is swapped"), async || {
        host.live_digest(name).await.filter(|digest| Some(digest) != old)
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_put_brings_an_area_and_swaps_it() {
    let (host, ada) = Builder::new(Backend::Sqlite).start_with_owner().await;
    ada.get(CASES).await.problem(404, "not_found");
    assert_eq!(host.put_area("support", &area("support")).await.status, 200);
    ada.get(CASES).await.expect(200);
    let first = until_digest_changes(&host, "support", None).await;
    assert_eq!(host.put_area("support", &version(2)).await.status, 200);
    assert_ne!(host.live_digest("support").await, Some(first));
    ada.get(CASES).await.expect(200);
    let misnamed = host.put_area("evidence", &area("support")).await;
    assert_eq!(misnamed.status, 422, "{}", misnamed.text());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_operators_may_swap() {
    let (host, ada) = Builder::new(Backend::Sqlite).start_with_owner().await;
    let with_cookie = Client { base: host.operators.clone(), ..ada.clone() };
    for client in [Client::nobody(&host.operators), with_cookie] {
        let request = client.request(Method::PUT, "/areas/support").body(area("support"));
        assert_eq!(assurance_tests::client::send(request).await.status, 401);
    }
    // The API's listener does not have these paths.
    ada.get("/areas").await.problem(404, "not_found");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watched_folder_swaps_a_changed_file() {
    let builder = Builder::new(Backend::Sqlite).areas(&["support"]).set("areas.watch", true);
    let (host, ada) = builder.start_with_owner().await;
    let first = until_digest_changes(&host, "support", None).await;
    let place = host.areas().join("support.wasm");
    std::fs::write(&place, version(3)).expect("written");
    let second = until_digest_changes(&host, "support", Some(&first)).await;
    ada.get(CASES).await.expect(200);

    // A truncated file changes nothing; the complete file is installed.
    let whole = area("support");
    std::fs::write(&place, &whole[..whole.len() / 2]).expect("written");
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(host.live_digest("support").await.as_ref(), Some(&second));
    std::fs::write(&place, whole).expect("written");
    assert_eq!(until_digest_changes(&host, "support", Some(&second)).await, first);
}

both_backends! {
    async fn swaps_under_load_lose_no_request(backend) {
        let (mut host, ada) = Builder::new(backend).areas(&["support"]).start_with_owner().await;
        let versions = [version(1), version(2)];
        for version in &versions {
            assert_eq!(host.put_area("support", version).await.status, 200);
        }
        let (stop, served) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let clients: Vec<_> = (0..4)
            .map(|number| tokio::spawn(load(number, ada.clone(), Arc::clone(&stop), Arc::clone(&served))))
            .collect();
        let (mut swaps, mut before) = (0, 0);
        let is_enough = |swaps: usize| swaps >= SWAPS && served.load(Ordering::Relaxed) >= REQUESTS;
        // A client that was answered badly has ended.
        while !is_enough(swaps) && !clients.iter().any(JoinHandle::is_finished) {
            assert_eq!(host.put_area("support", &versions[swaps % 2]).await.status, 200);
            swaps += 1;
            if swaps == 20 {
                before = resident_kib(&host);
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        stop.store(true, Ordering::Relaxed);
        for client in clients {
            client.await.expect("every request was answered well");
        }
        let after = resident_kib(&host);
        assert!(after < before + 64 * 1024, "memory went from {before} to {after} KiB");
        assert!(host.is_alive());
    }
}

async fn load(number: u32, client: Client, stop: Arc<AtomicBool>, served: Arc<AtomicU64>) {
    let mut count = 0_u32;
    while !stop.load(Ordering::Relaxed) {
        client.open_case(&format!("load-{number}-{count:06}")).await.expect(201);
        client.get(&format!("{CASES}-none")).await.problem(404, "not_found");
        served.fetch_add(2, Ordering::Relaxed);
        count += 1;
    }
}

fn resident_kib(host: &TestHost) -> u64 {
    memory_kib(host.pid(), "VmRSS").expect("a running host")
}

/// Memory for compiling is freed: within seconds, a host that compiled its areas uses about as much
/// memory as a host that loaded cached machine code.
#[tokio::test]
async fn compiling_leaves_little_memory_behind() {
    let areas = ["dependencies", "control-room", "catalog", "schedules", "evidence", "uploads"];
    let cache = tempfile::tempdir().expect("a folder");
    let folder = cache.path().to_string_lossy().into_owned();
    let builder =
        || Builder::new(Backend::Sqlite).areas(&areas).set("runtime.cache_dir", folder.clone());
    let compiled = builder().start().await;
    let found = builder().start().await;
    let anonymous = |host: &TestHost| memory_kib(host.pid(), "RssAnon").expect("a running host");
    within(Duration::from_secs(60), "the memory for compiling is freed", async || {
        // Both hosts are at rest then.
        tokio::time::sleep(Duration::from_secs(1)).await;
        let (compiled, found) = (anonymous(&compiled), anonymous(&found));
        let freed = compiled < found + 75_000;
        if freed { Ok(()) } else { Err(format!("{compiled} KiB, and {found} KiB without")) }
    })
    .await;
}
