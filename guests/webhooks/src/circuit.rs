//! Circuit breaker of a webhook's receiver.
//!
//! After several failed deliveries the circuit opens. While it is open, deliveries are held without
//! a job, and one at a time is sent as a probe. Probes follow the retry schedule. A success closes
//! the circuit, and held deliveries are enqueued in the order of their events. Several are sent at
//! a time, so they may arrive in another order.
//!
//! Invariant: while the circuit is open, a probe waits or runs. A change of the circuit writes the
//! subscription, so a concurrent call that held a delivery is run again.

use area_sdk::prelude::*;
use area_sdk::text::name;
use area_sdk::{EventDelivery, JobError, JobOptions, Scope};
use area_shared::queue::JobCancelled;
use schemars::JsonSchema;

use crate::deliver::{self, DeliverJob};
use crate::deliveries::{DeliveryStatus, StoredDelivery};
use crate::schedule;
use crate::subscriptions::Subscription;

/// Name of this area in the event `job.cancelled`.
const AREA: &str = "webhooks";

/// Number of different deliveries that must fail in a row before the circuit opens.
const FAILURES_TO_OPEN: u32 = 3;

/// Number of held deliveries from which a probe chooses one.
const CANDIDATES: u32 = 20;

/// Number of held deliveries that are enqueued between two pauses, so that few of them are in the
/// queue if the receiver fails again.
const DRAINED: u32 = 100;
const DRAIN_PAUSE_MS: i64 = 500;

/// State of the circuit breaker of a webhook's receiver.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Circuit {
    /// Number of failures since the last success. While the circuit is closed, repeated failures of
    /// one delivery count once.
    failures: u32,
    /// Id of the delivery that failed last.
    last_failed: Option<Uuid>,
    /// Time of the next probe; null while the circuit is closed.
    pub(crate) retry_at: Option<Timestamp>,
}

/// Job that sends one held delivery to a failing receiver, to test whether the receiver has
/// recovered.
#[derive(Serialize, Deserialize)]
pub(crate) struct CircuitProbeJob {
    webhook_id: Uuid,
    /// Time of the probe for which the circuit waits. If the circuit has another time, this job is
    /// outdated.
    retry_at: Timestamp,
}

job!(CircuitProbeJob, "probe");

/// Job that enqueues the held deliveries after the circuit was closed.
#[derive(Serialize, Deserialize)]
pub(crate) struct EnqueueHeldDeliveriesJob {
    webhook_id: Uuid,
    cursor: Option<String>,
}

job!(EnqueueHeldDeliveriesJob, "drain");

impl Circuit {
    /// Whether the circuit is open, so that deliveries are held.
    pub(crate) fn is_open(&self) -> bool {
        self.retry_at.is_some()
    }
}

/// Records a failed attempt to send a delivery in the circuit of its receiver. `asked` is the time
/// from the receiver's `Retry-After`.
pub(crate) fn failed(
    ctx: &JobCtx,
    webhook: &mut Stored<Subscription>,
    delivery: &Stored<StoredDelivery>,
    asked: Option<Timestamp>,
    probing: bool,
) {
    let circuit = &webhook.circuit;
    let counts =
        if circuit.is_open() { probing } else { circuit.last_failed != Some(delivery.uuid()) };
    if !counts {
        return;
    }
    let failures = circuit.failures.saturating_add(1);
    webhook.circuit.failures = failures;
    webhook.circuit.last_failed = Some(delivery.uuid());
    if failures >= FAILURES_TO_OPEN {
        let step = (failures - FAILURES_TO_OPEN + 1).max(delivery.tries);
        let at = schedule::next_probe(step, ctx.now(), ctx.random_below(4001), asked);
        webhook.circuit.retry_at = Some(at);
        await_probe(ctx, webhook.uuid(), at);
    }
}

/// Closes the circuit of a webhook's receiver after a success, or after a change of the
/// subscription.
pub(crate) fn close(scope: &Scope, webhook: &mut Stored<Subscription>) {
    if webhook.circuit.is_open() {
        enqueue_drain(scope, webhook.uuid(), None, None);
    }
    webhook.circuit = Circuit::default();
}

