//! Subscriptions of webhooks to events.

use area_sdk::prelude::*;
use area_sdk::{JobOptions, Scope};
use schemars::JsonSchema;

use crate::circuit::{self, Circuit};
use crate::deliver::ForgetSecretJob;
use crate::deliveries::DiscardDeliveriesJob;
use crate::signing;

/// Maximum number of webhooks of a workspace.
pub(crate) const MOST_WEBHOOKS: u32 = 100;

/// Number of former inactive times that are stored with a webhook.
const MOST_INACTIVE_TIMES: usize = 20;

/// Time for which the former secret also signs after a rotation, in seconds (24 hours).
const OVERLAP_SECONDS: i64 = 24 * 3600;

/// Name of an event published by an area of the service.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(extend("format" = "event-name"))]
pub(crate) struct EventName(String);

/// A request to create a webhook.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct NewWebhook {
    #[schemars(length(min = 1, max = 200))]
    events: Vec<EventName>,
    /// URL that receives the events; https with a public address.
    #[schemars(length(min = 1, max = 2048), extend("format" = "uri"))]
    url: String,
}

/// A webhook: a subscription of a URL to events.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Webhook {
    active: bool,
    created_at: Timestamp,
    events: Vec<String>,
    id: Uuid,
    kind: &'static str,
    /// Display name; by default the host name of the URL.
    name: String,
    /// Secret that signs deliveries, returned only when it is created; null otherwise.
    secret: Option<String>,
    /// URL that receives the events. Without path and query for roles below admin.
    url: String,
}

/// A webhook with the state of its deliveries.
#[derive(Serialize, JsonSchema)]
pub(crate) struct WebhookDetails {
    #[serde(flatten)]
    webhook: Webhook,
    updated_at: Timestamp,
    /// Time of the first failure since the last success; null without failures.
    failing_since: Option<Timestamp>,
    /// Time of the next probe; null unless deliveries are held because the endpoint fails.
    retry_at: Option<Timestamp>,
    disabled_reason: Option<DisabledReason>,
    /// Time until which the former secret also signs; null without a former secret.
    previous_secret_expires_at: Option<Timestamp>,
}

/// A stored webhook subscription.
#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(extend("x-requests-events" = "events"))]
pub(crate) struct Subscription {
    pub(crate) active: bool,
    events: Vec<String>,
    name: String,
    pub(crate) url: String,
    pub(crate) failing_since: Option<Timestamp>,
    #[serde(default)]
    pub(crate) circuit: Circuit,
    disabled_reason: Option<DisabledReason>,
    /// Time of the deactivation; `None` if the webhook is active, or if a version of this area
    /// without this member deactivated it.
    #[serde(default)]
    inactive_since: Option<Timestamp>,
    /// Former inactive times, oldest first. Events of these times may still wait in the queue.
    #[serde(default)]
    inactive_times: Vec<InactivePeriod>,
    secret_generation: u32,
    previous_secret_expires_at: Option<Timestamp>,
    created_by: Uuid,
}

document!(Subscription, "subscriptions");

/// A period in which a webhook was inactive.
#[derive(Serialize, Deserialize, JsonSchema)]
struct InactivePeriod {
    since: Timestamp,
    until: Timestamp,
}

/// Reason why a webhook was disabled.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum DisabledReason {
    /// The receiver responded with 410 Gone.
    Gone,
    /// All attempts to deliver to the receiver failed for 120 hours.
    Failing,
    /// An admin disabled the webhook.
    ByRequest,
}

/// Published when the service disabled a webhook because of its receiver's failures.
#[derive(Serialize, JsonSchema)]
pub(crate) struct WebhookDisabled {
    webhook_id: Uuid,
    /// Scheme, host and port of the webhook's URL, without the path, because all webhooks of the
    /// workspace receive this event.
    url: String,
    reason: DisabledReason,
}

event!(WebhookDisabled, "webhook.disabled");

impl Subscription {
    /// Whether the subscription includes an event with this name that was published at this time.
    pub(crate) fn requests(&self, event: &str, at: Timestamp) -> bool {
        self.was_active(at) && self.events.iter().any(|requested| requested == event)
    }

    /// Whether the webhook was active at this time. The host matches events with inactive webhooks,
    /// too.
    pub(crate) fn was_active(&self, at: Timestamp) -> bool {
        let mut former = self.inactive_times.iter();
        !former.any(|time| time.since < at && at < time.until)
            && (self.active || self.inactive_since.is_some_and(|since| at <= since))
    }

