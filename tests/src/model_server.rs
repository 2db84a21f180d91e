//! An OpenAI-compatible server on a loopback port. It requires a key, lists its models, responds as
//! the test determines, and stores the requests.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// A running server; it stops when dropped.
#[derive(Debug)]
pub struct ModelServer {
    /// Value for `base_url`: `http://127.0.0.1:PORT/v1`.
    pub base: String,
    shared: Arc<SharedState>,
    server: JoinHandle<()>,
}

#[derive(Debug)]
struct SharedState {
    key: String,
    models: Vec<String>,
    seen: Mutex<ServerState>,
}

/// State that changes with requests.
#[derive(Debug, Default)]
struct ServerState {
    asked: Vec<Value>,
    answers: VecDeque<(u16, String)>,
    /// System messages of former requests, which count as cached.
    rules: BTreeSet<String>,
}

type Answer = (StatusCode, Json<Value>);

impl ModelServer {
    /// Starts a server with these models and this key.
    pub async fn start(key: &str, models: &[&str]) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
        let base = format!("http://{}/v1", listener.local_addr().expect("an address"));
        let models = models.iter().map(|&model| model.to_owned()).collect();
        let shared = Arc::new(SharedState { key: key.to_owned(), models, seen: Mutex::default() });
        let router = Router::new()
            .route("/v1/models", get(list))
            .route("/v1/chat/completions", post(complete))
            .with_state(Arc::clone(&shared));
        let server = tokio::spawn(async move {
            axum::serve(listener, router).await.expect("serves");
        });
        Self { base, shared, server }
    }

    /// Queues a response. Without queued responses, the last message is echoed.
    pub fn say(&self, content: &str) {
        self.shared.seen().answers.push_back((200, content.to_owned()));
    }

    /// Refuses the next request with this status.
    pub fn refuse(&self, status: u16) {
        self.shared.seen().answers.push_back((status, String::new()));
    }

    /// Returns the bodies of the completion requests.
    #[must_use]
    pub fn asked(&self) -> Vec<Value> {
        self.shared.seen().asked.clone()
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl SharedState {
    fn seen(&self) -> MutexGuard<'_, ServerState> {
        self.seen.lock().expect("no panic while holding it")
    }

    /// Refuses requests without the key.
    fn check(&self, headers: &HeaderMap) -> Result<(), Answer> {
        let expected = format!("Bearer {}", self.key);
        let sent = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        if sent == Some(expected.as_str()) { Ok(()) } else { Err(refusal(401, "invalid_api_key")) }
    }
}

fn refusal(status: u16, code: &str) -> Answer {
    let status = StatusCode::from_u16(status).expect("a status");
    (status, Json(json!({ "error": { "code": code, "message": "No." } })))
}

async fn list(
    State(shared): State<Arc<SharedState>>,
    headers: HeaderMap,
) -> Result<Json<Value>, Answer> {
    shared.check(&headers)?;
    let model = |id: &String| json!({ "id": id, "object": "model" });
    let models: Vec<Value> = shared.models.iter().map(model).collect();
    Ok(Json(json!({ "object": "list", "data": models })))
}

async fn complete(
    State(shared): State<Arc<SharedState>>,
    headers: HeaderMap,
    Json(asked): Json<Value>,
) -> Result<Json<Value>, Answer> {
    shared.check(&headers)?;
    if !shared.models.iter().any(|model| asked["model"] == model.as_str()) {
        return Err(refusal(404, "model_not_found"));
    }
    let mut seen = shared.seen();
    seen.asked.push(asked.clone());
    let (status, content) = seen.answers.pop_front().unwrap_or_else(|| (200, last(&asked)));
    if status != 200 {
        return Err(refusal(status, "refused"));
    }
    let rules = asked["messages"][0]["content"].as_str().unwrap_or_default();
    let cached = if seen.rules.insert(rules.to_owned()) { 0 } else { words(rules) };
    Ok(Json(completion(&asked, &content, cached)))
}

/// Returns the last message.
fn last(asked: &Value) -> String {
    let said = asked["messages"].as_array().and_then(|messages| messages.last());
    said.and_then(|said| said["content"].as_str()).unwrap_or_default().to_owned()
}

/// Counts words as tokens.
fn words(text: &str) -> usize {
    text.split_whitespace().count()
}

fn completion(asked: &Value, content: &str, cached: usize) -> Value {
    let messages = asked["messages"].as_array().into_iter().flatten();
    let prompt: usize = messages.filter_map(|said| said["content"].as_str()).map(words).sum();
    let answer = words(content);
    json!({
        "id": "chatcmpl-1", "object": "chat.completion", "created": 0, "model": asked["model"],
        "choices": [{
            "index": 0, "finish_reason": "stop",
            "message": { "role": "assistant", "content": content },
        }],
        "usage": {
            "prompt_tokens": prompt, "completion_tokens": answer, "total_tokens": prompt + answer,
            "prompt_tokens_details": { "cached_tokens": cached },
        },
    })
}
