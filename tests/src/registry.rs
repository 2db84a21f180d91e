//! Debian's `docker-registry` on a loopback port: a real OCI registry with a separate folder.
//! Artifacts are pushed by other means than this project's.

use std::path::PathBuf;
use std::process::Command;

use reqwest::Response;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::process::{ServerProcess, free_port};
use crate::{Client, operators, place};

/// User and password of a protected registry.
pub const USER: [&str; 2] = ["tester", "a password of the tests"];
/// bcrypt hash of the user's password, for the registry's configuration.
const HASHED: &str = "$2b$04$abcdefghijklmnopqrstuuzzjWYX9ziq/z9PGEfqaY.69BPe06tMC";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

/// A running registry; it stops when dropped.
#[derive(Debug)]
pub struct TestRegistry {
    _process: ServerProcess,
    folder: TempDir,
    /// Host and port.
    pub address: String,
}

impl TestRegistry {
    /// Starts a registry without authentication.
    ///
    /// # Panics
    /// `docker-registry` is not installed; says what to install.
    #[must_use]
    pub fn start() -> Self {
        Self::start_with("")
    }

    /// Starts a registry that only accepts [`USER`].
    #[must_use]
    pub fn guarded() -> Self {
        Self::start_with("auth: {htpasswd: {realm: tests, path: users}}\n")
    }

    fn start_with(auth: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let port = free_port();
        let address = format!("127.0.0.1:{port}");
        let config = format!(
            "version: 0.1\nlog: {{level: error}}\nstorage: {{filesystem: {{rootdirectory: data}}}}\n\
             http: {{addr: '{address}'}}\n{auth}"
        );
        std::fs::write(folder.path().join("config.yml"), config).expect("a configuration");
        let users = format!("{}:{HASHED}\n", USER[0]);
        std::fs::write(folder.path().join("users"), users).expect("a user");
        let mut command = Command::new(place::registry());
        command.args(["serve", "config.yml"]).current_dir(folder.path());
        let process = ServerProcess::start(&mut command, "docker-registry", port);
        Self { _process: process, folder, address }
    }

    /// Returns the file in which the registry stores the content of a digest.
    #[must_use]
    pub fn file_of(&self, digest: &str) -> PathBuf {
        let blobs = self.folder.path().join("data/docker/registry/v2/blobs/sha256");
        blobs.join(&digest[..2]).join(digest).join("data")
    }

    /// Pushes an artifact: the media type of its configuration, and layers as media type and
    /// content.
    pub async fn put(&self, name: &str, tag: &str, config: &str, layers: &[(&str, &[u8])]) {
        let http = Client::nobody("").http;
        let mut described = Vec::new();
        for (kind, content) in layers {
            self.put_content(&http, name, content).await;
            described.push(descriptor(kind, content));
        }
        self.put_content(&http, name, b"{}").await;
        let manifest = json!({
            "schemaVersion": 2, "mediaType": MANIFEST,
            "config": descriptor(config, b"{}"), "layers": described,
        });
        let url = format!("http://{}/v2/{name}/manifests/{tag}", self.address);
        let put = http.put(url).header("content-type", MANIFEST).body(manifest.to_string());
        taken(put.send().await);
    }

    async fn put_content(&self, http: &reqwest::Client, name: &str, content: &[u8]) {
        let begin = http.post(format!("http://{}/v2/{name}/blobs/uploads/", self.address));
        let begun = taken(begin.send().await);
        let location = begun.headers()["location"].to_str().expect("a URL");
        let digest = operators::digest(content);
        let put = http.put(format!("{location}&digest=sha256:{digest}"));
        taken(put.body(content.to_vec()).send().await);
    }
}

fn descriptor(kind: &str, content: &[u8]) -> Value {
    let digest = format!("sha256:{}", operators::digest(content));
    json!({"mediaType": kind, "digest": digest, "size": content.len()})
}

fn taken(answer: reqwest::Result<Response>) -> Response {
    answer.and_then(Response::error_for_status).expect("the registry takes it")
}
