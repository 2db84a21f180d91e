//! A node that cannot load a version keeps the old one, unless that was withdrawn, and reports the
//! reason.

use super::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_deployed_at_one_node_answers_at_all_and_a_node_that_cannot_keeps_the_old() {
    let shape = |number, builder: Builder| match number {
        2 => own_code(builder).areas(&["support"]).set("blobs.dir", "elsewhere"),
        _ => builder.areas(&["support"]),
    };
    let Some((fleet, ada)) = Fleet::start_fresh(shape).await else { return };
    let old = fleet.hosts[2].live_digest("support").await.expect("it is live");
    let new = version(1);
    fleet.hosts[0].put_area("support", &new).await.expect(200);
    let begun = Instant::now();
    for node in 0..2 {
        fleet.hosts[node].until_live("support", &digest(&new)).await;
    }
    assert!(begun.elapsed() < MARGIN, "two nodes took {:?}", begun.elapsed());

    // The third node cannot read the component. It serves the old version, and its status has the
    // reason.
    fleet.at(2, &ada).get(CASES).await.expect(200);
    let failed = until("the third node reports that it failed", async || {
        let status = fleet.hosts[0].operate(Method::GET, "/areas/support").await.expect(200);
        let mut nodes = items(&status["nodes"]).iter();
        let failed = nodes.find(|node| node["state"] == "failed").cloned();
        failed.ok_or(status)
    })
    .await;
    assert_eq!(failed["digest"], old.as_str());
    assert!(failed["why"].to_string().contains("blobs.dir"), "{failed}");
}

/// A version that a node cannot load: its component and its machine code are missing. Dropping this
/// restores the shared files.
struct HiddenVersion([PathBuf; 2]);

impl HiddenVersion {
    fn from(fleet: &Fleet, node: usize, version: &[u8]) -> Self {
        let component = format!("data/blobs/components/{}.wasm", digest(version));
        let code = shared_code(fleet, version);
        let own = fleet.hosts[node].folder().join("compiled");
        std::fs::remove_file(own.join(code.file_name().expect("a name"))).expect("machine code");
        let files = [fleet.hosts[0].folder().join(component), code];
        for file in &files {
            std::fs::rename(file, file.with_extension("hidden")).expect("it is there");
        }
        Self(files)
    }
}

impl Drop for HiddenVersion {
    fn drop(&mut self) {
        for file in &self.0 {
            let _ = std::fs::rename(file.with_extension("hidden"), file);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_cannot_load_what_replaces_a_withdrawn_version_answers_with_neither() {
    // The third node keeps only the live version in memory.
    let shape = |number, builder: Builder| match number {
        2 => own_code(builder).set("areas.warm_versions", 1),
        _ => own_code(builder),
    };
    let Some((fleet, ada)) = Fleet::start_fresh(shape).await else { return };
    let (old, new) = (version(1), version(2));
    for version in [&old, &new] {
        fleet.hosts[0].put_area("support", version).await.expect(200);
        fleet.until_all_run(version).await;
    }
    let hidden = HiddenVersion::from(&fleet, 2, &old);
    let wish = json!({"reason": "it is wrong"});
    fleet.hosts[0].operate_with("/areas/support/rollback", &wish).await.expect(200);
    fleet.hosts[1].until_live("support", &digest(&old)).await;

    let third = fleet.at(2, &ada);
    let refused = third.until_status(CASES, 503).await;
    is_away(&refused);
    assert!(refused.text().contains("was removed from this node"), "{}", refused.text());
    fleet.at(1, &ada).get(CASES).await.expect(200);
    drop(hidden);
    third.until_status(CASES, 200).await;
    assert_eq!(fleet.hosts[2].live_digest("support").await, Some(digest(&old)));
}
