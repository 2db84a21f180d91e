//! Secrets and signatures of Standard Webhooks 1.0. The host keeps the secret;
//! this area sees it once, when it makes it.

use area_sdk::{Scope, Timestamp, Uuid};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// 24 to 64 bytes are allowed; this is a full SHA-256 block's half.
const SECRET_BYTES: u32 = 32;

/// The name under which the host keeps a subscription's secret.
fn secret_name(webhook: Uuid, generation: u32) -> String {
    format!("webhook.{webhook}.{generation}")
}

/// Makes and keeps a new secret; the text is for its owner, once.
pub(crate) fn new_secret(scope: &Scope, webhook: Uuid, generation: u32) -> String {
    let secret = scope.random_bytes(SECRET_BYTES);
    scope.secrets().put(&secret_name(webhook, generation), &secret);
    format!("whsec_{}", STANDARD.encode(secret))
}

/// Forgets a secret.
pub(crate) fn forget(scope: &Scope, webhook: Uuid, generation: u32) {
    scope.secrets().delete(&secret_name(webhook, generation));
}

/// The headers that let a receiver know the message: one signature for each
/// generation of the secret that still counts.
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
