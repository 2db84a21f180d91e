//! Discovery of a provider: a job that reads its metadata and keys. The requests are a separate
//! step, so that no transaction is open while the provider responds.

use area_sdk::prelude::*;
use area_sdk::wit::assurance::area::egress::{Error as EgressError, Header, Outgoing};
use area_sdk::{JobError, JobOptions};
use serde_json::{Map, Value};

use crate::metadata;
use crate::provider::{
    ProviderActivated, ProviderDiscoveryFailed, ProviderEvent, ProviderStatus, StoredProvider,
};

/// Timeout of each of the two HTTP requests to an identity provider, in milliseconds.
const TIMEOUT_MS: u32 = 15_000;

/// Timeout of the discovery job in milliseconds: two HTTP requests and a margin.
pub(crate) const JOB_TIMEOUT_MS: u32 = 45_000;

/// Maximum size of an identity provider's metadata, in bytes.
const MOST_METADATA_BYTES: u32 = 64 * 1024;

/// Maximum size of an identity provider's keys, in bytes.
const MOST_KEYS_BYTES: u32 = 256 * 1024;

/// Maximum number of attempts to discover an identity provider after temporary failures.
const MOST_ATTEMPTS: u32 = 3;

/// Delay before the next attempt to discover an identity provider in seconds, multiplied by the
/// number of the attempt.
const RETRY_SECONDS: i64 = 10;

/// Job that discovers an identity provider: reads and validates its metadata and keys.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct DiscoverProviderJob {
    provider_id: Uuid,
    /// Number of this discovery. The result is discarded if the provider has another number.
    discovery: u32,
    prepared: Option<IssuerToDiscover>,
}

/// Issuer whose metadata the next step of the job requests. Only the attempt that read the issuer
/// uses it.
#[derive(Clone, Serialize, Deserialize)]
struct IssuerToDiscover {
    attempt: u32,
    issuer: String,
}

job!(DiscoverProviderJob, "discover_identity_provider");

/// Metadata of an identity provider, and the digest of its keys, after they were fetched.
struct ProviderDocuments {
    metadata: Map<String, Value>,
    jwks_sha256: String,
}

/// Error code of a failed discovery, and whether a retry may succeed.
struct DiscoveryFailure {
    code: &'static str,
    transient: bool,
}

impl From<&'static str> for DiscoveryFailure {
    fn from(code: &'static str) -> Self {
        Self { code, transient: false }
    }
}

/// Enqueues a discovery of an identity provider, which replaces an earlier one. Changes the given
/// provider; the caller stores it.
pub(crate) fn enqueue(ctx: &Ctx, provider_id: Uuid, provider: &mut StoredProvider) {
    provider.discovery = provider.discovery.wrapping_add(1);
    let job = DiscoverProviderJob { provider_id, discovery: provider.discovery, prepared: None };
    ctx.enqueue_with(&job, JobOptions { resource: Some(provider_id), ..JobOptions::default() });
}

pub(crate) fn run(ctx: &JobCtx, job: DiscoverProviderJob) -> JobResult<DiscoverProviderJob> {
    match &job.prepared {
        Some(prepared) if prepared.attempt == ctx.attempt() => {
            let found = discover(ctx, &prepared.issuer);
            note(ctx, &job, found)
        }
        _ => prepare(ctx, job),
    }
}

/// Returns the identity provider to discover; `None` if it was deleted or a newer discovery
/// replaced this one.
fn look_up(
    ctx: &JobCtx,
    job: &DiscoverProviderJob,
) -> Result<Option<Stored<StoredProvider>>, JobError> {
    let found = ctx.documents::<StoredProvider>().find(job.provider_id)?;
    Ok(found.filter(|provider| provider.discovery == job.discovery))
}

fn prepare(ctx: &JobCtx, job: DiscoverProviderJob) -> JobResult<DiscoverProviderJob> {
    let Some(provider) = look_up(ctx, &job)? else { return Ok(Outcome::Done) };
    let prepared = IssuerToDiscover { attempt: ctx.attempt(), issuer: provider.value.issuer };
    Ok(Outcome::Continue(DiscoverProviderJob { prepared: Some(prepared), ..job }))
}

