//! Delivery of events to receivers. An attempt reads the deliveries, signs and sends the messages,
//! and stores the results, in one run of a job, or of several jobs together. No transaction is open
//! while a receiver responds: the commit verifies that the deliveries and their subscription are
//! unchanged. If they have changed, the attempt runs again with the responses that it has.

use std::collections::BTreeMap;

use area_sdk::prelude::*;
use area_sdk::wit::assurance::area::egress::{Error as EgressError, Header, Incoming, Outgoing};
use area_sdk::{EventDelivery, JobError, JobOptions, Scope};
use area_shared::queue::JobCancelled;

use crate::circuit;
use crate::deliveries::{Attempt, DeliveryStatus, StoredDelivery};
use crate::schedule::{self, GIVE_UP_SECONDS};
use crate::signing;
use crate::subscriptions::{self, DisabledReason, MOST_WEBHOOKS, Subscription};

/// Timeout of a request to a receiver, in milliseconds.
const TIMEOUT_MS: u32 = 15_000;

/// Maximum size of a receiver's response, in bytes. The body is ignored.
const MOST_RESPONSE_BYTES: u32 = 1024 * 1024;

/// Time for which deliveries of webhooks are stored, in seconds (30 days).
const KEPT_SECONDS: i64 = 30 * 24 * 3600;

/// Maximum number of deliveries that one call of the area handles.
pub(crate) const BATCH: u32 = 64;

/// Number of deliveries that one call sends to a receiver at the same time.
const TOGETHER: usize = 8;

/// Number of deliveries after which, on average, old ones are deleted.
const FORGET_AFTER: u64 = 64;

/// Number of deliveries that are deleted in one transaction.
pub(crate) const FORGOTTEN_TOGETHER: u32 = 200;

/// Text for the OpenAPI document: how events are delivered.
pub(crate) const DESCRIPTION: &str = "Deliveries follow Standard Webhooks 1.0: a POST of `{type, \
    timestamp, workspace_id, data}` with `webhook-id` (the event's id, the same at every attempt), \
    `webhook-timestamp` and `webhook-signature` (`v1,` and base64 of HMAC-SHA256 over \
    `id.timestamp.body` under the bytes that `secret` holds in base64 after `whsec_`). The secret \
    is shown here and after a rotation, once.\n\n\
    Delivered at least once. Only 2xx is success; redirects are not followed; an answer must come \
    within 15 s and have at most 1 MiB. Retries after 5 s, 5 m, 30 m, 2 h, 5 h, 10 h, 14 h, 20 h \
    and 24 h, each up to 20 % sooner or later, not before what `Retry-After` asks for. 410 \
    disables the webhook, and so do 120 hours without a success; `webhook.disabled` tells.\n\n\
    When three different deliveries have failed in a row, further ones are held: one at a time is \
    sent at `retry_at` to find out whether the receiver is back, by the same schedule. After a \
    success, those that were held are sent, several at a time.\n\n\
    `url` is https, without user information, and has a public address.";

/// Job that sends a stored delivery to the receiver of its webhook.
#[derive(Serialize, Deserialize)]
pub(crate) struct DeliverJob {
    delivery_id: Uuid,
    /// Whether the delivery is sent even while the circuit is open, because a user requested it.
    #[serde(default)]
    at_once: bool,
}

job!(DeliverJob, "deliver");

impl DeliverJob {
    pub(crate) fn new(delivery_id: Uuid) -> Self {
        Self { delivery_id, at_once: false }
    }

    /// Returns a job that sends the delivery even while the circuit is open.
    pub(crate) fn at_once(delivery_id: Uuid) -> Self {
        Self { delivery_id, at_once: true }
    }

    /// Enqueues the job, to run at the time `at` or else immediately. Does nothing if a job of the
    /// delivery is in the queue.
    pub(crate) fn enqueue(&self, scope: &Scope, webhook_id: Uuid, at: Option<Timestamp>) {
        let dedupe_key = Some(self.delivery_id.to_string());
        scope.enqueue_with(self, JobOptions { at, resource: Some(webhook_id), dedupe_key });
    }
}

/// Job that deletes a former secret after the time in which it also signs.
#[derive(Serialize, Deserialize)]
pub(crate) struct ForgetSecretJob {
    pub(crate) webhook_id: Uuid,
    pub(crate) generation: u32,
}

job!(ForgetSecretJob, "forget_secret");

pub(crate) fn forget_secret(ctx: &JobCtx, job: ForgetSecretJob) -> JobResult<ForgetSecretJob> {
    signing::forget(ctx, job.webhook_id, job.generation);
    Ok(Outcome::Done)
}

