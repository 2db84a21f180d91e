//! A bucket of an S3-compatible service, shared by all hosts of a fleet.

use std::sync::Arc;
use std::time::Duration;

use object_store::aws::{AmazonS3Builder, AwsCredential};
use object_store::client::StaticCredentialProvider;
use object_store::prefix::PrefixStore;
use object_store::{BackoffConfig, ClientOptions, ObjectStore, RetryConfig};

use assurance_core::config::credentials::S3AccessKey;

/// Maximum time to open a connection to the S3-compatible service.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// Maximum time of one request to the S3-compatible service, including its
/// content.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum number of retries of a request to the S3-compatible service after
/// temporary errors. The pauses add up to about half a second, so that an area
/// receives the error before its own deadline.
const RETRIES: usize = 3;
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_millis(200);
/// Time after which a request to the S3-compatible service is not retried.
const RETRY_FOR: Duration = Duration::from_secs(5);

/// Address of an S3-compatible bucket, and the credentials for it.
#[derive(Clone, Debug)]
pub struct Bucket {
    /// Name of the bucket.
    pub name: String,
    /// Prefix of all object names in the bucket; may be empty.
    pub prefix: String,
    /// URL of the S3-compatible service; `None`: AWS, or the value of
    /// `AWS_ENDPOINT_URL`.
    pub endpoint: Option<url::Url>,
    /// Region of the bucket; `None`: the value of `AWS_REGION`, or `us-east-1`.
    pub region: Option<String>,
    /// Whether requests have the bucket's name in the host name instead of the
    /// path.
    pub virtual_host: bool,
    /// Whether an endpoint with plain http is allowed.
    pub allow_http: bool,
    /// Credentials for the bucket; `None`: those of the `AWS_…` variables or of
    /// the machine's role.
    pub key: Option<S3AccessKey>,
}

impl Bucket {
    pub(super) fn connect(&self) -> object_store::Result<Arc<dyn ObjectStore>> {
        let mut builder = AmazonS3Builder::from_env()
            .with_bucket_name(&self.name)
            .with_virtual_hosted_style_request(self.virtual_host)
            // Some services do not support deletion of several objects in one
            // request.
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

    /// Returns the service's URL, with the bucket's name in it for virtual
    /// hosts, as the library expects; `None` if no URL is configured.
    fn bucket_endpoint(&self) -> Option<String> {
        let mut endpoint = self.endpoint.clone()?;
        if self.virtual_host
            && let Some(host) = endpoint.host_str().map(|host| format!("{}.{host}", self.name))
        {
            // Cannot fail: a host name with another label in front is valid,
            // and the configuration rejects IP addresses.
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

fn credential(key: &S3AccessKey) -> AwsCredential {
    AwsCredential {
        key_id: key.id.clone(),
        secret_key: key.secret.reveal().to_owned(),
        token: key.session_token.as_ref().map(|token| token.reveal().to_owned()),
    }
}
