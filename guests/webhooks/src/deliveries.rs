//! Deliveries: one event for one subscription, with its attempts.

use area_sdk::prelude::*;
use area_sdk::text::name;
use area_sdk::{JobOptions, Scope};

use crate::deliver::{self, DeliverJob, FORGOTTEN_TOGETHER};
use crate::subscriptions::Subscription;

/// Maximum number of attempts that are stored with a delivery.
const LOGGED: usize = 20;

/// Time after its next attempt from which a pending delivery can be sent again, in seconds. A job
/// that waits for its turn or for the receiver begins and ends its attempt before.
const OVERDUE_SECONDS: i64 = 300;

/// Status of a delivery.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum DeliveryStatus {
    /// The delivery waits for its first or next attempt.
    Pending,
    /// The receiver accepted the delivery with a 2xx response.
    Succeeded,
    /// The delivery failed; the service makes no further attempt unless a user sends it again.
    Failed,
}

/// One attempt to deliver an event.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Attempt {
    pub(crate) at: Timestamp,
    /// HTTP status of the response; null if there was no response.
    pub(crate) response_status: Option<u16>,
    /// Description of the error; null if the attempt succeeded.
    pub(crate) error: Option<String>,
}

/// A stored delivery.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct StoredDelivery {
    pub(crate) webhook_id: Uuid,
    pub(crate) event_id: Uuid,
    pub(crate) event: String,
    pub(crate) occurred_at: Timestamp,
    /// Body of the delivery's HTTP request, as JSON text.
    pub(crate) body: String,
    pub(crate) status: DeliveryStatus,
    /// Number of attempts since a user last requested the delivery, or since it was created.
    pub(crate) tries: u32,
    pub(crate) attempt_count: u32,
    pub(crate) attempts: Vec<Attempt>,
    pub(crate) next_attempt_at: Option<Timestamp>,
    /// Whether the job of the last attempt makes the next one. False for a delivery that failed
    /// while the circuit was open: it is held.
    #[serde(default)]
    pub(crate) has_own_job: bool,
}

document!(StoredDelivery, "deliveries");

impl StoredDelivery {
    pub(crate) fn new(
        webhook_id: Uuid,
        (event_id, event): (Uuid, &str),
        occurred_at: Timestamp,
        body: String,
        now: Timestamp,
    ) -> Self {
        Self {
            webhook_id,
            event_id,
            event: event.to_owned(),
            occurred_at,
            body,
            status: DeliveryStatus::Pending,
            tries: 0,
            attempt_count: 0,
            attempts: Vec::new(),
            next_attempt_at: Some(now),
            has_own_job: false,
        }
    }

    /// Whether a pending delivery was not held: its own job makes its next attempt later.
    pub(crate) fn waits_for_own_job(&self, now: Timestamp) -> bool {
        self.has_own_job && self.next_attempt_at > Some(now)
    }

    /// Adds an attempt to the delivery. Removes the oldest one if the maximum number is stored.
    pub(crate) fn log(&mut self, attempt: Attempt) {
        self.tries += 1;
        self.attempt_count += 1;
        if self.attempts.len() >= LOGGED {
            self.attempts.remove(0);
        }
        self.attempts.push(attempt);
    }
}

/// A delivery of one event to one webhook.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Delivery {
    id: Uuid,
    webhook_id: Uuid,
    /// Id of the event, sent as `webhook-id` with every attempt.
    event_id: Uuid,
    event: String,
    occurred_at: Timestamp,
    status: DeliveryStatus,
    attempt_count: u32,
    /// The latest 20 attempts of the delivery, oldest first.
    attempts: Vec<Attempt>,
    /// HTTP status of the latest response; null if there was none.
    response_status: Option<u16>,
    next_attempt_at: Option<Timestamp>,
    created_at: Timestamp,
    updated_at: Timestamp,
}

impl From<Stored<StoredDelivery>> for Delivery {
    fn from(delivery: Stored<StoredDelivery>) -> Self {
        Self {
            id: delivery.uuid(),
            created_at: delivery.created_at,
            updated_at: delivery.updated_at,
            webhook_id: delivery.value.webhook_id,
            event_id: delivery.value.event_id,
            event: delivery.value.event,
            occurred_at: delivery.value.occurred_at,
            status: delivery.value.status,
            attempt_count: delivery.value.attempt_count,
            response_status: delivery.value.attempts.last().and_then(|last| last.response_status),
            attempts: delivery.value.attempts,
            next_attempt_at: delivery.value.next_attempt_at,
        }
    }
}

