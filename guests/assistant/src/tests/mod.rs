//! Tests of the area through a fake host and a simulated model server.

mod conversations;
mod endpoints;

use area_sdk::testing::{EgressError, FakeHost, Header, Incoming, Outgoing, Request};
use area_sdk::wit::Outcome;
use serde_json::{Value, json};

fn host() -> FakeHost {
    FakeHost::new(crate::area())
}

/// Creates an endpoint with two models.
fn endpoint(host: &FakeHost) -> Value {
    let body = json!({
        "name": "Main", "base_url": "https://models.example/v1/", "model_ids": ["small", "large"],
        "api_key": "sk-test-key",
    });
    host.call(Request::to("create_model_endpoint").json(body)).expect("an endpoint").body
}

fn answer(status: u16, body: &Value) -> Result<Incoming, EgressError> {
    Ok(Incoming { status, headers: Vec::new(), body: body.to_string().into_bytes() })
}

/// Runs every step of the first waiting job as attempt `attempt`.
fn work(host: &FakeHost, attempt: u32) -> Outcome {
    let job = host.take_jobs().remove(0);
    host.run_to_end(&job.kind, job.payload, attempt)
}

fn header<'a>(sent: &'a Outgoing, name: &str) -> Option<&'a str> {
    let header: Option<&Header> = sent.headers.iter().find(|header| header.name == name);
    header.map(|header| header.value.as_str())
}