fn discover(ctx: &JobCtx, issuer: &str) -> Result<ProviderDocuments, DiscoveryFailure> {
    let body = fetch(ctx, metadata::url(issuer), MOST_METADATA_BYTES)?;
    let metadata = metadata::read(issuer, &body, |url| ctx.check_url(url).is_ok())?;
    let jwks_uri = metadata.get("jwks_uri").and_then(Value::as_str).unwrap_or_default();
    let keys = fetch(ctx, jwks_uri.to_owned(), MOST_KEYS_BYTES)?;
    let jwks_sha256 = ctx.sha256_hex(&metadata::canonical_keys(&keys)?);
    Ok(ProviderDocuments { metadata, jwks_sha256 })
}

/// Returns the body of a 200 response. Refuses redirects, because a redirect leads to a server that
/// does not prove the issuer's name.
fn fetch(ctx: &JobCtx, url: String, max_response_bytes: u32) -> Result<Vec<u8>, DiscoveryFailure> {
    let accept = Header { name: "accept".to_owned(), value: "application/json".to_owned() };
    let request = Outgoing {
        method: "GET".to_owned(),
        url,
        headers: vec![accept],
        body: Vec::new(),
        bearer: None,
        timeout_ms: TIMEOUT_MS,
        max_response_bytes,
    };
    let answer = ctx.send(&request).map_err(|error| failure(&error))?;
    match answer.status {
        200 => Ok(answer.body),
        300..=399 => Err("redirected".into()),
        404 | 410 => Err("not_found".into()),
        408 | 429 | 500..=599 => {
            Err(DiscoveryFailure { code: "provider_unavailable", transient: true })
        }
        _ => Err("request_rejected".into()),
    }
}

fn failure(error: &EgressError) -> DiscoveryFailure {
    let passing = |code| DiscoveryFailure { code, transient: true };
    match error {
        EgressError::Refused(_) => "address_refused".into(),
        EgressError::Unresolved => passing("unresolved"),
        EgressError::Connection(_) => passing("unreachable"),
        EgressError::Timeout => passing("timeout"),
        EgressError::TooLarge => "answer_too_large".into(),
        EgressError::NoSecret | EgressError::NotInAJob => panic!("egress misused: {error:?}"),
    }
}

/// Stores the result of a discovery with the identity provider. A disabled provider stays disabled.
fn note(
    ctx: &JobCtx,
    job: &DiscoverProviderJob,
    found: Result<ProviderDocuments, DiscoveryFailure>,
) -> JobResult<DiscoverProviderJob> {
    let Some(mut provider) = look_up(ctx, job)? else { return Ok(Outcome::Done) };
    let disabled = provider.status == ProviderStatus::Disabled;
    match found {
        Ok(discovered) => {
            provider.discovery_metadata = Some(discovered.metadata);
            provider.jwks_sha256 = Some(discovered.jwks_sha256);
            provider.last_discovered_at = Some(ctx.now());
            provider.last_error_code = None;
            if !disabled {
                provider.status = ProviderStatus::Active;
                ctx.publish(ProviderActivated(ProviderEvent::of(&provider)));
            }
        }
        Err(failure) => {
            provider.last_error_code = Some(failure.code.to_owned());
            if failure.transient && ctx.attempt() < MOST_ATTEMPTS {
                ctx.documents().replace(&mut provider)?;
                let wait = RETRY_SECONDS * i64::from(ctx.attempt());
                let at = ctx.now().plus_seconds(wait);
                return Ok(Outcome::Retry(at, failure.code.to_owned()));
            }
            if !disabled {
                provider.status = ProviderStatus::Error;
            }
            ctx.publish(ProviderDiscoveryFailed(ProviderEvent::of(&provider)));
        }
    }
    ctx.documents().replace(&mut provider)?;
    Ok(Outcome::Done)
}
