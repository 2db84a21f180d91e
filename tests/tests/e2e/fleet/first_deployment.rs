//! The first version of an area, which no node has run before.

use super::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_first_deployment_is_complete_only_when_every_node_answers_with_it() {
    let Some((fleet, ada)) = Fleet::start_fresh(|_, builder| builder).await else { return };
    let file = fleet.hosts[1].write("support.wasm", &version(1));
    let deployed = fleet.hosts[1].cli(&["area", "deploy", file, "--area", "support", "--activate"]);
    for node in 0..NODES {
        fleet.at(node, &ada).get(CASES).await.expect(200);
    }
    assert_eq!(deployed["nodes"], NODES, "{deployed}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_cannot_load_a_first_version_answers_503_and_is_unready() {
    let shape = |number, builder: Builder| match number {
        2 => own_code(builder).set("blobs.dir", "elsewhere"),
        _ => builder,
    };
    let Some((fleet, ada)) = Fleet::start_fresh(shape).await else { return };
    fleet.hosts[0].put_area("support", &version(1)).await.expect(200);
    let third = fleet.at(2, &ada);
    // 404 only until the node has read of the new area.
    is_away(&third.until_status(CASES, 503).await);
    let ready = async |node: usize| fleet.hosts[node].operate(Method::GET, "/health/ready").await;
    until("the third node is unready", async || ready(2).await.status == 503).await;
    let report = ready(2).await.expect(503);
    assert!(report["checks"]["areas"].to_string().contains("blobs.dir"), "{report}");
    ready(1).await.expect(200);

    // The area's row in the database cannot be read, so any path may belong to the area.
    fleet.administrate("UPDATE area_versions SET manifest = '{}'").await;
    let mut alone = own_code(Builder::new(Backend::Postgres))
        .set("database.url", fleet.database.clone())
        .set("blobs.dir", "nowhere")
        .start()
        .await;
    let nobody = ada.at(&alone);
    is_away(&nobody.get(CASES).await);
    is_away(&nobody.get("/v1/nothing/here").await);
    alone.terminate().await;
}
