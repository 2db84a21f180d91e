//! Attackers, and the responses to each.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use futures::FutureExt as _;
use reqwest::Method;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;

use super::{CALLED, Records};
use crate::client::try_send;
use crate::components::{fixture, nested};
use crate::{Answer, Client};

/// Components that are refused at deployment.
const REFUSED: [&str; 4] =
    ["loop-in-describe", "abort-in-describe", "capability-in-describe", "wrong-world"];
/// Concurrent calls of each hostile component.
const CALLERS: usize = 2;
/// Number of connections that are opened and send little.
const SLOW_CONNECTIONS: usize = 200;
const PATIENCE: Duration = Duration::from_secs(60);
/// Wait between two attempts of one attacker. The test measures the cost of an attack and not the
/// maximum request rate.
const PACE: Duration = Duration::from_millis(50);

/// Niceness of the attackers' threads. In a real attack they run on other machines.
const NICENESS: i32 = 19;

/// Name of the attackers' threads.
const THREAD: &str = "attackers";

/// Runs all attackers on threads of their own, so that the test measures what they cost the host
/// and not what they cost the client of the tenants.
pub(super) struct Attack(Runtime);

impl Attack {
    /// Starts all attackers.
    pub(super) async fn start(target: Target) -> Self {
        silence_panics();
        let threads = Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name(THREAD)
            .on_thread_start(lower_priority)
            .enable_all()
            .build()
            .expect("threads for the attackers");
        let started = threads.spawn(async move { start(&target).await.detach_all() });
        started.await.expect("the attackers start");
        Self(threads)
    }

    /// Ends all attackers.
    pub(super) fn end(self) {
        self.0.shutdown_background();
    }
}

/// Attacked host, and the record of its responses.
pub(super) struct Target {
    pub(super) api: String,
    /// Client with the operators' token.
    pub(super) operators: Client,
    pub(super) mallory: Client,
    pub(super) nobody: Client,
    /// Email address whose password is guessed.
    pub(super) victim: String,
    pub(super) records: Arc<Records>,
}

/// Suppresses the panic messages of attackers: the test helpers panic at each refusal, which is
/// counted.
fn silence_panics() {
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if std::thread::current().name() != Some(THREAD) {
            print(panic);
        }
    }));
}

fn lower_priority() {
    let thread = rustix::thread::gettid();
    rustix::process::setpriority_process(Some(thread), NICENESS).expect("a lower priority");
}

async fn start(target: &Target) -> JoinSet<()> {
    let mallory = &target.mallory;
    let mut tasks = JoinSet::new();
    for receiver in [Receiver::Informs, Receiver::Waits] {
        receive(mallory, receiver, &mut tasks).await;
    }
    let records = || Arc::clone(&target.records);
    for name in CALLED.iter().cycle().take(CALLED.len() * CALLERS) {
        tasks.spawn(call(mallory.clone(), name, records()));
    }
    tasks.spawn(deploy(target.operators.clone(), records()));
    tasks.spawn(upload(mallory.clone(), records()));
    tasks.spawn(decompress(target.nobody.clone(), records()));
    tasks.spawn(ask_strangely(mallory.clone(), records()));
    tasks.spawn(guess(target.nobody.clone(), target.victim.clone(), records()));
    tasks.spawn(dawdle(target.api.clone(), records()));
    tasks.spawn(make_events(mallory.clone(), records()));
    tasks
}

/// Returns the status and the problem's code.
fn outcome(answer: Result<Answer, reqwest::Error>) -> String {
    match answer {
        Ok(answer) if answer.status < 400 => answer.status.to_string(),
        Ok(answer) => {
            let problem: serde_json::Value =
                serde_json::from_slice(&answer.bytes).unwrap_or_default();
            format!("{} {}", answer.status, problem["code"].as_str().unwrap_or("no problem"))
        }
        Err(error) if error.is_timeout() => "no response".to_owned(),
        Err(_) => "connection closed".to_owned(),
    }
}

async fn call(mallory: Client, name: &'static str, records: Arc<Records>) {
    loop {
        let path = format!("/v1/workspaces/{{ws}}/fixtures/{name}");
        let request = mallory.request(Method::POST, &path).json(&json!({}));
        records.count(name, outcome(try_send(request.timeout(PATIENCE)).await));
        tokio::time::sleep(PACE).await;
    }
}

