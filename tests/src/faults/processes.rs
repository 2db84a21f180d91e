//! Injection and repair of each fault.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use reqwest::Method;
use rustix::process::Signal;
use serde_json::json;
use sqlx::{Connection as _, Executor as _, PgConnection};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::stage::Stage;
use crate::components::version;
use crate::host::AREAS;
use crate::operators::digest;
use crate::receiver::Receiver;
use crate::{Backend, Builder, place};

/// Debian's package `libfaketime`.
const FAKETIME: &str = "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1";
const CONNECTIONS: usize = 4_300;
/// Maximum time for a second process to start or to refuse.
const START: Duration = Duration::from_secs(20);

impl Stage {
    /// Frees disk space and restarts a server that stopped because the disk was full.
    pub(super) async fn free_disk(&mut self) {
        self.disk().free();
        if let Some(postgres) = &mut self.postgres
            && !postgres.is_alive()
        {
            self.notes.lock().push("PostgreSQL had ended".to_owned());
            postgres.launch().await;
        }
    }

    pub(super) async fn mount_again(&mut self) {
        self.cluster.nodes[0].kill9();
        self.cluster.addresses.set(0, None);
        self.disk().mount_again();
        self.cluster.revive(0).await;
        self.watch(0);
    }

    /// Creates and drops indexes for this time.
    pub(super) fn build_indexes(&mut self, lasts: Duration) -> String {
        let (database, notes) = (self.cluster.database.clone(), self.notes.clone());
        self.tasks.push(tokio::spawn(async move {
            let mut connection = PgConnection::connect(&database).await.expect("a connection");
            let (begun, mut count, mut longest) = (Instant::now(), 0, Duration::ZERO);
            while begun.elapsed() < lasts.mul_f64(0.9) {
                for statement in [
                    "CREATE INDEX fault_jobs ON jobs (area)",
                    "CREATE INDEX fault_documents ON documents (version)",
                    "DROP INDEX fault_jobs",
                    "DROP INDEX fault_documents",
                ] {
                    let one = Instant::now();
                    connection.execute(statement).await.expect("done");
                    longest = longest.max(one.elapsed());
                    count += 1;
                }
            }
            notes.lock().push(format!("{count} statements, the longest {longest:.1?}"));
        }));
        String::new()
    }

    pub(super) async fn lock_table(&mut self) -> String {
        let begun = Instant::now();
        let connection = PgConnection::connect(&self.cluster.database).await;
        let mut connection = connection.expect("a connection");
        connection.execute("BEGIN").await.expect("a transaction");
        let statement = "LOCK TABLE documents IN ACCESS EXCLUSIVE MODE";
        connection.execute(statement).await.expect("the lock");
        let took = begun.elapsed();
        self.tasks.push(tokio::spawn(async move {
            std::future::pending::<()>().await;
            drop(connection);
        }));
        format!("locked after {took:.1?}")
    }

    pub(super) fn stop_postgres(&mut self) -> String {
        self.postgres.as_ref().expect("a server").signal(Signal::STOP);
        String::new()
    }

    pub(super) fn continue_postgres(&mut self) {
        self.postgres.as_ref().expect("a server").signal(Signal::CONT);
    }

    pub(super) fn kill_postgres(&mut self) -> String {
        self.postgres.as_mut().expect("a server").kill9();
        String::new()
    }

    pub(super) async fn launch_postgres(&mut self) {
        self.postgres.as_mut().expect("a server").launch().await;
    }

    pub(super) fn silence_line(&mut self) -> String {
        self.line.as_ref().expect("a line").silence();
        String::new()
    }

    pub(super) fn mend_line(&mut self) {
        self.line.as_ref().expect("a line").mend();
    }

    /// Makes the first workspace's events go to a receiver that responds after this time, or never.
    /// The observer's workspace has a good receiver.
    pub(super) async fn receive_after(&mut self, delay: Option<Duration>) -> String {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
        let bad = format!("http://{}", listener.local_addr().expect("an address"));
        self.tasks.push(tokio::spawn(receive(listener, delay)));
        let good = Receiver::content().await;
        let tenants = &self.load.shared().tenants;
        let last = tenants.last().expect("workspaces");
        for (tenant, url) in [(&tenants[0], &bad), (last, &good.base)] {
            let body = json!({ "url": url, "events": ["support_case.created"] });
            tenant.owner.post("/v1/workspaces/{ws}/webhooks", &body).await.expect(201);
        }
        let notes = self.notes.clone();
        self.tasks.push(tokio::spawn(async move {
            tokio::time::sleep(Duration::from_secs(18)).await;
            let count = good.received().len();
            notes.lock().push(format!("{count} messages at a good receiver within 18 s"));
            std::future::pending::<()>().await;
        }));
        "the observer makes some 72 events in 18 s".to_owned()
    }

    /// Starts 60 audits in the first workspace and sends as many requests as possible.
    pub(super) async fn make_noise(&mut self) -> String {
        let owner = self.load.shared().tenants[0].owner.clone();
        let repository = self.load.shared().tenants[0].repository.clone();
        let body = json!({ "repository_id": repository });
        for _ in 0..60 {
            owner.post("/v1/workspaces/{ws}/audits", &body).await;
        }
        for _ in 0..50 {
            let owner = owner.clone();
            self.tasks.push(tokio::spawn(async move {
                loop {
                    let request = owner.request(Method::GET, "/v1/workspaces/{ws}/repositories");
                    let _ = crate::client::try_send(request).await;
                }
            }));
        }
        "60 audits, 50 connections".to_owned()
    }