fn enqueue_drain(scope: &Scope, webhook_id: Uuid, cursor: Option<String>, at: Option<Timestamp>) {
    let later = JobOptions { at, resource: Some(webhook_id), ..JobOptions::default() };
    scope.enqueue_with(&EnqueueHeldDeliveriesJob { webhook_id, cursor }, later);
}

/// Enqueues a probe or drain again that an admin cancelled: held deliveries have no job of their
/// own.
pub(crate) fn restore_cancelled(ctx: &JobCtx, event: &EventDelivery) -> Result<(), JobError> {
    let job: JobCancelled = event.data()?;
    if let Some(id) = job.resource_of::<CircuitProbeJob>(AREA)
        && let Some(webhook) = ctx.documents::<Subscription>().find(id)?
    {
        hold(ctx, &webhook);
    }
    if let Some(id) = job.resource_of::<EnqueueHeldDeliveriesJob>(AREA) {
        enqueue_drain(ctx, id, None, None);
    }
    Ok(())
}

/// Enqueues a probe for a held delivery, unless the webhook's circuit already waits for one.
pub(crate) fn hold(scope: &Scope, webhook: &Stored<Subscription>) {
    if let Some(at) = webhook.circuit.retry_at {
        await_probe(scope, webhook.uuid(), at);
    }
}

fn await_probe(scope: &Scope, webhook_id: Uuid, at: Timestamp) {
    let later = JobOptions {
        at: Some(at),
        resource: Some(webhook_id),
        dedupe_key: Some(format!("{webhook_id}.{}", at.0)),
    };
    scope.enqueue_with(&CircuitProbeJob { webhook_id, retry_at: at }, later);
}

/// Returns a query for a subscription's pending deliveries, oldest event first.
fn pending(scope: &Scope, webhook: Uuid) -> area_sdk::Query<'_, StoredDelivery> {
    let all = scope.documents::<StoredDelivery>().query().equals("webhook_id", webhook);
    all.equals("status", name(&DeliveryStatus::Pending)).ascending("occurred_at")
}

pub(crate) fn probe(ctx: &JobCtx, job: CircuitProbeJob) -> JobResult<CircuitProbeJob> {
    let Some(mut webhook) = ctx.documents::<Subscription>().find(job.webhook_id)? else {
        return Ok(Outcome::Done);
    };
    if webhook.circuit.retry_at != Some(job.retry_at) {
        return Ok(Outcome::Done);
    }
    let Some(delivery) = choose(ctx, job.webhook_id)? else {
        // No delivery is held; the next event's delivery becomes the probe.
        webhook.circuit.retry_at = None;
        ctx.documents().replace(&mut webhook)?;
        return Ok(Outcome::Done);
    };
    // If the probe fails, the open circuit decides when the next one is due.
    deliver::send(ctx, &mut webhook, vec![delivery], true)?;
    Ok(Outcome::Done)
}

/// Chooses the held delivery with the fewest attempts, so that one message that the receiver always
/// refuses does not keep the circuit open.
fn choose(ctx: &JobCtx, webhook: Uuid) -> Result<Option<Stored<StoredDelivery>>, JobError> {
    let oldest = pending(ctx, webhook).limit(CANDIDATES).list()?;
    Ok(oldest.into_iter().min_by_key(|delivery| delivery.tries))
}

pub(crate) fn drain(
    ctx: &JobCtx,
    job: EnqueueHeldDeliveriesJob,
) -> JobResult<EnqueueHeldDeliveriesJob> {
    let webhook_id = job.webhook_id;
    let webhook = ctx.documents::<Subscription>().find(webhook_id)?;
    if webhook.is_none_or(|webhook| webhook.circuit.is_open()) {
        return Ok(Outcome::Done);
    }
    let page = pending(ctx, webhook_id).cursor(job.cursor).limit(DRAINED).page()?;
    let now = ctx.now();
    let held = page.items.iter().filter(|delivery| !delivery.waits_for_own_job(now));
    for (delivery, order) in held.zip(0..) {
        let at = Timestamp(now.0 + order);
        DeliverJob::new(delivery.uuid()).enqueue(ctx, webhook_id, Some(at));
    }
    if let Some(cursor) = page.next_cursor {
        enqueue_drain(ctx, webhook_id, Some(cursor), Some(ctx.now().plus_ms(DRAIN_PAUSE_MS)));
    }
    Ok(Outcome::Done)
}
