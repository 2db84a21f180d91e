//! Deliveries: one event for one subscription, and how telling it went.

use area_sdk::prelude::*;
use area_sdk::{Later, Scope};

use crate::deliver::{self, Deliver};
use crate::subscriptions::Subscription;

/// How many attempts a delivery's log shows.
const LOGGED: usize = 20;

/// How a delivery stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum DeliveryStatus {
    /// To be tried, or tried again.
    Pending,
    /// Heard.
    Succeeded,
    /// Given up.
    Failed,
}

impl DeliveryStatus {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
        }
    }
}

/// One attempt.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Attempt {
    pub(crate) at: Timestamp,
    /// Null where no answer came.
    pub(crate) response_status: Option<u16>,
    /// Null where it was heard.
    pub(crate) error: Option<String>,
}

/// A delivery as it is kept.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct StoredDelivery {
    pub(crate) webhook_id: Uuid,
    pub(crate) event_id: Uuid,
    pub(crate) event: String,
    pub(crate) occurred_at: Timestamp,
    /// What is sent, to the byte.
    pub(crate) body: String,
    pub(crate) status: DeliveryStatus,
    /// Attempts since it was last asked for.
    pub(crate) tries: u32,
    pub(crate) attempt_count: u32,
    pub(crate) attempts: Vec<Attempt>,
    pub(crate) next_attempt_at: Option<Timestamp>,
}

impl Document for StoredDelivery {
    const COLLECTION: &'static str = "deliveries";
}

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
        }
    }

    /// Notes an attempt, dropping the oldest of a long log.
    pub(crate) fn log(&mut self, attempt: Attempt) {
        self.tries += 1;
        self.attempt_count += 1;
        if self.attempts.len() >= LOGGED {
            self.attempts.remove(0);
        }
        self.attempts.push(attempt);
    }
}

/// A delivery.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Delivery {
    id: Uuid,
    webhook_id: Uuid,
    /// The `webhook-id` of every attempt.
    event_id: Uuid,
    event: String,
    occurred_at: Timestamp,
    status: DeliveryStatus,
    attempt_count: u32,
    /// The latest 20, oldest first.
    attempts: Vec<Attempt>,
    /// The latest answer's; null where none came.
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

/// Puts a delivery into the queue; one that waits there already is not doubled.
pub(crate) fn enqueue(scope: &Scope, delivery_id: Uuid, webhook_id: Uuid) {
    scope.enqueue_with(&Deliver::new(delivery_id), later(delivery_id, webhook_id));
}

/// The same, for a later moment.
pub(crate) fn enqueue_at(scope: &Scope, delivery_id: Uuid, webhook_id: Uuid, at: Timestamp) {
    let later = Later { at: Some(at), ..later(delivery_id, webhook_id) };
    scope.enqueue_with(&Deliver::new(delivery_id), later);
}

/// The same for what a person asked for, which is sent even while the endpoint
/// fails.
fn enqueue_at_once(scope: &Scope, delivery_id: Uuid, webhook_id: Uuid) {
    scope.enqueue_with(&Deliver::at_once(delivery_id), later(delivery_id, webhook_id));
}

fn later(delivery_id: Uuid, webhook_id: Uuid) -> Later {
    Later {
        resource: Some(webhook_id),
        dedupe_key: Some(delivery_id.to_string()),
        ..Later::default()
    }
}

/// A webhook that is told of things.
fn active(ctx: &Ctx, id: Uuid) -> Result<Stored<Subscription>> {
    let webhook = ctx.documents::<Subscription>().get(id)?;
    if webhook.active {
        return Ok(webhook);
    }
    let detail = "This webhook is disabled.";
    Err(Problem::conflict("webhook_disabled", detail).hint("Set `active` to true first."))
}

/// What a test tells.
#[derive(Serialize)]
struct TestData {
    webhook_id: Uuid,
}

pub(crate) fn test(ctx: &Ctx, Path(webhook_id): Path<Uuid>) -> Result<Created<Delivery>> {
    active(ctx, webhook_id)?;
    let (id, event_id, now) = (ctx.new_id(), ctx.new_id(), ctx.now());
    let event = "webhook.test";
    let body = deliver::body(event, now, &TestData { webhook_id });
    let value = StoredDelivery::new(webhook_id, (event_id, event), now, body, now);
    ctx.documents().create(id, &value)?;
    enqueue_at_once(ctx, id, webhook_id);
    let id = id.to_string();
    let stored = Stored { id, version: 1, created_at: now, updated_at: now, value };
    Ok(Created(stored.into()))
}

/// Which deliveries.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct ListParams {
    /// Only those that stand so.
    status: Option<DeliveryStatus>,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
    /// How many a page has at most.
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 100))]
    limit: u32,
}

fn default_limit() -> u32 {
    50
}

pub(crate) fn list(
    ctx: &Ctx,
    Path(webhook_id): Path<Uuid>,
    Params(params): Params<ListParams>,
) -> Result<Page<Delivery>> {
    let webhook = ctx.documents::<Subscription>().get(webhook_id)?;
    let all = ctx.documents::<StoredDelivery>().query().equals("webhook_id", webhook_id);
    let some = all.equals_if("status", params.status.map(DeliveryStatus::as_str));
    let page = some.cursor(params.cursor).limit(params.limit).page()?;
    Ok(page.map(|mut delivery| {
        // Held ones wait for their endpoint.
        if delivery.status == DeliveryStatus::Pending && webhook.circuit.is_open() {
            delivery.next_attempt_at = webhook.circuit.retry_at;
        }
        delivery.into()
    }))
}

/// Which delivery.
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
    if delivery.status == DeliveryStatus::Pending {
        let detail = "This delivery is still being tried.";
        return Err(Problem::conflict("delivery_pending", detail));
    }
    delivery.status = DeliveryStatus::Pending;
    delivery.tries = 0;
    delivery.next_attempt_at = Some(ctx.now());
    ctx.documents().replace(&mut delivery)?;
    enqueue_at_once(ctx, path.delivery_id, path.webhook_id);
    Ok(Created(delivery.into()))
}
