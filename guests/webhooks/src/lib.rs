//! Webhooks (operation 13): subscriptions to events and their delivery by Standard Webhooks 1.0.
//! The host enqueues an event once for each subscription that requests it. The job sends the
//! message and is retried until the receiver accepts it.

mod circuit;
mod deliver;
mod deliveries;
mod schedule;
mod signing;
mod subscriptions;

use area_sdk::prelude::*;
use area_shared::queue::JobCancelled;

use circuit::{CircuitProbeJob, EnqueueHeldDeliveriesJob};
use deliver::{DeliverJob, FanOutJob, ForgetOldDeliveriesJob, ForgetSecretJob};
use deliveries::{DiscardDeliveriesJob, StoredDelivery, WebhookTest};
use subscriptions::{Subscription, WebhookDisabled};

/// Declares the area `webhooks`: its operations, collections, events and jobs.
pub fn area() -> Area {
    let area = Area::new("webhooks", env!("CARGO_PKG_VERSION"))
        .summary("Webhook subscriptions and their deliveries")
        .uses(&[Capability::Secrets, Capability::Crypto, Capability::Egress])
        .collections([
            Collection::of::<Subscription>().summary("Webhooks with the events they subscribe to"),
            Collection::of::<StoredDelivery>()
                .summary("Deliveries: one event for one subscription, with its attempts")
                .unique(&["webhook_id", "event_id"])
                .index(&["webhook_id", "status"])
                .index(&["webhook_id", "status", "occurred_at"])
                .index(&["event_id"])
                .index(&["occurred_at"]),
        ])
        .event::<WebhookDisabled>(
            "A subscription was disabled because its receiver did not respond",
        )
        .event::<WebhookTest>("An admin requested a test of the webhook")
        .on("*", deliver::deliver_event)
        // Arrives also if no webhook requests it.
        .on(JobCancelled::NAME, deliver::deliver_event)
        .events_in(Lane::Delivery, 30, 20_000)
        .event_batch(deliver::BATCH, deliver::deliver_events)
        .job::<DeliverJob>(Lane::Delivery, 30, 20_000, deliver::run)
        .job::<FanOutJob>(Lane::Delivery, 30, 20_000, deliver::fan_out)
        .job::<CircuitProbeJob>(Lane::Delivery, 30, 20_000, circuit::probe)
        .job::<EnqueueHeldDeliveriesJob>(Lane::Maintenance, 30, 20_000, circuit::drain)
        .job::<ForgetOldDeliveriesJob>(Lane::Maintenance, 10, 20_000, deliver::forget_old)
        .job::<DiscardDeliveriesJob>(Lane::Maintenance, 10, 20_000, deliveries::discard)
        .job::<ForgetSecretJob>(Lane::Maintenance, 10, 5_000, deliver::forget_secret);
    delivery_routes(subscription_routes(area))
}

const WEBHOOKS: &str = "/v1/workspaces/{workspace_id}/webhooks";
const WEBHOOK: &str = "/v1/workspaces/{workspace_id}/webhooks/{webhook_id}";

fn subscription_routes(area: Area) -> Area {
    area.routes([
        post("create_webhook", WEBHOOKS)
            .summary("Subscribe a URL to events")
            .description(deliver::DESCRIPTION)
            .in_contract()
            .role(Role::Admin)
            .problems(&["too_many_webhooks"])
            .example(include_str!("../examples/create_webhook.json"))
            .handler(subscriptions::create),
        get("list_webhooks", WEBHOOKS)
            .summary("List webhooks, newest first")
            .description("One page, without secrets. Disabled webhooks are listed with the reason.")
            .example(include_str!("../examples/list_webhooks.json"))
            .handler(subscriptions::list),
        get("get_webhook", WEBHOOK)
            .summary("Read a webhook")
            .description(
                "Without its secret, which only creation and rotation return. The `ETag` of the \
                 response is the version that a change names in `If-Match`.",
            )
            .example(include_str!("../examples/get_webhook.json"))
            .handler(subscriptions::show),
        patch("update_webhook", WEBHOOK)
            .summary("Change a webhook")
            .description(
                "Absent members keep their values. A new URL, and activating the webhook again, \
                 reset its failures. New `events` apply to events from then on. If `active` \
                 becomes false, deliveries that wait become `failed` and can be sent again once it \
                 is true. Deliveries that are being sent still go to the former URL, for up to \
                 135 s with a slow receiver.",
            )
            .role(Role::Admin)
            .example(include_str!("../examples/update_webhook.json"))
            .handler(subscriptions::update),
        post(
            "rotate_webhook_secret",
            "/v1/workspaces/{workspace_id}/webhooks/{webhook_id}/rotate-secret",
        )
        .summary("Rotate a webhook's secret")
        .description(
            "The secret is shown once. For 24 hours deliveries also have a signature with the old \
            one.",
        )
        .role(Role::Admin)
        .example(include_str!("../examples/rotate_webhook_secret.json"))
        .if_match()
        .handler(subscriptions::rotate_secret),
        delete("delete_webhook", WEBHOOK)
            .summary("Delete a webhook")
            .description(
                "Its deliveries are deleted; pending ones are cancelled. Those that are being sent \
                 still arrive, for up to 135 s with a slow receiver.",
            )
            .role(Role::Admin)
            .handler(subscriptions::remove),
    ])
}

fn delivery_routes(area: Area) -> Area {
    area.routes([
        post("test_webhook", "/v1/workspaces/{workspace_id}/webhooks/{webhook_id}/test")
            .summary("Send a webhook.test event to one webhook")
            .description(
                "Sends the event `webhook.test` at once and returns the delivery; read the \
                 delivery for its result.",
            )
            .role(Role::Admin)
            .problems(&["webhook_disabled"])
            .example(include_str!("../examples/test_webhook.json"))
            .handler(deliveries::test),
        get(
            "list_webhook_deliveries",
            "/v1/workspaces/{workspace_id}/webhooks/{webhook_id}/deliveries",
        )
        .summary("List a webhook's deliveries, newest first")
        .description("Deliveries are stored for 30 days.")
        .example(include_str!("../examples/list_webhook_deliveries.json"))
        .handler(deliveries::list),
        post(
            "resend_webhook_delivery",
            "/v1/workspaces/{workspace_id}/webhooks/{webhook_id}/deliveries/{delivery_id}/resend",
        )
        .summary("Deliver an event again")
        .description(
            "The `webhook-id` stays the same; the retries start again. A pending delivery is \
             accepted if its `next_attempt_at` is more than five minutes ago, for example because \
             an admin cancelled its job.",
        )
        .role(Role::Admin)
        .problems(&["webhook_disabled", "delivery_pending"])
        .example(include_str!("../examples/resend_webhook_delivery.json"))
        .handler(deliveries::resend),
    ])
}

area_sdk::export!(area);

#[cfg(test)]
mod tests;
