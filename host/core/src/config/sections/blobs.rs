//! Configuration of the storage for large content.

use std::path::PathBuf;

use crate::config::section::section;

section! {
    /// Storage of uploads and component binaries: a folder, or a bucket of an
    /// S3-compatible service, which any number of hosts can share.
    pub struct BlobsConfig {
        /// Folder of the blobs; not set, and no url: `blobs` in the data folder.
        pub dir: Option<PathBuf>,
        /// `s3://BUCKET/PREFIX`, instead of a folder. The bucket must exist. Each
        /// database needs its own prefix. Configure the bucket to abort incomplete
        /// multipart uploads after some days, because a killed host leaves them
        /// behind.
        pub url: Option<String>,
        /// URL of the S3-compatible service; not set: AWS, or the value of
        /// AWS_ENDPOINT_URL.
        pub endpoint: Option<String>,
        /// Region of the S3-compatible service; not set: the value of AWS_REGION,
        /// or us-east-1.
        pub region: Option<String>,
        /// Address the bucket as BUCKET.HOST; if off, as HOST/BUCKET, which all
        /// services support.
        pub virtual_host: bool,
        /// Allow `endpoint` to be an http URL. Content is then sent unencrypted;
        /// the secret key is never sent.
        pub allow_http: bool,
        /// File with the access key, mode 0600, in the format of
        /// ~/.aws/credentials; the profile `default` is used; read at start. Not
        /// set: the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and the
        /// like), or the role of the machine.
        pub credentials_file: Option<PathBuf>,
    }
}

impl BlobsConfig {
    /// Returns the bucket of `url` and the prefix, which may be empty. `None`
    /// if there is no URL, or it does not name a bucket.
    #[must_use]
    pub fn bucket(&self) -> Option<(&str, &str)> {
        let rest = self.url.as_deref()?.strip_prefix("s3://")?;
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let prefix = prefix.strip_suffix('/').unwrap_or(prefix);
        let known = is_name(bucket) && (prefix.is_empty() || prefix.split('/').all(is_name));
        known.then_some((bucket, prefix))
    }
}

/// Returns whether a bucket's name, or one part of a prefix, needs no escaping
/// in a URL and is not `.` or `..`.
fn is_name(part: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    !matches!(part, "" | "." | "..") && part.bytes().all(fits)
}
