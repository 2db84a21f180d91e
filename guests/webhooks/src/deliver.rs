//! The telling. An event becomes a delivery for each subscription that wants
//! it; a delivery's job first reads and signs, and in a step of its own sends
//! and notes the answer, so that no transaction is open while a receiver takes
//! its time.

use area_sdk::prelude::*;
use area_sdk::wit::assurance::area::egress::{Error as EgressError, Header, Incoming, Outgoing};
use area_sdk::{EventDelivery, JobError, Scope};

use crate::deliveries::{self, Attempt, DeliveryStatus, StoredDelivery};
use crate::schedule::{self, GIVE_UP_SECONDS};
use crate::signing;
use crate::subscriptions::{self, DisabledReason, MOST_WEBHOOKS, Subscription};

/// How long a receiver may take.
const TIMEOUT_MS: u32 = 15_000;

/// How much of an answer is read; none of it is used.
const MOST_RESPONSE_BYTES: u32 = 1024 * 1024;

/// How long deliveries are kept.
const KEPT_SECONDS: i64 = 30 * 24 * 3600;

/// The rules, for the operation's documentation.
pub(crate) const DESCRIPTION: &str = "\
Deliveries follow Standard Webhooks 1.0: a POST of `{type, timestamp, data}` with `webhook-id` \
(the event's id, the same at every attempt), `webhook-timestamp` and `webhook-signature` (`v1,` \
and base64 of HMAC-SHA256 over `id.timestamp.body` under the bytes that `secret` holds in base64 \
after `whsec_`). The secret is shown here and after a rotation, once.\n\n\
Delivered at least once. Only 2xx is success; redirects are not followed; an answer must come \
within 15 s. Retries after 5 s, 5 m, 30 m, 2 h, 5 h, 10 h, 14 h, 20 h and 24 h, each up to 20 % \
sooner or later, not before what `Retry-After` asks for. 410 disables the webhook, and so do 120 \
hours without a success; `webhook.disabled` tells.\n\n\
`url` is https, without user information, and leads to a public address.";

/// A delivery's job; what is ready to be sent, once it is.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Deliver {
    delivery_id: Uuid,
    prepared: Option<Prepared>,
}

/// A signed message, for the attempt of the job that signed it.
#[derive(Clone, Serialize, Deserialize)]
struct Prepared {
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
        Self { delivery_id, prepared: None }
    }
}

/// Forgets a secret whose time beside its successor is over.
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

/// What a receiver gets.
#[derive(Serialize)]
struct Message<'a, T> {
    r#type: &'a str,
    timestamp: Timestamp,
    data: &'a T,
}

/// What a receiver gets, as it is signed and sent.
pub(crate) fn body<T: Serialize>(r#type: &str, timestamp: Timestamp, data: &T) -> String {
    serde_json::to_string(&Message { r#type, timestamp, data }).expect("data that JSON can express")
}

/// Makes a delivery of an event for each subscription that wants it. The event
/// may come again: subscriptions that have their delivery are passed over.
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
    let body = body(&event.name, event.occurred_at, &event.data);
    let new: Vec<(Uuid, StoredDelivery)> = wanting
        .iter()
        .map(Stored::uuid)
        .filter(|webhook| !made.contains(webhook))
        .map(|webhook| (webhook, (event.id, event.name.as_str()), body.clone()))
        .map(|(webhook, named, body)| {
            let at = event.occurred_at;
            (ctx.new_id(), StoredDelivery::new(webhook, named, at, body, ctx.now()))
        })
        .collect();
    ctx.documents().create_all(new.iter().map(|(id, delivery)| (id, delivery)))?;
    for (id, delivery) in &new {
        deliveries::enqueue(ctx, *id, delivery.webhook_id);
    }
    Ok(Outcome::Done)
}

pub(crate) fn run(ctx: &JobCtx, job: Deliver) -> JobResult<Deliver> {
    match job.prepared {
        // A message that another attempt signed may be too old to be believed.
        Some(prepared) if prepared.attempt == ctx.attempt() => {
            let answer = send(ctx, prepared);
            note(ctx, job.delivery_id, &answer)
        }
        _ => prepare(ctx, job.delivery_id),
    }
}

/// A delivery and its subscription.
type Told = (Stored<StoredDelivery>, Stored<Subscription>);

/// Both, where they are still there.
fn look_up(ctx: &JobCtx, id: Uuid) -> Result<Option<Told>, JobError> {
    let Some(delivery) = ctx.documents::<StoredDelivery>().find(id)? else { return Ok(None) };
    let webhook = ctx.documents::<Subscription>().find(delivery.webhook_id)?;
    Ok(webhook.map(|webhook| (delivery, webhook)))
}

/// Signs the message, unless nobody wants it any more.
fn prepare(ctx: &JobCtx, id: Uuid) -> JobResult<Deliver> {
    let Some((mut delivery, webhook)) = look_up(ctx, id)? else { return Ok(Outcome::Done) };
    if delivery.status != DeliveryStatus::Pending {
        return Ok(Outcome::Done);
    }
    if !webhook.active {
        delivery.status = DeliveryStatus::Failed;
        delivery.next_attempt_at = None;
        ctx.documents().replace(&mut delivery)?;
        return Ok(Outcome::Done);
    }
    let now = ctx.now();
    let message = (delivery.event_id, now, delivery.body.as_str());
    let headers = signing::headers(ctx, webhook.uuid(), &webhook.generations(now), message);
    let prepared = Prepared {
        attempt: ctx.attempt(),
        url: webhook.value.url,
        headers,
        body: delivery.value.body,
    };
    Ok(Outcome::Continue(Deliver { delivery_id: id, prepared: Some(prepared) }))
}

/// What came of an attempt.
struct Heard {
    status: Option<u16>,
    error: Option<String>,
    retry_after: Option<Timestamp>,
}

fn send(ctx: &JobCtx, prepared: Prepared) -> Heard {
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
        Err(error) => Heard { status: None, error: Some(describe(&error)), retry_after: None },
    }
}