/// Job that creates the deliveries of an event that the host has not matched with subscriptions. It
/// queries, and so needs a transaction, unlike the delivery of a matched event.
#[derive(Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct FanOutJob(EventDelivery);

job!(FanOutJob, "fan_out");

/// Job that deletes the deliveries older than the retention time, a page at a time.
#[derive(Serialize, Deserialize)]
pub(crate) struct ForgetOldDeliveriesJob {}

job!(ForgetOldDeliveriesJob, "forget_old");

pub(crate) fn forget_old(
    ctx: &JobCtx,
    job: ForgetOldDeliveriesJob,
) -> JobResult<ForgetOldDeliveriesJob> {
    let before = ctx.now().plus_seconds(-KEPT_SECONDS);
    let old = ctx.documents::<StoredDelivery>().query();
    let old = old.range("occurred_at", None, Some(before.into())).ascending("occurred_at");
    Ok(match old.limit(FORGOTTEN_TOGETHER).delete_page()? {
        0 => Outcome::Done,
        _ => Outcome::Continue(job),
    })
}

/// Body of the HTTP request to a receiver (Standard Webhooks 1.0).
#[derive(Serialize)]
struct WebhookPayload<'a, T> {
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
    let message = WebhookPayload { r#type, timestamp, workspace_id, data };
    serde_json::to_string(&message).expect("data that JSON can express")
}

/// Delivers the event to the subscription that requests it.
pub(crate) fn deliver_event(ctx: &JobCtx, event: EventDelivery) -> JobResult<EventDelivery> {
    let ends = deliver_events(ctx, vec![event])?;
    Ok(ends.into_iter().next().unwrap_or(Outcome::Done))
}

/// Delivers events to the subscription that requests them: one, and if it arrives the others, a few
/// at the same time. After a failure each of the others waits for a call of its own, so that a
/// receiver that hangs gets few messages and is waited for once. If the circuit is open, all are
/// held at once. The host matched the events when they were published, so a later change of the
/// subscription's list does not matter.
pub(crate) fn deliver_events(
    ctx: &JobCtx,
    mut events: Vec<EventDelivery>,
) -> Result<Vec<Outcome<EventDelivery>>, JobError> {
    let requested_by = events.first().and_then(|event| event.requested_by.clone());
    if events.iter().any(|event| event.requested_by != requested_by) {
        return Err(JobError::Retry("events for different webhooks".to_owned()));
    }
    let Some(requested_by) = requested_by else {
        return events.into_iter().map(|event| match_later(ctx, event)).collect();
    };
    let Some(mut webhook) = ctx.documents::<Subscription>().find(requested_by)? else {
        return Ok(events.into_iter().map(|_| Outcome::Done).collect());
    };
    let mut known = known(ctx, &events, webhook.uuid())?;
    if !webhook.active {
        // The deliveries are stored as failed, so that they are listed and can be sent again.
        let due = known_or_new(ctx, &webhook, &events, &mut known);
        return Ok(attempt(ctx, &mut webhook, due, false)?.into_iter().map(outcome).collect());
    }
    let mut ends = Vec::with_capacity(events.len());
    while !events.is_empty() {
        let together = if ends.is_empty() { 1 } else { TOGETHER };
        let later = events.split_off(events.len().min(together));
        let due = known_or_new(ctx, &webhook, &events, &mut known);
        ends.extend(attempt(ctx, &mut webhook, due, false)?.into_iter().map(outcome));
        events = later;
        if webhook.failing_since.is_some() && !webhook.circuit.is_open() {
            break;
        }
    }
    ends.extend(events.into_iter().map(Outcome::Continue));
    Ok(ends)
}

/// Enqueues the job that matches an event with the subscriptions.
fn match_later(ctx: &JobCtx, event: EventDelivery) -> JobResult<EventDelivery> {
    if event.name == JobCancelled::NAME {
        circuit::restore_cancelled(ctx, &event)?;
    }
    ctx.enqueue(&FanOutJob(event));
    Ok(Outcome::Done)
}

/// Stored deliveries to one webhook, by id of the delivery.
type StoredDeliveriesById = BTreeMap<Uuid, Stored<StoredDelivery>>;

/// Returns the stored deliveries of these events to one webhook, by id.
fn known(
    ctx: &JobCtx,
    events: &[EventDelivery],
    webhook: Uuid,
) -> Result<StoredDeliveriesById, JobError> {
    let ids = events.iter().map(|event| delivery_id(event.id, webhook));
    let known = ctx.documents::<StoredDelivery>().get_many(ids)?;
    Ok(known.into_iter().map(|delivery| (delivery.uuid(), delivery)).collect())
}

