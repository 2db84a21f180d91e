//! Nodes under load with one database, and their workspaces.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::RwLock;
use rand::RngExt as _;
use rand::rngs::StdRng;

use super::tenant::Tenant;
use crate::host::AREAS;
use crate::{Backend, Builder, Client, TestHost};

/// Timeout of a request; afterwards it counts as one without a response.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Addresses of the nodes' APIs; `None` for a node that is down.
#[derive(Clone, Debug)]
pub struct Addresses(Arc<RwLock<Vec<Option<String>>>>);

/// One to three nodes.
#[derive(Debug)]
pub struct Cluster {
    /// The nodes. The first one owns the database.
    pub nodes: Vec<TestHost>,
    /// Addresses of the nodes.
    pub addresses: Addresses,
    /// The database.
    pub backend: Backend,
    /// URL of the database on PostgreSQL.
    pub database: String,
}

impl Addresses {
    /// Returns the address of a random running node; of any node if none runs.
    pub fn any(&self, rng: &mut StdRng) -> String {
        let addresses = self.0.read();
        let up: Vec<&String> = addresses.iter().flatten().collect();
        match up.as_slice() {
            [] => "http://127.0.0.1:9".to_owned(),
            up => up[rng.random_range(0..up.len())].clone(),
        }
    }

    /// Sets the address of a node; `None` if it is down.
    pub fn set(&self, node: usize, address: Option<String>) {
        self.0.write()[node] = address;
    }
}

impl Cluster {
    /// Starts the nodes and creates workspaces. `shape` adds to a node's configuration.
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

    /// Kills and restarts a node.
    pub async fn kill(&mut self, node: usize) {
        self.nodes[node].kill9();
        self.addresses.set(node, None);
        self.revive(node).await;
    }

    /// Starts a stopped node.
    pub async fn revive(&mut self, node: usize) {
        self.nodes[node].start().await;
        self.addresses.set(node, Some(self.nodes[node].api.clone()));
    }
}

/// Configuration key that allows webhooks, models and identity providers on this machine.
const LOOPBACK: &str = "egress.allow_loopback";

/// Returns the client with a long timeout.
fn patient(client: &Client) -> Client {
    let http = reqwest::Client::builder().no_proxy().timeout(TIMEOUT);
    Client { http: http.build().expect("an HTTP client"), ..client.clone() }
}
