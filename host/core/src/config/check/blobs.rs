//! Checks the configuration section `[blobs]`.

use super::Problems;
use crate::config::{BlobsConfig, Config};

impl Config {
    pub(super) fn check_blobs(&self, found: &mut Problems) {
        let blobs = &self.blobs;
        if blobs.url.is_none() {
            return refuse_without_url(blobs, found);
        }
        if blobs.bucket().is_none() {
            let problem = "must be like s3://BUCKET or s3://BUCKET/PREFIX, of letters, digits and \
                           the characters . - _";
            found.add("blobs.url", problem);
        }
        if blobs.dir.is_some() {
            found.add("blobs.url", "is set, and so is blobs.dir; remove one of them");
        }
        if let Some(Err(problem)) = blobs.endpoint.as_ref().map(|at| check_endpoint(blobs, at)) {
            found.add("blobs.endpoint", problem);
        }
    }
}

/// Reports each setting of `[blobs]` that only a bucket uses. Called if
/// `blobs.url` is not set.
fn refuse_without_url(blobs: &BlobsConfig, found: &mut Problems) {
    let of_buckets = [
        ("blobs.endpoint", blobs.endpoint.is_some()),
        ("blobs.region", blobs.region.is_some()),
        ("blobs.virtual_host", blobs.virtual_host),
        ("blobs.allow_http", blobs.allow_http),
        ("blobs.credentials_file", blobs.credentials_file.is_some()),
    ];
    for (key, _) in of_buckets.into_iter().filter(|(_, set)| *set) {
        found.add(key, "is for a bucket; set blobs.url to s3://BUCKET/PREFIX");
    }
}

/// Checks the URL of the S3-compatible service. The error omits the URL, which
/// might contain a password.
fn check_endpoint(blobs: &BlobsConfig, endpoint: &str) -> Result<(), &'static str> {
    let url = match url::Url::parse(endpoint) {
        Ok(url) if matches!(url.scheme(), "https" | "http") => url,
        _ => return Err("must be a URL like https://s3.example.com"),
    };
    if !url.username().is_empty() || url.password().is_some() {
        return Err("has a user in it; credentials go into blobs.credentials_file");
    }
    if url.path() != "/" || url.query().is_some() || url.fragment().is_some() {
        return Err("must be scheme, host and port alone; the bucket goes into blobs.url");
    }
    if url.scheme() == "http" && !blobs.allow_http {
        return Err("would send content in the clear; write https://, or set blobs.allow_http");
    }
    if blobs.virtual_host && url.domain().is_none() {
        return Err("is an address, and blobs.virtual_host needs a name");
    }
    Ok(())
}
