//! Secrets and signatures of Standard Webhooks 1.0. The host stores the secrets; this area reads a
//! secret only when it creates one.

use area_sdk::{Scope, Timestamp, Uuid};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// Size of a webhook's new secret in bytes; Standard Webhooks allows 24 to 64.
const SECRET_BYTES: u32 = 32;

/// Returns the name of the host's secret for one generation of a webhook's secret.
fn secret_name(webhook: Uuid, generation: u32) -> String {
    format!("webhook.{webhook}.{generation}")
}

/// Creates and stores a new secret of a webhook. Returns its text (`whsec_…`), which the client
/// receives only once.
pub(crate) fn new_secret(scope: &Scope, webhook: Uuid, generation: u32) -> String {
    let secret = scope.random_bytes(SECRET_BYTES);
    scope.secrets().put(&secret_name(webhook, generation), &secret);
    format!("whsec_{}", STANDARD.encode(secret))
}

/// Deletes one generation of a webhook's secret.
pub(crate) fn forget(scope: &Scope, webhook: Uuid, generation: u32) {
    scope.secrets().delete(&secret_name(webhook, generation));
}

/// Returns the headers of a delivery's request: id, timestamp, and one signature for each valid
/// generation of the secret.
pub(crate) fn headers(
    scope: &Scope,
    webhook: Uuid,
    generations: &[u32],
    message: (Uuid, Timestamp, &str),
) -> Vec<(String, String)> {
    let (id, at, body) = message;
    let seconds = at.unix_seconds();
    let signed = format!("{id}.{seconds}.{body}");
    let signatures: Vec<String> = generations
        .iter()
        .filter_map(|&generation| {
            scope.secrets().hmac_sha256(&secret_name(webhook, generation), signed.as_bytes())
        })
        .map(|code| format!("v1,{}", STANDARD.encode(code)))
        .collect();
    vec![
        ("content-type".to_owned(), "application/json".to_owned()),
        ("user-agent".to_owned(), "workspace-assurance-webhooks/1".to_owned()),
        ("webhook-id".to_owned(), id.to_string()),
        ("webhook-timestamp".to_owned(), seconds.to_string()),
        ("webhook-signature".to_owned(), signatures.join(" ")),
    ]
}
