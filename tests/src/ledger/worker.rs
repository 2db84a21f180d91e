//! A client under load: sends valid and invalid requests and records the outcomes. Without a
//! response it retries with the same key.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use reqwest::Method;
use serde_json::json;

use super::book::{Effect, Marker, Outcome, RequestLog};
use super::cluster::Addresses;
use super::mix::{self, Body, Draft, Request};
use super::tenant::Tenant;
use crate::artifacts::headers_of;
use crate::client::{install_tls_provider, try_send};
use crate::{Answer, Client};

/// Time for which a request with a key is retried.
const PATIENCE: Duration = Duration::from_secs(90);
const PAUSE: Duration = Duration::from_millis(100);
/// Percentage of intentionally invalid requests.
const BAD_PERCENT: u32 = 8;
/// Percentage of acknowledged requests with a key that are sent again.
const REPLAYED_PERCENT: u32 = 5;

/// State shared by all clients.
#[derive(Debug)]
pub struct LedgerState {
    /// Requests and outcomes.
    pub book: RequestLog,
    /// Addresses of the nodes.
    pub addresses: Addresses,
    /// The workspaces.
    pub tenants: Vec<Tenant>,
    /// Locked for reading while a request is running.
    pub gate: tokio::sync::RwLock<()>,
    /// Whether the load ends.
    pub stop: AtomicBool,
    /// First acknowledged requests of an observer, with the documents' ids.
    pub observed: Mutex<Vec<(Request, String)>>,
}

/// A client under load.
#[derive(Debug)]
pub struct Worker {
    shared: Arc<LedgerState>,
    http: reqwest::Client,
    rng: StdRng,
}