/// Returns the active webhook with this id, or an error.
fn active(ctx: &Ctx, id: Uuid) -> Result<Stored<Subscription>> {
    let webhook = ctx.documents::<Subscription>().get(id)?;
    if webhook.active {
        return Ok(webhook);
    }
    let detail = "This webhook is disabled.";
    Err(Problem::conflict("webhook_disabled", detail).hint("Set `active` to true first."))
}

/// Sent to one webhook because an admin requested a test. Webhooks cannot subscribe to it.
#[derive(Serialize, JsonSchema)]
#[schemars(extend("x-subscribable" = false))]
pub(crate) struct WebhookTest {
    webhook_id: Uuid,
}

event!(WebhookTest, "webhook.test");

pub(crate) fn test(ctx: &Ctx, Path(webhook_id): Path<Uuid>) -> Result<Created<Delivery>> {
    active(ctx, webhook_id)?;
    let (id, event_id, now) = (ctx.new_id(), ctx.new_id(), ctx.now());
    let body = deliver::body(ctx, WebhookTest::NAME, now, &WebhookTest { webhook_id });
    let value = StoredDelivery::new(webhook_id, (event_id, WebhookTest::NAME), now, body, now);
    let stored = ctx.documents().create_stored(id, value)?;
    DeliverJob::at_once(id).enqueue(ctx, webhook_id, None);
    Ok(Created(stored.into()))
}

/// Query parameters that filter the list of deliveries.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct ListParams {
    /// Only deliveries with this status.
    status: Option<DeliveryStatus>,
}

pub(crate) fn list(
    ctx: &Ctx,
    Path(webhook_id): Path<Uuid>,
    Params(params): Params<ListParams>,
    paging: Paging,
) -> Result<Page<Delivery>> {
    let webhook = ctx.documents::<Subscription>().get(webhook_id)?;
    let all = ctx.documents::<StoredDelivery>().query().equals("webhook_id", webhook_id);
    let some = all.equals_if("status", params.status.as_ref().map(name));
    let page = some.paging(paging).page()?;
    Ok(page.map(|mut delivery| {
        // Held deliveries wait for their endpoint.
        if delivery.status == DeliveryStatus::Pending && webhook.circuit.is_open() {
            delivery.next_attempt_at = webhook.circuit.retry_at;
        }
        delivery.into()
    }))
}

/// Path parameters of a delivery: ids of the webhook and the delivery.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct DeliveryPath {
    webhook_id: Uuid,
    delivery_id: Uuid,
}

pub(crate) fn resend(ctx: &Ctx, Params(path): Params<DeliveryPath>) -> Result<Created<Delivery>> {
    let webhook = active(ctx, path.webhook_id)?;
    let mut delivery = ctx.documents::<StoredDelivery>().get(path.delivery_id)?;
    if delivery.webhook_id != webhook.uuid() {
        return Err(Problem::not_found());
    }
    let due = webhook.circuit.retry_at.or(delivery.next_attempt_at);
    let overdue = due.is_some_and(|due| ctx.now().seconds_since(due) > OVERDUE_SECONDS);
    if delivery.status == DeliveryStatus::Pending && !overdue {
        let detail = "This delivery is still being tried.";
        return Err(Problem::conflict("delivery_pending", detail));
    }
    delivery.status = DeliveryStatus::Pending;
    delivery.tries = 0;
    delivery.next_attempt_at = Some(ctx.now());
    ctx.documents().replace(&mut delivery)?;
    DeliverJob::at_once(path.delivery_id).enqueue(ctx, path.webhook_id, None);
    Ok(Created(delivery.into()))
}

/// Job that deletes the deliveries of a deleted webhook, which nobody can read any more, a page at
/// a time.
#[derive(Serialize, Deserialize)]
pub(crate) struct DiscardDeliveriesJob {
    webhook_id: Uuid,
}

job!(DiscardDeliveriesJob, "discard_deliveries");

impl DiscardDeliveriesJob {
    pub(crate) fn enqueue(scope: &Scope, webhook_id: Uuid) {
        let resource = JobOptions { resource: Some(webhook_id), ..JobOptions::default() };
        scope.enqueue_with(&Self { webhook_id }, resource);
    }
}

pub(crate) fn discard(ctx: &JobCtx, job: DiscardDeliveriesJob) -> JobResult<DiscardDeliveriesJob> {
    let all = ctx.documents::<StoredDelivery>().query().equals("webhook_id", job.webhook_id);
    Ok(match all.limit(FORGOTTEN_TOGETHER).delete_page()? {
        0 => Outcome::Done,
        _ => Outcome::Continue(job),
    })
}