    /// Ends the inactive period of a webhook and stores it. Removes the oldest one if the maximum
    /// number is stored.
    fn end_inactive_time(&mut self, until: Timestamp) {
        let Some(since) = self.inactive_since.take() else { return };
        if self.inactive_times.len() >= MOST_INACTIVE_TIMES {
            self.inactive_times.remove(0);
        }
        self.inactive_times.push(InactivePeriod { since, until });
    }

    /// Whether the webhook is inactive, and was still active at this time.
    pub(crate) fn was_deactivated_after(&self, at: Timestamp) -> bool {
        self.inactive_since.is_some_and(|since| at < since)
    }

    /// Returns the generations of the secret that sign at this time, newest first.
    pub(crate) fn generations(&self, now: Timestamp) -> Vec<u32> {
        let previous = self.previous_secret_expires_at.is_some_and(|expires| now < expires);
        let older = previous.then(|| self.secret_generation - 1);
        std::iter::once(self.secret_generation).chain(older).collect()
    }
}

/// Disables a subscription because of its receiver's failures, and publishes the event.
pub(crate) fn disable(scope: &Scope, webhook: &mut Stored<Subscription>, reason: DisabledReason) {
    webhook.active = false;
    webhook.inactive_since = Some(scope.now());
    circuit::close(scope, webhook);
    webhook.disabled_reason = Some(reason);
    let (webhook_id, url) = (webhook.uuid(), origin(&webhook.url));
    scope.publish(WebhookDisabled { webhook_id, url, reason });
}

fn view(webhook: Stored<Subscription>, secret: Option<String>) -> Webhook {
    Webhook {
        id: webhook.uuid(),
        created_at: webhook.created_at,
        active: webhook.value.active,
        events: webhook.value.events,
        kind: "webhook",
        name: webhook.value.name,
        secret,
        url: webhook.value.url,
    }
}

fn details(webhook: Stored<Subscription>, secret: Option<String>) -> WebhookDetails {
    WebhookDetails {
        updated_at: webhook.updated_at,
        failing_since: webhook.failing_since,
        retry_at: webhook.circuit.retry_at,
        disabled_reason: webhook.disabled_reason,
        previous_secret_expires_at: webhook.previous_secret_expires_at,
        webhook: view(webhook, secret),
    }
}

fn versioned(ctx: &Ctx, webhook: Stored<Subscription>) -> Versioned<WebhookDetails> {
    webhook.versioned(|webhook| shown(ctx, webhook))
}

/// Converts a subscription for a response. Removes path and query of the URL for roles below admin:
/// with a chat service, anyone who knows such a path can post messages.
fn shown(ctx: &Ctx, mut webhook: Stored<Subscription>) -> WebhookDetails {
    if ctx.role() < Role::Admin {
        webhook.value.url = origin(&webhook.value.url);
    }
    details(webhook, None)
}

/// Returns scheme, host and port of a validated URL.
fn origin(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return String::new() };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    format!("{scheme}://{authority}")
}

/// Returns the names of events without duplicates, in the same order.
fn names(events: Vec<EventName>) -> Vec<String> {
    events.into_iter().fold(Vec::new(), |mut names, EventName(name)| {
        if !names.contains(&name) {
            names.push(name);
        }
        names
    })
}

fn check_url(ctx: &Ctx, url: &str) -> Result<()> {
    ctx.check_url(url).map_err(|rule| Problem::validation("/url", rule))
}

/// Returns the host of a validated URL, which has the form `https://host` without a user.
fn host(url: &str) -> String {
    let authority = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = authority.split(['/', '?', '#']).next().unwrap_or_default();
    let port = authority.rfind(':').filter(|colon| !authority[*colon..].contains(']'));
    authority[..port.unwrap_or(authority.len())].to_lowercase()
}

pub(crate) fn create(ctx: &Ctx, Body(new): Body<NewWebhook>) -> Result<Created<Webhook>> {
    check_url(ctx, &new.url)?;
    if ctx.documents::<Subscription>().query().count()? >= u64::from(MOST_WEBHOOKS) {
        let detail = "A workspace has at most 100 webhooks.";
        return Err(Problem::conflict("too_many_webhooks", detail).hint("Delete one."));
    }
    let value = Subscription {
        active: true,
        events: names(new.events),
        name: host(&new.url),
        url: new.url,
        failing_since: None,
        circuit: Circuit::default(),
        disabled_reason: None,
        inactive_since: None,
        inactive_times: Vec::new(),
        secret_generation: 1,
        previous_secret_expires_at: None,
        created_by: ctx.user(),
    };
    let id = ctx.new_id();
    let secret = signing::new_secret(ctx, id, 1);
    let webhook = ctx.documents().create_stored(id, value)?;
    Ok(Created(view(webhook, Some(secret))))
}

