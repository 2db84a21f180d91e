//! A fleet whose nodes take long to load a version.

use super::*;

/// File with the machine code of a version, replaced by a pipe so that other nodes block when they
/// read it. Dropping this restores the file.
struct BlockedMachineCode(PathBuf);

impl BlockedMachineCode {
    fn new(fleet: &Fleet, version: &[u8]) -> Self {
        let file = shared_code(fleet, version);
        std::fs::rename(&file, file.with_extension("aside")).expect("machine code");
        let made = std::process::Command::new("mkfifo").arg(&file).status().expect("mkfifo");
        assert!(made.success());
        Self(file)
    }
}

impl Drop for BlockedMachineCode {
    fn drop(&mut self) {
        // Blocked readers read nothing and then try again.
        let _ = std::fs::rename(&self.0, self.0.with_extension("stuck"));
        let _ = std::fs::rename(self.0.with_extension("aside"), &self.0);
        let writer = rustix::fs::OFlags::WRONLY | rustix::fs::OFlags::NONBLOCK;
        let stuck = self.0.with_extension("stuck");
        let _ = rustix::fs::open(stuck, writer, rustix::fs::Mode::empty());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_that_take_long_to_load_a_canary_answer_meanwhile() {
    let Some((fleet, ada)) = Fleet::start_fresh(|_, builder| own_code(builder)).await else {
        return;
    };
    let (old, new) = (version(1), version(2));
    fleet.hosts[0].put_area("support", &old).await.expect(200);
    fleet.until_all_run(&old).await;
    fleet.hosts[0].put_area("support?activate=false", &new).await.expect(200);
    let stuck = BlockedMachineCode::new(&fleet, &new);
    let wish = json!({"digest": digest(&new), "share": 5});
    fleet.hosts[0].operate_with("/areas/support/canary", &wish).await.expect(200);
    let begun = Instant::now();
    while begun.elapsed() < 2 * BOUND {
        for node in 0..NODES {
            fleet.at(node, &ada).get(CASES).await.expect(200);
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    drop(stuck);
}

/// Waits until a node requests the lock for creating indexes.
async fn until_waits(connection: &mut PgConnection) {
    let query = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() \
                 AND query LIKE 'SELECT pg_try_advisory_lock%'";
    until("a node waits for the lock", async || {
        let waiting = sqlx::query_scalar::<_, i64>(query).fetch_one(&mut *connection).await;
        waiting.expect("a row") > 0
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn going_back_waits_for_no_index_that_another_area_needs() {
    let Some((fleet, ada)) = Fleet::start(&[]).await else { return };
    let (old, new) = (version(1), version(2));
    for version in [&old, &new] {
        fleet.hosts[0].put_area("support", version).await.expect(200);
        fleet.until_all_run(version).await;
    }
    // Holds the lock for creating indexes, like a node that creates a large one.
    let mut other = PgConnection::connect(&fleet.database).await.expect("a connection");
    other.execute("SELECT pg_advisory_lock(7022083192268351864)").await.expect("the lock");
    let put = fleet.hosts[0].operator(Method::PUT, "/areas/notes").body(area("examples/notes"));
    let putting = tokio::spawn(send(put));
    until_waits(&mut other).await;

    let back = json!({"reason": "it is wrong"});
    let back = fleet.hosts[0].operate_with("/areas/support/rollback", &back);
    tokio::time::timeout(PATIENCE, back).await.expect("an answer").expect(200);
    fleet.until_all_run(&old).await;
    fleet.at(1, &ada).get(CASES).await.expect(200);
    assert!(!putting.is_finished());
    other.close().await.expect("the lock is given up");
    putting.await.expect("no panic").expect(200);
}
