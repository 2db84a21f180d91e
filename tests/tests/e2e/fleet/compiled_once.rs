//! A version is compiled by the node that receives it. Other nodes load the machine code from the
//! blob store, if it is unchanged.

use super::*;

/// Log line of a node that compiled a version.
const COMPILED: &str = "area compiled";

/// Three nodes without an area, each with its own machine code folder.
async fn fleet() -> Option<(Fleet, Client)> {
    Fleet::start_fresh(|_, builder| own_code(builder)).await
}

fn compilers(fleet: &Fleet) -> Vec<bool> {
    fleet.hosts.iter().map(|host| host.log().contains(COMPILED)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_node_that_takes_a_version_in_compiles_it_for_all() {
    let Some((fleet, ada)) = fleet().await else { return };
    let new = version(1);
    fleet.hosts[0].put_area("support", &new).await.expect(200);
    fleet.until_all_run(&new).await;
    assert_eq!(compilers(&fleet), [true, false, false]);
    for node in 0..NODES {
        fleet.at(node, &ada).get(CASES).await.expect(200);
    }
    assert!(shared_code(&fleet, &new).is_file());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn machine_code_that_somebody_else_wrote_is_not_run() {
    let Some((fleet, ada)) = fleet().await else { return };
    let new = version(1);
    fleet.hosts[0].put_area("support?activate=false", &new).await.expect(200);
    let file = shared_code(&fleet, &new);
    let mut altered = std::fs::read(&file).expect("machine code");
    let middle = altered.len() / 2;
    altered[middle] ^= 1;
    std::fs::write(&file, altered).expect("written");
    let wish = json!({"digest": digest(&new)});
    fleet.hosts[0].operate_with("/areas/support/activate", &wish).await.expect(200);
    fleet.until_all_run(&new).await;
    assert_eq!(compilers(&fleet), [true, true, true]);
    for node in 1..NODES {
        assert!(fleet.hosts[node].log().contains("another node's machine code is not used"));
        fleet.at(node, &ada).get(CASES).await.expect(200);
    }
}
