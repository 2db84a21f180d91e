//! What `[blobs]` may say.

use super::wrong;
use crate::config::{Blobs, Config, ConfigError};

impl Config {
    pub(super) fn check_blobs(&self) -> Result<(), ConfigError> {
        let blobs = &self.blobs;
        if blobs.url.is_none() {
            return refuse_without_url(blobs);
        }
        if blobs.bucket().is_none() {
            let problem = "must be like s3://BUCKET or s3://BUCKET/PREFIX, of letters, digits and \
                           the characters . - _";
            return Err(wrong("blobs.url", problem));
        }
        if blobs.dir.is_some() {
            return Err(wrong("blobs.url", "is set, and so is blobs.dir; take one of them away"));
        }
        match &blobs.endpoint {
            Some(endpoint) => check_endpoint(blobs, endpoint),
            None => Ok(()),
        }
    }
}

/// What is said about a bucket that is not used was meant for one.
fn refuse_without_url(blobs: &Blobs) -> Result<(), ConfigError> {
    let of_buckets = [
        ("blobs.endpoint", blobs.endpoint.is_some()),
        ("blobs.region", blobs.region.is_some()),
        ("blobs.virtual_host", blobs.virtual_host),
        ("blobs.allow_http", blobs.allow_http),
        ("blobs.credentials_file", blobs.credentials_file.is_some()),
    ];
    match of_buckets.into_iter().find(|(_, set)| *set) {
        Some((key, _)) => Err(wrong(key, "is for a bucket; set blobs.url to s3://BUCKET/PREFIX")),
        None => Ok(()),
    }
}

fn check_endpoint(blobs: &Blobs, endpoint: &str) -> Result<(), ConfigError> {
    let refused = |problem: &str| Err(wrong("blobs.endpoint", problem));
    // Without the text itself, which might quote a password.
    let url = match url::Url::parse(endpoint) {
        Ok(url) if matches!(url.scheme(), "https" | "http") => url,
        _ => return refused("must be a URL like https://s3.example.com"),
    };
    if !url.username().is_empty() || url.password().is_some() {
        return refused("has a user in it; credentials go into blobs.credentials_file");
    }
    if url.path() != "/" || url.query().is_some() || url.fragment().is_some() {
        return refused("must be scheme, host and port alone; the bucket goes into blobs.url");
    }
    if url.scheme() == "http" && !blobs.allow_http {
        return refused("would send content in the clear; write https://, or set blobs.allow_http");
    }
    if blobs.virtual_host && url.domain().is_none() {
        return refused("is an address, and blobs.virtual_host needs a name");
    }
    Ok(())
}