/// Returns the deliveries of these events to the webhook, new ones if they are not known; `None`
/// for an event that was published while the webhook was inactive.
fn known_or_new(
    ctx: &JobCtx,
    webhook: &Stored<Subscription>,
    events: &[EventDelivery],
    known: &mut StoredDeliveriesById,
) -> Vec<Option<Stored<StoredDelivery>>> {
    let delivery = |event: &EventDelivery| {
        let created = || webhook.was_active(event.occurred_at).then(|| new(ctx, event, webhook));
        known.remove(&delivery_id(event.id, webhook.uuid())).or_else(created)
    };
    events.iter().map(delivery).collect()
}

/// Returns a new delivery of an event, which is not stored yet and has version 0.
fn new(
    ctx: &JobCtx,
    event: &EventDelivery,
    webhook: &Stored<Subscription>,
) -> Stored<StoredDelivery> {
    let id = delivery_id(event.id, webhook.uuid());
    let body = body(ctx, &event.name, event.occurred_at, &event.data);
    let named = (event.id, event.name.as_str());
    let now = ctx.now();
    let value = StoredDelivery::new(webhook.uuid(), named, event.occurred_at, body, now);
    Stored { id: id.to_string(), version: 0, created_at: now, updated_at: now, value }
}

/// Stores a delivery, whether it is new or changed.
fn keep(ctx: &JobCtx, delivery: &mut Stored<StoredDelivery>) -> Result<(), JobError> {
    match delivery.version {
        0 => ctx.documents().create(delivery.uuid(), &delivery.value)?,
        _ => ctx.documents().replace(delivery)?,
    }
    Ok(())
}

/// Returns the id of an event's delivery to a webhook: that of the event, which begins with its
/// time, so that deliveries are listed in its order, with the random bits of both ids combined.
fn delivery_id(event: Uuid, webhook: Uuid) -> Uuid {
    const RANDOM: u128 = (1 << 62) - 1;
    Uuid::from_u128(event.as_u128() ^ (webhook.as_u128() & RANDOM))
}

/// Creates and enqueues a delivery of the event for each matching subscription. Skips subscriptions
/// that already have one, because the event may arrive more than once.
pub(crate) fn fan_out(ctx: &JobCtx, FanOutJob(event): FanOutJob) -> JobResult<FanOutJob> {
    let all = ctx.documents::<Subscription>().query();
    let mut wanting = all.limit(MOST_WEBHOOKS).list()?;
    wanting.retain(|webhook| webhook.requests(&event.name, event.occurred_at));
    if wanting.is_empty() {
        return Ok(Outcome::Done);
    }
    let made = ctx.documents::<StoredDelivery>().query().equals("event_id", event.id);
    let made = made.limit(MOST_WEBHOOKS).list()?;
    wanting.retain(|webhook| made.iter().all(|one| one.webhook_id != webhook.uuid()));
    for webhook in wanting {
        let mut delivery = new(ctx, &event, &webhook);
        keep(ctx, &mut delivery)?;
        if webhook.circuit.is_open() {
            circuit::hold(ctx, &webhook);
        } else {
            DeliverJob::new(delivery.uuid()).enqueue(ctx, webhook.uuid(), None);
        }
    }
    Ok(Outcome::Done)
}

pub(crate) fn run(ctx: &JobCtx, job: DeliverJob) -> JobResult<DeliverJob> {
    let Some(delivery) = ctx.documents::<StoredDelivery>().find(job.delivery_id)? else {
        return Ok(Outcome::Done);
    };
    let Some(mut webhook) = ctx.documents::<Subscription>().find(delivery.webhook_id)? else {
        return Ok(Outcome::Done);
    };
    Ok(outcome(attempt(ctx, &mut webhook, vec![Some(delivery)], job.at_once)?.pop().flatten()))
}

/// Time and reason of a delivery's next attempt; `None` if there is none, or if the circuit is open
/// and its probes decide.
type NextAttempt = Option<(Timestamp, String)>;

/// Converts the next attempt of a delivery to the outcome of its job.
fn outcome<J>(next: NextAttempt) -> Outcome<J> {
    next.map_or(Outcome::Done, |(at, why)| Outcome::Retry(at, why))
}

