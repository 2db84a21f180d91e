//! The nodes under load, on one database, and the workspaces in it.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::RwLock;
use rand::RngExt as _;
use rand::rngs::StdRng;

use super::tenant::Tenant;
use crate::host::AREAS;
use crate::{Backend, Builder, Client, TestHost};

/// A request that takes longer counts as one without a response.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Where the nodes' APIs are; a node that is down has none.
#[derive(Clone, Debug)]
pub struct Addresses(Arc<RwLock<Vec<Option<String>>>>);

/// One to three nodes.
#[derive(Debug)]
pub struct Cluster {
    /// The nodes; the first one's database is everybody's.
    pub nodes: Vec<TestHost>,
    /// Where clients find them.
    pub addresses: Addresses,
    /// The database.
    pub backend: Backend,
    /// Where PostgreSQL has the database.
    pub database: String,
}

impl Addresses {
    /// The address of a node that runs; of any node if none does.
    pub fn any(&self, rng: &mut StdRng) -> String {
        let addresses = self.0.read();
        let up: Vec<&String> = addresses.iter().flatten().collect();
        match up.as_slice() {
            [] => "http://127.0.0.1:9".to_owned(),
            up => up[rng.random_range(0..up.len())].clone(),
        }
    }

    /// A node runs at this address, or is down.
    pub fn set(&self, node: usize, address: Option<String>) {
        self.0.write()[node] = address;
    }
}

impl Cluster {
    /// Starts the nodes and makes workspaces to put under load. `shape` sets
    /// more of a node's configuration.
    pub async fn start(
        backend: Backend,
        nodes: usize,
        workspaces: usize,
        shape: impl Fn(usize, Builder) -> Builder,
    ) -> (Self, Vec<Tenant>) {
        let builder = || Builder::new(backend).areas(AREAS).set(LOOPBACK, true);
        let mut first = shape(0, builder()).prepare().await;
        let ada = first.create_person("ada");
        let vera = first.create_person("vera");
        let slugs = (0..workspaces).map(|number| format!("load-{number}"));
        let ids: Vec<String> = slugs.map(|slug| first.create_workspace(&slug, &ada)).collect();
        ids.iter().for_each(|id| first.add_member(id, &vera, "viewer"));
        first.start().await;
        let (ada, vera) = (first.sign_in(&ada, &ids[0]), first.sign_in(&vera, &ids[0]));
        let database = first.database_url().unwrap_or_default();
        let mut hosts = vec![first];
        for node in 1..nodes {
            let host = shape(node, builder().beside(&hosts[0])).start().await;
            hosts.push(host);
        }
        let mut tenants = Vec::new();
        for id in &ids {
            let (owner, viewer) = (patient(&ada), patient(&vera));
            tenants.push(Tenant::prepare(owner.in_workspace(id), viewer.in_workspace(id)).await);
        }
        let addresses = hosts.iter().map(|host| Some(host.api.clone())).collect();
        let addresses = Addresses(Arc::new(RwLock::new(addresses)));
        (Self { nodes: hosts, addresses, backend, database }, tenants)
    }

    /// Kills a node and starts it again.
    pub async fn kill(&mut self, node: usize) {
        self.nodes[node].kill9();
        self.addresses.set(node, None);
        self.revive(node).await;
    }

    /// Starts a node that was stopped.
    pub async fn revive(&mut self, node: usize) {
        self.nodes[node].start().await;
        self.addresses.set(node, Some(self.nodes[node].api.clone()));
    }
}

/// Webhooks, models and identity providers of the load are on this machine.
const LOOPBACK: &str = "egress.allow_loopback";

/// The same person, who waits for long.
fn patient(client: &Client) -> Client {
    let http = reqwest::Client::builder().no_proxy().timeout(TIMEOUT);
    Client { http: http.build().expect("an HTTP client"), ..client.clone() }
}
