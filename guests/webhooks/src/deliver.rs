//! Delivery of events. An event becomes a delivery for each matching subscription. A delivery's job
//! first reads and signs the message. A separate step sends it and stores the response, so that no
//! transaction is open while a receiver responds.

use area_sdk::prelude::*;
use area_sdk::wit::assurance::area::egress::{Error as EgressError, Header, Incoming, Outgoing};
use area_sdk::{EventDelivery, JobError, Scope};

use crate::circuit;
use crate::deliveries::{self, Attempt, DeliveryStatus, StoredDelivery};
use crate::schedule::{self, GIVE_UP_SECONDS};
use crate::signing;
use crate::subscriptions::{self, DisabledReason, MOST_WEBHOOKS, Subscription};

/// Timeout of a request to a receiver, in milliseconds.
const TIMEOUT_MS: u32 = 15_000;

/// Maximum size of a receiver's response, in bytes. The body is ignored.
const MOST_RESPONSE_BYTES: u32 = 1024 * 1024;

/// Time for which deliveries are stored, in seconds (30 days).
const KEPT_SECONDS: i64 = 30 * 24 * 3600;

/// Text for the OpenAPI document: how events are delivered.
pub(crate) const DESCRIPTION: &str = "Deliveries follow Standard Webhooks 1.0: a POST of `{type, \
    timestamp, workspace_id, data}` with `webhook-id` (the event's id, the same at every attempt), \
    `webhook-timestamp` and `webhook-signature` (`v1,` and base64 of HMAC-SHA256 over \
    `id.timestamp.body` under the bytes that `secret` holds in base64 after `whsec_`). The secret \
    is shown here and after a rotation, once.\n\n\
    Delivered at least once. Only 2xx is success; redirects are not followed; an answer must come \
    within 15 s. Retries after 5 s, 5 m, 30 m, 2 h, 5 h, 10 h, 14 h, 20 h and 24 h, each up to 20 \
    % sooner or later, not before what `Retry-After` asks for. 410 disables the webhook, and so \
    do 120 hours without a success; `webhook.disabled` tells.\n\n\
    When three different deliveries have failed in a row, further ones are held: one at a time is \
    sent at `retry_at` to find out whether the receiver is back, by the same schedule. After a \
    success, those that were held are sent in the order of the events.\n\n\
    `url` is https, without user information, and has a public address.";

/// Job that sends a delivery. It contains the signed message after its first step.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Deliver {
    delivery_id: Uuid,
    prepared: Option<SignedMessage>,
    /// Whether the delivery is sent even while the circuit is open, because a user requested it.
    #[serde(default)]
    at_once: bool,
}

/// A signed HTTP request that is ready to send. Only the attempt that signed it sends it.
#[derive(Clone, Serialize, Deserialize)]
struct SignedMessage {
    attempt: u32,
    url: String,
    headers: Vec<(String, String)>,
    body: String,
}

impl Job for Deliver {
    const KIND: &'static str = "deliver";
}

impl Deliver {
    pub(crate) fn new(delivery_id: Uuid) -> Self {
        Self { delivery_id, prepared: None, at_once: false }
    }

    /// Returns a job that sends the delivery even while the circuit is open.
    pub(crate) fn at_once(delivery_id: Uuid) -> Self {
        Self { at_once: true, ..Self::new(delivery_id) }
    }
}

/// Job that deletes a former secret after the time in which it also signs.
#[derive(Serialize, Deserialize)]
pub(crate) struct ForgetSecret {
    pub(crate) webhook_id: Uuid,
    pub(crate) generation: u32,
}

impl Job for ForgetSecret {
    const KIND: &'static str = "forget_secret";
}

pub(crate) fn forget_secret(ctx: &JobCtx, job: ForgetSecret) -> JobResult<ForgetSecret> {
    signing::forget(ctx, job.webhook_id, job.generation);
    Ok(Outcome::Done)
}

/// Body of the HTTP request to a receiver (Standard Webhooks 1.0).
#[derive(Serialize)]
struct Message<'a, T> {
    r#type: &'a str,
    timestamp: Timestamp,
    workspace_id: Uuid,
    data: &'a T,
}