    /// Restarts the second node with a shifted clock. Clients use it if it reports that it is
    /// ready.
    pub(super) async fn turn_clock(&mut self, offset: &str) -> String {
        if !PathBuf::from(FAKETIME).exists() {
            return format!("no {FAKETIME} (Debian: apt-get install libfaketime)");
        }
        self.cluster.addresses.set(1, None);
        let node = &mut self.cluster.nodes[1];
        if node.is_alive() {
            node.kill9();
        }
        node.set_environment("LD_PRELOAD", FAKETIME);
        node.set_environment("FAKETIME", offset);
        node.set_environment("FAKETIME_DONT_FAKE_MONOTONIC", "1");
        if let Err(why) = node.try_start(START).await {
            return why;
        }
        let ready = node.operate(Method::GET, "/health/ready").await.status;
        let address = (ready == 200).then(|| node.api.clone());
        self.cluster.addresses.set(1, address);
        self.watch(1);
        format!("node with {offset}: readiness {ready}")
    }

    /// Starts a second process in the folder of the first node.
    pub(super) async fn serve_twice(&mut self) -> String {
        let mut command = self.cluster.nodes[0].command(&["serve"]);
        let output = std::process::Stdio::piped;
        let mut child = command.stdout(output()).stderr(output()).spawn().expect("it starts");
        tokio::time::sleep(Duration::from_secs(6)).await;
        let ended = child.try_wait().expect("its state");
        let _ = child.kill();
        let output = child.wait_with_output().expect("its end");
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text);
        let last = text.lines().next_back().unwrap_or_default();
        ended.map_or("both processes run".to_owned(), |_| format!("refused: {last}"))
    }

    /// Starts a second node with this master key, or with none.
    pub(super) async fn start_neighbour(&mut self, master_key: Option<&str>) -> String {
        let builder = Builder::new(Backend::Postgres).areas(AREAS).beside(&self.cluster.nodes[0]);
        let builder = match master_key {
            Some(key) => builder.set("keys.master_key", key),
            None => builder.set("keys", toml::Table::new()),
        };
        let mut second = builder.prepare().await;
        let note = match second.try_start(START).await {
            Err(why) => format!("refused: {why}"),
            Ok(()) => {
                let ready = second.operate(Method::GET, "/health/ready").await.status;
                format!("serves, readiness {ready}")
            }
        };
        self.neighbour = Some(second);
        note
    }

    /// Truncates the live version's component to half and deletes its machine code.
    pub(super) async fn truncate_component(&mut self) -> String {
        let component = version(77);
        let node = &mut self.cluster.nodes[0];
        node.put_area("support", &component).await.expect(200);
        node.kill9();
        self.cluster.addresses.set(0, None);
        for file in files_of(&node.folder().join("data/blobs"), &digest(&component)) {
            if file.to_string_lossy().contains("compiled") {
                std::fs::remove_file(file).expect("it is there");
            } else {
                let half = component.len() as u64 / 2;
                let file = std::fs::File::options().write(true).open(file).expect("a blob");
                file.set_len(half).expect("cut");
            }
        }
        for file in files_of(&place::cache(), &digest(&component)) {
            std::fs::remove_file(file).expect("it is there");
        }
        if let Err(why) = node.try_start(START).await {
            return format!("refused: {why}");
        }
        self.cluster.addresses.set(0, Some(self.cluster.nodes[0].api.clone()));
        self.watch(0);
        let client = self.load.shared().tenants[0].owner.at(&self.cluster.nodes[0]);
        let answer = client.get("/v1/workspaces/{ws}/support/cases").await;
        format!("a path of the area: {}", answer.status)
    }

    /// Deploys a complete version.
    pub(super) async fn restore_component(&mut self) {
        let component = version(78);
        if !self.cluster.nodes[0].is_alive() {
            return;
        }
        let answer = self.cluster.nodes[0].put_area("support", &component).await;
        self.notes.lock().push(format!("a new version: {}", answer.status));
    }

    /// Opens idle connections that each received one response.
    pub(super) async fn open_sockets(&mut self) -> String {
        let address = self.cluster.nodes[0].api.trim_start_matches("http://").to_owned();
        let mut streams = Vec::new();
        for _ in 0..CONNECTIONS {
            let Ok(mut stream) = TcpStream::connect(&address).await else { break };
            let request = b"GET /nothing HTTP/1.1\r\nhost: load\r\n\r\n";
            if stream.write_all(request).await.is_err() {
                break;
            }
            streams.push(stream);
        }
        let count = streams.len();
        self.tasks.push(tokio::spawn(async move {
            std::future::pending::<()>().await;
            drop(streams);
        }));
        format!("{count} connections")
    }
}

/// Returns files below a folder whose name contains this digest.
fn files_of(folder: &std::path::Path, digest: &str) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut found = Vec::new();
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            found.extend(files_of(&path, digest));
        } else if path.to_string_lossy().contains(digest) {
            found.push(path);
        }
    }
    found
}

/// Responds to each request after this time, or never.
async fn receive(listener: TcpListener, delay: Option<Duration>) {
    while let Ok((mut stream, _)) = listener.accept().await {
        tokio::spawn(async move {
            let mut bytes = [0; 4096];
            while stream.read(&mut bytes).await.is_ok_and(|count| count > 0) {
                match delay {
                    None => std::future::pending().await,
                    Some(delay) => tokio::time::sleep(delay).await,
                }
                if stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await.is_err() {
                    return;
                }
            }
        });
    }
}
