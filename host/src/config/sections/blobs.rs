//! Where large content is kept.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where uploads and component binaries are kept: in a folder, or in a bucket
/// of an S3-compatible service, which any number of hosts can share.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Blobs {
    /// A folder; not set, and no url: `blobs` in the data folder.
    pub dir: Option<PathBuf>,
    /// `s3://BUCKET/PREFIX`, instead of a folder. The bucket must be there,
    /// and one prefix belongs to one database. Let the bucket end multipart
    /// uploads that are days old: a host that is killed leaves them.
    pub url: Option<String>,
    /// Where the service answers; not set: AWS, or what AWS_ENDPOINT_URL says.
    pub endpoint: Option<String>,
    /// The service's region; not set: what AWS_REGION says, or us-east-1.
    pub region: Option<String>,
    /// Whether the bucket is asked as BUCKET.HOST; else as HOST/BUCKET, which
    /// all services know.
    pub virtual_host: bool,
    /// Whether the endpoint may be asked over http. Content then travels in
    /// the clear; the secret key does not travel at all.
    pub allow_http: bool,
    /// Holds the access key, mode 0600, in the format of ~/.aws/credentials,
    /// of which the profile `default` counts; read at start. Not set: what
    /// AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and their like say, or the
    /// role of the machine.
    pub credentials_file: Option<PathBuf>,
}

impl Blobs {
    /// The bucket of `url` and the prefix in it, which may be empty; nothing
    /// where there is no URL, or none of a bucket.
    #[must_use]
    pub fn bucket(&self) -> Option<(&str, &str)> {
        let rest = self.url.as_deref()?.strip_prefix("s3://")?;
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let prefix = prefix.strip_suffix('/').unwrap_or(prefix);
        let known = is_name(bucket) && (prefix.is_empty() || prefix.split('/').all(is_name));
        known.then_some((bucket, prefix))
    }
}

/// What needs no escape in a URL, and is no way up.
fn is_name(part: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    !matches!(part, "" | "." | "..") && part.bytes().all(fits)
}