impl Worker {
    /// Creates a client with separate connections.
    #[must_use]
    pub fn new(shared: &Arc<LedgerState>, seed: u64) -> Self {
        install_tls_provider();
        let http = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(60));
        let http = http.build().expect("an HTTP client");
        Self { shared: Arc::clone(shared), http, rng: StdRng::seed_from_u64(seed) }
    }

    /// Sends requests until the load ends.
    pub async fn work(mut self) {
        let shared = Arc::clone(&self.shared);
        while !shared.stop.load(Ordering::Relaxed) {
            let _under_way = shared.gate.read().await;
            let tenant = &shared.tenants[self.rng.random_range(0..shared.tenants.len())];
            let marker = shared.book.marker();
            let request = mix::next(tenant, &shared.book.text(marker), &mut self.rng);
            if self.rng.random_range(0..100) < BAD_PERCENT {
                self.send_bad(tenant, request, marker).await;
            } else {
                self.submit(tenant, &request, marker).await;
            }
        }
    }

    /// Sends a request and records its outcome.
    async fn submit(&mut self, tenant: &Tenant, request: &Request, marker: Marker) {
        let shared = Arc::clone(&self.shared);
        let workspace = &tenant.owner.workspace;
        shared.book.open(marker, request.operation, workspace, request.effect.clone());
        match self.insist(tenant, request).await {
            Ok(answer) => self.accept(tenant, request, marker, answer).await,
            Err(outcome) => {
                shared.book.close(marker, outcome);
                self.look_again(tenant, request).await;
            }
        }
    }

    /// Sends a request until its outcome is known, if it can be repeated.
    async fn insist(&mut self, tenant: &Tenant, request: &Request) -> Result<Answer, Outcome> {
        let (begun, mut in_doubt) = (Instant::now(), false);
        loop {
            match self.send(&tenant.owner, request).await {
                Some(answer) if answer.status < 300 => return Ok(answer),
                Some(answer) if is_in_progress(&answer) => {}
                Some(answer) if answer.status < 500 && in_doubt => return Err(Outcome::Unknown),
                Some(answer) if answer.status < 500 => {
                    return Err(Outcome::Refused(answer.status));
                }
                _ => in_doubt = true,
            }
            if request.key.is_none() || begun.elapsed() > PATIENCE {
                return Err(Outcome::Unknown);
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Sends a request once; `None` without a response.
    async fn send(&mut self, client: &Client, request: &Request) -> Option<Answer> {
        let base = self.shared.addresses.any(&mut self.rng);
        let client = Client { base, http: self.http.clone(), ..client.clone() };
        let answer = try_send(request.build(&client)).await.ok();
        let status = answer.as_ref().map_or(0, |answer| answer.status);
        self.shared.book.count(request.operation, status);
        answer
    }

    /// Records an acknowledged request and sends follow-up requests.
    async fn accept(&mut self, tenant: &Tenant, request: &Request, marker: Marker, answer: Answer) {
        let shared = Arc::clone(&self.shared);
        let book = &shared.book;
        let version = answer.version();
        let id = match &request.effect {
            Effect::Creates(kind, _) => {
                let id =
                    answer.json().pointer(kind.id).and_then(|id| id.as_str().map(str::to_owned));
                let Some(id) = id else {
                    book.object(format!("{}: no id in {}", request.operation, answer.text()));
                    return;
                };
                tenant.remember(kind.collection, &id);
                id
            }
            Effect::Changes(_, id, _) | Effect::Deletes(_, id) => id.clone(),
            Effect::Acts => String::new(),
        };
        book.close(marker, Outcome::Acknowledged(id.clone(), version));
        if request.key.is_some() && self.rng.random_range(0..100) < REPLAYED_PERCENT {
            self.replay(tenant, request, &answer).await;
        }
        match request.operation {
            "create_upload" => self.fill_upload(tenant, &id, marker, &answer).await,
            "transition_finding" => self.look_again(tenant, request).await,
            _ => {}
        }
    }

    /// Sends an acknowledged request again. The response must be equal.
    async fn replay(&mut self, tenant: &Tenant, request: &Request, first: &Answer) {
        let Some(again) = self.send(&tenant.owner, request).await else { return };
        // A busy node may refuse the repeated request.
        if again.status >= 500 || is_in_progress(&again) {
            return;
        }
        let replayed = again.header("idempotent-replayed") == Some("true");
        // The response to evidence shows whether the submission was the first, so the body is not
        // compared.
        let same = again.bytes == first.bytes || request.operation == "submit_evidence_envelope";
        if again.status != first.status || !replayed || !same {
            let (before, now) = (first.text(), again.text());
            let what = format!("{}: {} {before} then {now}", request.operation, again.status);
            self.shared.book.object(format!("a retry has another response: {what}"));
        }
        self.shared.book.with(|pages| pages.replays += 1);
    }

    /// Sends and completes an upload's content.
    async fn fill_upload(&mut self, tenant: &Tenant, id: &str, marker: Marker, made: &Answer) {
        let upload = made.json();
        let url = upload["upload_url"].as_str().unwrap_or_default().to_owned();
        let path = url.split_once("/v1/").map_or("", |(_, path)| path).to_owned();
        let content = mix::content(&self.shared.book.text(marker));
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            let put = format!("{}/v1/{path}", self.shared.addresses.any(&mut self.rng));
            let put = headers_of(&upload)
                .into_iter()
                .fold(self.http.put(put), |put, (name, value)| put.header(name, value));
            let answer = try_send(put.body(content.clone())).await.ok();
            let status = answer.map_or(0, |answer| answer.status);
            self.shared.book.count("put_upload_content", status);
            if (200..500).contains(&status) {
                break;
            }
            tokio::time::sleep(PAUSE).await;
        }
        let path = format!("uploads/{id}/complete");
        let draft = Draft { path, body: Body::None, seen: None };
        let request = Request {
            operation: "complete_upload",
            method: Method::POST,
            draft,
            key: Some(format!("complete-{id}")),
            effect: Effect::Acts,
        };
        // An upload that is not completed stays unchanged.
        drop(self.insist(tenant, &request).await);
    }

    /// Reads a finding again after a transition.
    async fn look_again(&mut self, tenant: &Tenant, request: &Request) {
        let id = request.draft.path.strip_prefix("findings/").unwrap_or_default();
        let id = id.trim_end_matches("/transitions");
        let finding = tenant.findings.iter().find(|finding| finding.lock().id == id);
        let Some(finding) = finding else { return };
        let base = self.shared.addresses.any(&mut self.rng);
        let client = Client { base, http: self.http.clone(), ..tenant.owner.clone() };
        let path = format!("/v1/workspaces/{{ws}}/findings/{id}");
        let Ok(answer) = try_send(client.request(Method::GET, &path)).await else { return };
        if answer.status == 200 {
            let (seen, mut finding) = (answer.json(), finding.lock());
            finding.version = seen["lifecycle_version"].as_u64().unwrap_or_default();
            finding.state = seen["state"].as_str().unwrap_or_default().to_owned();
        }
    }

    /// Sends a request that must be refused, in one of several ways.
    async fn send_bad(&mut self, tenant: &Tenant, mut request: Request, marker: Marker) {
        let mut client = tenant.owner.clone();
        match (self.rng.random_range(0..4), &mut request.draft) {
            (0, Draft { body: Body::Json(body), .. }) => body["unknown_member"] = json!(1),
            (1, draft) if request.method == Method::PATCH => draft.seen = Some(999_999),
            (2, _) => client.csrf = None,
            // Viewers may also open and answer cases.
            _ if request.operation.contains("support") => client.csrf = None,
            _ => client = tenant.viewer.clone(),
        }
        self.shared.book.open(marker, request.operation, &client.workspace, request.effect.clone());
        let outcome = match self.send(&client, &request).await {
            Some(answer) if answer.status < 300 => {
                let what = format!("{}: a bad request was accepted", request.operation);
                self.shared.book.object(what);
                Outcome::Unknown
            }
            Some(answer) if answer.status < 500 => Outcome::Refused(answer.status),
            _ => Outcome::Unknown,
        };
        self.shared.book.close(marker, outcome);
    }
}

fn is_in_progress(answer: &Answer) -> bool {
    answer.status == 409 && answer.text().contains("idempotency_in_progress")
}

/// Number of an observer's requests that are sent again at the end.
const OBSERVED: usize = 20;

/// Opens a support case in the last workspace, without retries. Returns the status; 0 means no
/// response.
pub async fn observe(shared: &Arc<LedgerState>, seed: u64) -> u16 {
    let mut worker = Worker::new(shared, seed);
    let _under_way = shared.gate.read().await;
    let tenant = shared.tenants.last().expect("workspaces");
    let marker = shared.book.marker();
    let text = shared.book.text(marker);
    let Some(request) = mix::of("create_support_case", tenant, &text, &mut worker.rng) else {
        return 0;
    };
    let workspace = &tenant.owner.workspace;
    shared.book.open(marker, request.operation, workspace, request.effect.clone());
    let answer = worker.send(&tenant.owner, &request).await;
    let status = answer.as_ref().map_or(0, |answer| answer.status);
    let outcome = match answer {
        Some(answer) if status < 300 => {
            let id = answer.json()["id"].as_str().unwrap_or_default().to_owned();
            let mut observed = shared.observed.lock();
            if observed.len() < OBSERVED {
                observed.push((request, id.clone()));
            }
            Outcome::Acknowledged(id, None)
        }
        Some(_) if status < 500 => Outcome::Refused(status),
        _ => Outcome::Unknown,
    };
    shared.book.close(marker, outcome);
    status
}

/// Sends an observer's first requests again. Returns those that had two effects.
pub async fn replay_observed(shared: &Arc<LedgerState>) -> Vec<String> {
    let mut worker = Worker::new(shared, 0);
    let tenant = shared.tenants.last().expect("workspaces");
    let observed = std::mem::take(&mut *shared.observed.lock());
    let mut again = Vec::new();
    for (request, id) in observed {
        let Some(answer) = worker.send(&tenant.owner, &request).await else { continue };
        if answer.status < 300 && answer.json()["id"] != id.as_str() {
            again.push(format!("a retry was done again: {id}, then {}", answer.text()));
        }
    }
    again
}