/// Sends those of the deliveries that are pending. If the webhook is inactive, they fail; if the
/// circuit is open, they are held. Returns the next attempt of each.
fn attempt(
    ctx: &JobCtx,
    webhook: &mut Stored<Subscription>,
    deliveries: Vec<Option<Stored<StoredDelivery>>>,
    at_once: bool,
) -> Result<Vec<NextAttempt>, JobError> {
    let mut retries: Vec<NextAttempt> = vec![None; deliveries.len()];
    let (mut places, mut sendable) = (Vec::new(), Vec::new());
    for (place, delivery) in deliveries.into_iter().enumerate() {
        let pending = delivery.filter(|one| one.status == DeliveryStatus::Pending);
        let Some(mut delivery) = pending else { continue };
        if !webhook.active {
            fail(ctx, webhook, delivery)?;
        } else if webhook.circuit.is_open() && !at_once {
            circuit::hold(ctx, webhook);
            if delivery.version == 0 {
                keep(ctx, &mut delivery)?;
            }
        } else {
            places.push(place);
            sendable.push(delivery);
        }
    }
    for (place, retry) in places.into_iter().zip(send(ctx, webhook, sendable, false)?) {
        retries[place] = retry;
    }
    Ok(retries)
}

/// Stores a delivery as failed because its webhook is inactive. A run that conflicted with the
/// deactivation runs again with the same time, and may have sent the message before.
fn fail(
    ctx: &JobCtx,
    webhook: &Stored<Subscription>,
    mut delivery: Stored<StoredDelivery>,
) -> Result<(), JobError> {
    let error = if webhook.was_deactivated_after(ctx.now()) {
        "the webhook was disabled during this attempt; the message may have arrived"
    } else {
        "the webhook is disabled"
    };
    let error = Some(error.to_owned());
    delivery.log(Attempt { at: ctx.now(), response_status: None, error });
    delivery.status = DeliveryStatus::Failed;
    delivery.next_attempt_at = None;
    keep(ctx, &mut delivery)
}

/// Result of one attempt to send a delivery.
struct AttemptResult {
    status: Option<u16>,
    error: Option<String>,
    retry_after: Option<Timestamp>,
}

/// Signs and sends the messages of these deliveries at the same time, and stores the attempts.
/// Returns the next attempt of each.
pub(crate) fn send(
    ctx: &JobCtx,
    webhook: &mut Stored<Subscription>,
    deliveries: Vec<Stored<StoredDelivery>>,
    probing: bool,
) -> Result<Vec<NextAttempt>, JobError> {
    let messages: Vec<_> = deliveries.iter().map(|one| outgoing(ctx, webhook, one)).collect();
    let answers = ctx.send_all(&messages).into_iter().map(|answer| match answer {
        Ok(answer) => heard(ctx, &answer),
        Err(error) => {
            AttemptResult { status: None, error: Some(describe(&error)), retry_after: None }
        }
    });
    let sent = deliveries.into_iter().zip(answers);
    sent.map(|(delivery, heard)| record(ctx, delivery, webhook, &heard, probing)).collect()
}

/// Returns the signed HTTP request of a delivery.
fn outgoing(
    ctx: &JobCtx,
    webhook: &Stored<Subscription>,
    delivery: &Stored<StoredDelivery>,
) -> Outgoing {
    let message = (delivery.event_id, ctx.now(), delivery.body.as_str());
    let headers = signing::headers(ctx, webhook.uuid(), &webhook.generations(ctx.now()), message);
    Outgoing {
        method: "POST".to_owned(),
        url: webhook.url.clone(),
        headers: headers.into_iter().map(|(name, value)| Header { name, value }).collect(),
        body: delivery.body.clone().into_bytes(),
        bearer: None,
        timeout_ms: TIMEOUT_MS,
        max_response_bytes: MOST_RESPONSE_BYTES,
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

/// Stores the result of an attempt with its delivery.
fn record(
    ctx: &JobCtx,
    mut delivery: Stored<StoredDelivery>,
    webhook: &mut Stored<Subscription>,
    heard: &AttemptResult,
    probing: bool,
) -> Result<NextAttempt, JobError> {
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
    judge(ctx, webhook, &delivery, heard, probing)?;
    let own = own.filter(|_| webhook.active);
    if own.is_none() && heard.error.is_some() {
        delivery.status = DeliveryStatus::Failed;
    }
    delivery.next_attempt_at = own.map(|own| webhook.circuit.retry_at.unwrap_or(own));
    delivery.has_own_job = own.is_some() && !webhook.circuit.is_open();
    keep(ctx, &mut delivery)?;
    if own.is_none() && ctx.random_below(FORGET_AFTER) == 0 {
        let once = JobOptions {
            dedupe_key: Some(ForgetOldDeliveriesJob::KIND.to_owned()),
            ..JobOptions::default()
        };
        ctx.enqueue_with(&ForgetOldDeliveriesJob {}, once);
    }
    Ok(own.zip(heard.error.clone()).filter(|_| delivery.has_own_job))
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