/// Deploys components that must be refused, one after the other.
async fn deploy(operators: Client, records: Arc<Records>) {
    let files = REFUSED.map(|name| (name, fixture(name)));
    let nested = [("parts that instantiate each other", nested(20))];
    for (name, component) in files.iter().chain(&nested).cycle() {
        let request = operators.request(Method::PUT, "/areas/hostile").body(component.clone());
        let request = request.header("content-type", "application/wasm");
        records.count(name, outcome(try_send(request.timeout(PATIENCE)).await));
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

/// Uploads and audits documents that are expensive to parse.
async fn upload(mallory: Client, records: Arc<Records>) {
    let sections: String = (0..60_000).map(|n| format!("[{n}]\n* @a{n}\n")).collect();
    let shared = "11111111-1111-4111-8111-111111111111";
    let run = json!({
        "tool": {"driver": {"name": "shared"}},
        "externalPropertyFileReferences": {"results": vec![json!({"guid": shared}); 2_000]},
    });
    let results = vec![json!({"message": {"text": "again"}, "ruleId": "R1"}); 500];
    let sarif = json!({
        "version": "2.1.0", "runs": vec![run; 2],
        "inlineExternalProperties": [{"guid": shared, "results": results}],
    });
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let documents = [
        ("document of 60,000 sections", "CODEOWNERS", sections.into_bytes()),
        ("document with shared results", "shared.sarif", sarif.to_string().into_bytes()),
        ("document of 100,000 levels", "deep.cdx.json", deep.into_bytes()),
    ];
    for (number, (name, filename, content)) in documents.iter().cycle().enumerate() {
        tokio::time::sleep(PACE).await;
        let import = async {
            let repository = mallory.repository(&format!("hostile {number}")).await;
            let settled = mallory.upload(&repository, filename, content).await;
            let audit = mallory.audit(&repository).await;
            (settled["validation_stage"].to_string(), audit["state"].to_string())
        };
        // The test helpers panic if the service refuses a step.
        let outcome = match AssertUnwindSafe(import).catch_unwind().await {
            Ok((stage, state)) => format!("upload {stage}, audit {state}"),
            Err(_) => "a step was refused".to_owned(),
        };
        records.count(name, outcome);
    }
}

/// Sends bodies that decompress to nothing.
async fn decompress(nobody: Client, records: Arc<Records>) {
    let empty = GzEncoder::new(Vec::new(), Compression::fast()).finish().expect("in memory");
    let body = empty.repeat((8 << 20) / empty.len());
    loop {
        let request = nobody.request(Method::POST, "/v1/auth/login");
        let request = request.header("content-type", "application/json");
        let request = request.header("content-encoding", "gzip").body(body.clone());
        records.count("body of empty members", outcome(try_send(request.timeout(PATIENCE)).await));
        tokio::time::sleep(PACE).await;
    }
}

/// Sends requests with many or large parts.
async fn ask_strangely(mallory: Client, records: Arc<Records>) {
    const CASES: &str = "/v1/workspaces/{ws}/support/cases";
    let many: Vec<String> = (0..600).map(|n| format!("p{n}=1")).collect();
    let path = format!("{CASES}?{}", many.join("&"));
    let deep = format!("{}{}", "[".repeat(50_000), "]".repeat(50_000));
    let wide = format!("{{{}\"b\": 1}}", "\"a\": 1, ".repeat(50_000));
    loop {
        let request = mallory.request(Method::GET, &path).timeout(PATIENCE);
        records.count("query of 600 parameters", outcome(try_send(request).await));
        for (name, body) in [("body of 50,000 levels", &deep), ("body of 50,000 members", &wide)] {
            let request = mallory.request(Method::POST, CASES).body(body.clone());
            let request = request.header("content-type", "application/json").timeout(PATIENCE);
            records.count(name, outcome(try_send(request).await));
        }
        let request = mallory.request(Method::GET, "/openapi.json").timeout(PATIENCE);
        records.count("the whole description", outcome(try_send(request).await));
        tokio::time::sleep(PACE).await;
    }
}

/// Guesses a tenant's password.
async fn guess(nobody: Client, victim: String, records: Arc<Records>) {
    for number in 0_u64.. {
        let body = json!({"email": victim, "password": format!("guess {number}")});
        let request = nobody.request(Method::POST, "/v1/auth/login").json(&body);
        records.count("guessed password", outcome(try_send(request.timeout(PATIENCE)).await));
        tokio::time::sleep(PACE).await;
    }
}

/// Opens connections that send one byte of a header each second.
async fn dawdle(api: String, records: Arc<Records>) {
    let address = api.trim_start_matches("http://").to_owned();
    let mut connections = JoinSet::new();
    for _ in 0..SLOW_CONNECTIONS {
        let (address, records) = (address.clone(), Arc::clone(&records));
        connections.spawn(async move {
            loop {
                let Ok(mut stream) = TcpStream::connect(&address).await else { return };
                let _ = stream.write_all(b"GET / HTTP/1.1\r\nhost: slow\r\nx-slow: ").await;
                while stream.write_all(b"x").await.is_ok() {
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
                records.count("slow header", "connection closed".to_owned());
            }
        });
    }
    connections.join_all().await;
}

/// Misbehavior of a webhook receiver.
#[derive(Clone, Copy)]
enum Receiver {
    /// Sends 1xx responses endlessly.
    Informs,
    /// Never responds.
    Waits,
}

/// Subscribes such a receiver to the workspace's events.
async fn receive(mallory: &Client, receiver: Receiver, tasks: &mut JoinSet<()>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    tasks.spawn(async move {
        let mut connections = JoinSet::new();
        while let Ok((stream, _)) = listener.accept().await {
            connections.spawn(misbehave(stream, receiver));
        }
    });
    let body = json!({"url": url, "events": ["support_case.created"]});
    mallory.post("/v1/workspaces/{ws}/webhooks", &body).await.expect(201);
}

async fn misbehave(mut stream: TcpStream, receiver: Receiver) {
    let mut request = [0; 4_096];
    let _ = stream.read(&mut request).await;
    match receiver {
        Receiver::Informs => {
            let informs = b"HTTP/1.1 102 Processing\r\n\r\n".repeat(100);
            while stream.write_all(&informs).await.is_ok() {}
        }
        Receiver::Waits => std::future::pending().await,
    }
}

/// Creates events for the receivers.
async fn make_events(mallory: Client, records: Arc<Records>) {
    loop {
        let case = json!({"subject": "Event", "description": "For the receivers."});
        let request = mallory.request(Method::POST, "/v1/workspaces/{ws}/support/cases");
        let key = uuid::Uuid::new_v4().to_string();
        let request = request.header("idempotency-key", key).json(&case).timeout(PATIENCE);
        records.count("event for bad receivers", outcome(try_send(request).await));
        tokio::time::sleep(PACE).await;
    }
}