/// Returns the body as it is signed and sent to the workspace's webhooks.
pub(crate) fn body<T: Serialize>(
    scope: &Scope,
    r#type: &str,
    timestamp: Timestamp,
    data: &T,
) -> String {
    let workspace_id = scope.workspace_id();
    let message = Message { r#type, timestamp, workspace_id, data };
    serde_json::to_string(&message).expect("data that JSON can express")
}

/// Creates a delivery of the event for each matching subscription. Skips subscriptions that already
/// have one, because the event may arrive more than once.
pub(crate) fn fan_out(ctx: &JobCtx, event: EventDelivery) -> JobResult<EventDelivery> {
    let active = ctx.documents::<Subscription>().query().equals("active", true);
    let mut wanting = active.limit(MOST_WEBHOOKS).list()?;
    wanting.retain(|webhook| webhook.wants(&event.name));
    if wanting.is_empty() {
        return Ok(Outcome::Done);
    }
    let made = ctx.documents::<StoredDelivery>().query().equals("event_id", event.id);
    let made = made.limit(MOST_WEBHOOKS).list()?;
    let made: Vec<Uuid> = made.iter().map(|delivery| delivery.webhook_id).collect();
    let body = body(ctx, &event.name, event.occurred_at, &event.data);
    wanting.retain(|webhook| !made.contains(&webhook.uuid()));
    let new: Vec<(Uuid, StoredDelivery)> = wanting
        .iter()
        .map(|webhook| (webhook.uuid(), (event.id, event.name.as_str()), body.clone()))
        .map(|(webhook, named, body)| {
            let at = event.occurred_at;
            (ctx.new_id(), StoredDelivery::new(webhook, named, at, body, ctx.now()))
        })
        .collect();
    ctx.documents().create_all(new.iter().map(|(id, delivery)| (id, delivery)))?;
    for ((id, _), webhook) in new.iter().zip(&wanting) {
        if webhook.circuit.is_open() {
            circuit::hold(ctx, webhook);
        } else {
            deliveries::enqueue(ctx, *id, webhook.uuid());
        }
    }
    Ok(Outcome::Done)
}

pub(crate) fn run(ctx: &JobCtx, job: Deliver) -> JobResult<Deliver> {
    if let Some((delivery, heard)) = send_prepared(ctx, job.clone()) {
        return Ok(match note(ctx, delivery, &heard, false)? {
            Some((at, why)) => Outcome::Retry(at, why),
            None => Outcome::Done,
        });
    }
    prepare(ctx, &job)
}

/// Sends the message that this attempt signed; `None` if the attempt has not signed one. A message
/// that another attempt signed may be too old for the receiver.
pub(crate) fn send_prepared(ctx: &JobCtx, job: Deliver) -> Option<(Uuid, AttemptResult)> {
    let prepared = job.prepared.filter(|prepared| prepared.attempt == ctx.attempt())?;
    Some((job.delivery_id, send(ctx, prepared)))
}

/// A delivery with its subscription.
type DeliveryAndSubscription = (Stored<StoredDelivery>, Stored<Subscription>);

/// Returns the delivery and its subscription; `None` if one of them was deleted.
fn look_up(ctx: &JobCtx, id: Uuid) -> Result<Option<DeliveryAndSubscription>, JobError> {
    let Some(delivery) = ctx.documents::<StoredDelivery>().find(id)? else { return Ok(None) };
    let webhook = ctx.documents::<Subscription>().find(delivery.webhook_id)?;
    Ok(webhook.map(|webhook| (delivery, webhook)))
}

/// Signs the message, unless the delivery was cancelled or the circuit is open.
fn prepare(ctx: &JobCtx, job: &Deliver) -> JobResult<Deliver> {
    let Some((mut delivery, webhook)) = look_up(ctx, job.delivery_id)? else {
        return Ok(Outcome::Done);
    };
    if delivery.status != DeliveryStatus::Pending {
        return Ok(Outcome::Done);
    }
    if !webhook.active {
        delivery.status = DeliveryStatus::Failed;
        delivery.next_attempt_at = None;
        ctx.documents().replace(&mut delivery)?;
        return Ok(Outcome::Done);
    }
    if webhook.circuit.is_open() && !job.at_once {
        circuit::hold(ctx, &webhook);
        return Ok(Outcome::Done);
    }
    let at_once = job.at_once;
    Ok(Outcome::Continue(Deliver { at_once, ..prepared(ctx, &delivery, &webhook) }))
}

/// Returns the job with the message signed for this attempt.
pub(crate) fn prepared(
    ctx: &JobCtx,
    delivery: &Stored<StoredDelivery>,
    webhook: &Stored<Subscription>,
) -> Deliver {
    let now = ctx.now();
    let message = (delivery.event_id, now, delivery.body.as_str());
    let headers = signing::headers(ctx, webhook.uuid(), &webhook.generations(now), message);
    let prepared = SignedMessage {
        attempt: ctx.attempt(),
        url: webhook.url.clone(),
        headers,
        body: delivery.body.clone(),
    };
    Deliver { prepared: Some(prepared), ..Deliver::new(delivery.uuid()) }
}

/// Result of one attempt to send a delivery.
pub(crate) struct AttemptResult {
    status: Option<u16>,
    error: Option<String>,
    retry_after: Option<Timestamp>,
}

fn send(ctx: &JobCtx, prepared: SignedMessage) -> AttemptResult {
    let headers = prepared.headers.into_iter();
    let outgoing = Outgoing {
        method: "POST".to_owned(),
        url: prepared.url,
        headers: headers.map(|(name, value)| Header { name, value }).collect(),
        body: prepared.body.into_bytes(),
        bearer: None,
        timeout_ms: TIMEOUT_MS,
        max_response_bytes: MOST_RESPONSE_BYTES,
    };
    match ctx.send(&outgoing) {
        Ok(answer) => heard(ctx, &answer),
        Err(error) => {
            AttemptResult { status: None, error: Some(describe(&error)), retry_after: None }
        }
    }
}

fn heard(ctx: &JobCtx, answer: &Incoming) -> AttemptResult {
    let mut headers = answer.headers.iter();
    let asked = headers.find(|header| header.name.eq_ignore_ascii_case("retry-after"));
    let success = (200..300).contains(&answer.status);
    AttemptResult {
        status: Some(answer.status),
        error: (!success).then(|| format!("answered {}", answer.status)),
        retry_after: asked.and_then(|asked| schedule::retry_after(&asked.value, ctx.now())),
    }
}

fn describe(error: &EgressError) -> String {
    match error {
        EgressError::Refused(rule) => format!("not sent: {rule}"),
        EgressError::Unresolved => "the name does not resolve".to_owned(),
        EgressError::Connection(what) => format!("no connection: {what}"),
        EgressError::Timeout => "no response within 15 s".to_owned(),
        EgressError::TooLarge => "the response is larger than 1 MiB".to_owned(),
        EgressError::NoSecret | EgressError::NotInAJob => panic!("egress misused: {error:?}"),
    }
}

/// Stores an attempt. Returns time and reason of the next attempt; `None` if there is none, or if
/// the circuit is open and its probes decide.
pub(crate) fn note(
    ctx: &JobCtx,
    id: Uuid,
    heard: &AttemptResult,
    probing: bool,
) -> Result<Option<(Timestamp, String)>, JobError> {
    let Some((mut delivery, mut webhook)) = look_up(ctx, id)? else { return Ok(None) };
    let now = ctx.now();
    delivery.log(Attempt { at: now, response_status: heard.status, error: heard.error.clone() });
    let own = match &heard.error {
        None => {
            delivery.status = DeliveryStatus::Succeeded;
            None
        }
        Some(_) => {
            let jitter = ctx.random_below(4001);
            schedule::next_attempt(delivery.tries, now, jitter, heard.retry_after)
        }
    };
    judge(ctx, &mut webhook, &delivery, heard, probing)?;
    let own = own.filter(|_| webhook.active);
    if own.is_none() && heard.error.is_some() {
        delivery.status = DeliveryStatus::Failed;
    }
    delivery.next_attempt_at = own.map(|own| webhook.circuit.retry_at.unwrap_or(own));
    ctx.documents().replace(&mut delivery)?;
    if own.is_none() {
        forget_old(ctx)?;
    }
    Ok(own.zip(heard.error.clone()).filter(|_| !webhook.circuit.is_open()))
}

/// Updates failure times and circuit of the subscription after an attempt, if they changed.
fn judge(
    ctx: &JobCtx,
    webhook: &mut Stored<Subscription>,
    delivery: &Stored<StoredDelivery>,
    heard: &AttemptResult,
    probing: bool,
) -> Result<(), JobError> {
    let now = ctx.now();
    let before = (webhook.failing_since, webhook.circuit.clone(), webhook.active);
    let failing = heard.error.as_ref().map(|_| webhook.failing_since.unwrap_or(now));
    let too_long = failing.is_some_and(|since| now.seconds_since(since) >= GIVE_UP_SECONDS);
    let gone = heard.status == Some(410);
    webhook.failing_since = failing;
    if webhook.active && (gone || too_long) {
        let reason = if gone { DisabledReason::Gone } else { DisabledReason::Failing };
        subscriptions::disable(ctx, webhook, reason);
    } else if failing.is_some() {
        circuit::failed(ctx, webhook, delivery, heard.retry_after, probing);
    } else {
        circuit::close(ctx, webhook);
    }
    if before == (webhook.failing_since, webhook.circuit.clone(), webhook.active) {
        return Ok(());
    }
    Ok(ctx.documents().replace(webhook)?)
}

/// Deletes some deliveries older than the retention time. Runs only for a random share of the
/// calls.
fn forget_old(scope: &Scope) -> Result<(), JobError> {
    if scope.random_below(16) != 0 {
        return Ok(());
    }
    let before = scope.now().plus_seconds(-KEPT_SECONDS);
    let old = scope.documents::<StoredDelivery>().query();
    let old = old.range("occurred_at", None, Some(before.into())).ascending("occurred_at");
    old.limit(100).delete_page()?;
    Ok(())
}