pub(crate) fn list(ctx: &Ctx, paging: Paging) -> Result<Page<WebhookDetails>> {
    let all = ctx.documents::<Subscription>().query();
    let page = all.paging(paging).page()?;
    Ok(page.map(|webhook| shown(ctx, webhook)))
}

pub(crate) fn show(ctx: &Ctx, Path(id): Path<Uuid>) -> Result<Versioned<WebhookDetails>> {
    Ok(versioned(ctx, ctx.documents().get(id)?))
}

/// Changes of a webhook; absent members keep their values.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct WebhookChanges {
    active: Option<bool>,
    #[schemars(length(min = 1, max = 200))]
    events: Option<Vec<EventName>>,
    #[schemars(length(min = 1, max = 200))]
    name: Option<String>,
    #[schemars(length(min = 1, max = 2048), extend("format" = "uri"))]
    url: Option<String>,
}

pub(crate) fn update(
    ctx: &Ctx,
    Path(id): Path<Uuid>,
    Body(changes): Body<WebhookChanges>,
) -> Result<Versioned<WebhookDetails>> {
    let mut webhook = ctx.documents::<Subscription>().get(id)?;
    ctx.check_if_match(webhook.version)?;
    if let Some(url) = changes.url {
        check_url(ctx, &url)?;
        if url != webhook.url {
            webhook.failing_since = None;
            circuit::close(ctx, &mut webhook);
        }
        webhook.url = url;
    }
    if let Some(events) = changes.events {
        webhook.events = names(events);
    }
    if let Some(name) = changes.name {
        webhook.name = name;
    }
    if let Some(active) = changes.active {
        set_active(ctx, &mut webhook, active);
    }
    ctx.documents().replace(&mut webhook)?;
    Ok(versioned(ctx, webhook))
}

/// Activates or deactivates a webhook because a user requested it, and resets its failures.
fn set_active(scope: &Scope, webhook: &mut Stored<Subscription>, active: bool) {
    if active {
        webhook.end_inactive_time(scope.now());
    } else if webhook.active {
        webhook.inactive_since = Some(scope.now());
    }
    webhook.active = active;
    webhook.failing_since = None;
    circuit::close(scope, webhook);
    webhook.disabled_reason = (!active).then_some(DisabledReason::ByRequest);
}

pub(crate) fn rotate_secret(ctx: &Ctx, Path(id): Path<Uuid>) -> Result<Versioned<WebhookDetails>> {
    let mut webhook = ctx.documents::<Subscription>().get(id)?;
    ctx.check_if_match(webhook.version)?;
    let old = webhook.secret_generation;
    signing::forget(ctx, id, old - 1);
    webhook.secret_generation = old + 1;
    let expires = ctx.now().plus_seconds(OVERLAP_SECONDS);
    webhook.previous_secret_expires_at = Some(expires);
    let secret = signing::new_secret(ctx, id, old + 1);
    let forget = ForgetSecretJob { webhook_id: id, generation: old };
    ctx.enqueue_with(&forget, JobOptions { at: Some(expires), ..JobOptions::default() });
    ctx.documents().replace(&mut webhook)?;
    Ok(webhook.versioned(|webhook| details(webhook, Some(secret))))
}

pub(crate) fn remove(ctx: &Ctx, Path(id): Path<Uuid>) -> Result<NoContent> {
    let webhook = ctx.documents::<Subscription>().get(id)?;
    ctx.check_if_match(webhook.version)?;
    for generation in [webhook.secret_generation - 1, webhook.secret_generation] {
        signing::forget(ctx, id, generation);
    }
    ctx.documents().delete(&webhook)?;
    DiscardDeliveriesJob::enqueue(ctx, id);
    Ok(NoContent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_has_neither_path_nor_query() {
        for (url, shown) in [
            ("https://example.com/services/T0/B0/key", "https://example.com"),
            ("https://example.com:8443?key=1", "https://example.com:8443"),
            ("https://[2001:db8::1]#x", "https://[2001:db8::1]"),
        ] {
            assert_eq!(origin(url), shown);
        }
    }

    #[test]
    fn the_name_is_the_url_s_host() {
        for (url, name) in [
            ("https://Example.com/hook", "example.com"),
            ("https://example.com:8443?x", "example.com"),
            ("https://[2001:db8::1]:443/", "[2001:db8::1]"),
            ("https://[2001:db8::1]/", "[2001:db8::1]"),
        ] {
            assert_eq!(host(url), name);
        }
    }
}