fn heard(ctx: &JobCtx, answer: &Incoming) -> Heard {
    let mut headers = answer.headers.iter();
    let asked = headers.find(|header| header.name.eq_ignore_ascii_case("retry-after"));
    let success = (200..300).contains(&answer.status);
    Heard {
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
        EgressError::Timeout => "no answer within 15 s".to_owned(),
        EgressError::TooLarge => "the answer is larger than 1 MiB".to_owned(),
        EgressError::NoSecret | EgressError::NotInAJob => panic!("egress misused: {error:?}"),
    }
}

/// Writes an attempt down, and says what comes next.
fn note(ctx: &JobCtx, id: Uuid, heard: &Heard) -> JobResult<Deliver> {
    let Some((mut delivery, mut webhook)) = look_up(ctx, id)? else { return Ok(Outcome::Done) };
    let now = ctx.now();
    delivery.log(Attempt { at: now, response_status: heard.status, error: heard.error.clone() });
    let next = match &heard.error {
        None => {
            delivery.status = DeliveryStatus::Succeeded;
            None
        }
        Some(_) => {
            let jitter = ctx.random_below(4001);
            schedule::next_attempt(delivery.tries, now, jitter, heard.retry_after)
        }
    };
    judge(ctx, &mut webhook, heard)?;
    let next = next.filter(|_| webhook.active);
    if next.is_none() && heard.error.is_some() {
        delivery.status = DeliveryStatus::Failed;
    }
    delivery.next_attempt_at = next;
    ctx.documents().replace(&mut delivery)?;
    if next.is_none() {
        forget_old(ctx)?;
    }
    Ok(match (next, &heard.error) {
        (Some(at), Some(why)) => Outcome::Retry(at, why.clone()),
        _ => Outcome::Done,
    })
}

/// Keeps how the subscription is doing, writing only what changes.
fn judge(ctx: &JobCtx, webhook: &mut Stored<Subscription>, heard: &Heard) -> Result<(), JobError> {
    let now = ctx.now();
    let failing = heard.error.as_ref().map(|_| webhook.failing_since.unwrap_or(now));
    let too_long = failing.is_some_and(|since| now.seconds_since(since) >= GIVE_UP_SECONDS);
    let gone = heard.status == Some(410);
    if failing == webhook.failing_since && !too_long && !gone {
        return Ok(());
    }
    webhook.failing_since = failing;
    if webhook.active && (gone || too_long) {
        let reason = if gone { DisabledReason::Gone } else { DisabledReason::Failing };
        subscriptions::disable(ctx, webhook, reason);
    }
    Ok(ctx.documents().replace(webhook)?)
}

/// Now and then, forgets deliveries that are older than anybody asks for.
fn forget_old(scope: &Scope) -> Result<(), JobError> {
    if scope.random_below(16) != 0 {
        return Ok(());
    }
    let before = scope.now().plus_seconds(-KEPT_SECONDS);
    let old = scope.documents::<StoredDelivery>().query();
    let old = old.range("occurred_at", None, Some(before.into())).ascending("occurred_at");
    for delivery in old.limit(100).list()? {
        scope.documents().delete(&delivery)?;
    }
    Ok(())
}
