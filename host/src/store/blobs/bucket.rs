//! A bucket of an S3-compatible service, for hosts that share no file system.

use std::sync::Arc;
use std::time::Duration;

use object_store::aws::{AmazonS3Builder, AwsCredential};
use object_store::client::StaticCredentialProvider;
use object_store::prefix::PrefixStore;
use object_store::{BackoffConfig, ClientOptions, ObjectStore, RetryConfig};

use crate::config::credentials::AccessKey;

/// How long the service may take to take a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// How long a request and its answer may take, content and all.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);
/// How often a request is sent again that failed for the moment. Together the
/// pauses are about half a second: an area that waits should learn of an
/// outage before its own time is over.
const RETRIES: usize = 3;
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_millis(200);
/// After so long nothing is sent again.
const RETRY_FOR: Duration = Duration::from_secs(5);

/// A bucket, and who asks for it.
#[derive(Clone, Debug)]
pub struct Bucket {
    /// Its name.
    pub name: String,
    /// Before the name of every object; may be empty.
    pub prefix: String,
    /// Where the service answers; not set: AWS, or what `AWS_ENDPOINT_URL` says.
    pub endpoint: Option<url::Url>,
    /// Not set: what `AWS_REGION` says, or `us-east-1`.
    pub region: Option<String>,
    /// Whether the bucket's name is part of the host's.
    pub virtual_host: bool,
    /// Whether content may travel without TLS.
    pub allow_http: bool,
    /// Not set: what the `AWS_…` variables, or the machine's role, say.
    pub key: Option<AccessKey>,
}

impl Bucket {
    pub(super) fn connect(&self) -> object_store::Result<Arc<dyn ObjectStore>> {
        let mut builder = AmazonS3Builder::from_env()
            .with_bucket_name(&self.name)
            .with_virtual_hosted_style_request(self.virtual_host)
            // Not all services know the request that deletes many at once.
            .with_disable_bulk_delete(true)
            .with_client_options(self.client_options())
            .with_retry(retries());
        if let Some(endpoint) = self.bucket_endpoint() {
            builder = builder.with_endpoint(endpoint);
        }
        if let Some(region) = &self.region {
            builder = builder.with_region(region);
        }
        if let Some(key) = &self.key {
            let provider = StaticCredentialProvider::new(credential(key));
            builder = builder.with_credentials(Arc::new(provider));
        }
        Ok(Arc::new(PrefixStore::new(builder.build()?, self.prefix.as_str())))
    }

    fn client_options(&self) -> ClientOptions {
        ClientOptions::new()
            .with_allow_http(self.allow_http)
            .with_connect_timeout(CONNECT_TIMEOUT)
            .with_timeout(REQUEST_TIMEOUT)
    }

    /// With a virtual host the library wants the bucket's name in it.
    fn bucket_endpoint(&self) -> Option<String> {
        let mut endpoint = self.endpoint.clone()?;
        if self.virtual_host
            && let Some(host) = endpoint.host_str().map(|host| format!("{}.{host}", self.name))
        {
            // A name before a name is one; the configuration has refused addresses.
            let _ = endpoint.set_host(Some(&host));
        }
        Some(endpoint.as_str().trim_end_matches('/').to_owned())
    }
}

fn retries() -> RetryConfig {
    let backoff =
        BackoffConfig { init_backoff: FIRST_PAUSE, max_backoff: LONGEST_PAUSE, base: 2.0 };
    RetryConfig { backoff, max_retries: RETRIES, retry_timeout: RETRY_FOR }
}

fn credential(key: &AccessKey) -> AwsCredential {
    AwsCredential {
        key_id: key.id.clone(),
        secret_key: key.secret.reveal().to_owned(),
        token: key.session_token.as_ref().map(|token| token.reveal().to_owned()),
    }
}
