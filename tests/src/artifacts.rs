//! Setup shared by many tests: registers a repository, uploads artifacts, starts audits, opens
//! support cases, and creates webhooks. Everything uses HTTP.

use std::path::{Path, PathBuf};

use reqwest::Method;
use serde_json::{Value, json};

use crate::client::send;
use crate::{Answer, Client};

/// Returns a file of `tests/samples`, which the tour of the API uploads.
///
/// # Panics
/// There is no file with this name.
#[must_use]
pub fn sample(name: &str) -> Vec<u8> {
    let file = samples().join(name);
    std::fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

/// Returns the folder of samples.
#[must_use]
pub fn samples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("samples")
}

impl Client {
    /// Creates a workspace of the same user. Returns the client for it.
    pub async fn new_workspace(&self, name: &str) -> Self {
        let made = self.post("/v1/workspaces", &json!({ "name": name })).await.expect(201);
        self.in_workspace(&id_of(&made))
    }

    /// Registers a repository. Returns its id.
    pub async fn repository(&self, name: &str) -> String {
        let body = json!({ "name": name, "provider": "github", "default_branch": "main" });
        id_of(&self.post("/v1/workspaces/{ws}/repositories", &body).await.expect(201))
    }

    /// Uploads an artifact of a repository and waits until it is checked. Returns the upload.
    pub async fn upload(&self, repository: &str, filename: &str, content: &[u8]) -> Value {
        let upload = self.begin_upload(repository, filename, content).await;
        self.finish_upload(&upload, content).await
    }

    /// Uploads an artifact of a commit of a repository.
    pub async fn upload_at(
        &self,
        repository: &str,
        commit: &str,
        filename: &str,
        content: &[u8],
    ) -> Value {
        let body = json!({
            "filename": filename, "content_type": "application/json",
            "compressed_bytes": content.len(), "repository_id": repository,
            "commit_sha": commit, "purpose": "audit",
        });
        let upload = self.post("/v1/workspaces/{ws}/uploads", &body).await.expect(201);
        self.finish_upload(&upload, content).await
    }

    /// Sends an announced artifact's content and waits until it is checked.
    async fn finish_upload(&self, upload: &Value, content: &[u8]) -> Value {
        let stored = self.put_content(upload, content).await;
        assert!(stored.status < 300, "{}", stored.text());
        self.complete_upload(upload).await.expect(200);
        self.settled(&path_of(upload), "validation_stage", &["ready", "rejected"]).await
    }

    /// Sends an announced artifact's content to its signed URL, without a session.
    pub async fn put_content(&self, upload: &Value, content: &[u8]) -> Answer {
        let put = self.http.put(upload["upload_url"].as_str().expect("a URL"));
        let put =
            headers_of(upload).into_iter().fold(put, |put, (name, value)| put.header(name, value));
        send(put.body(content.to_vec())).await
    }

    /// Completes an upload after its content was sent.
    pub async fn complete_upload(&self, upload: &Value) -> Answer {
        send(self.request(Method::POST, &format!("{}/complete", path_of(upload)))).await
    }

    /// Announces an artifact of a repository.
    pub async fn begin_upload(&self, repository: &str, filename: &str, content: &[u8]) -> Value {
        let body = json!({
            "filename": filename, "content_type": "application/json",
            "compressed_bytes": content.len(), "repository_id": repository, "purpose": "audit",
        });
        self.post("/v1/workspaces/{ws}/uploads", &body).await.expect(201)
    }

    /// Audits a repository and waits for the end. Returns the audit.
    pub async fn audit(&self, repository: &str) -> Value {
        self.audit_of(&json!({ "repository_id": repository })).await
    }

    /// Starts an audit and waits for the end. Returns the audit.
    pub async fn audit_of(&self, body: &Value) -> Value {
        let audit = self.post("/v1/workspaces/{ws}/audits", body).await.expect(201);
        let path = path_at("/v1/workspaces/{ws}/audits", &audit);
        self.settled(&path, "state", &["completed", "failed"]).await
    }

    /// Opens a support case whose subject is its idempotency key.
    pub async fn open_case(&self, key: &str) -> Answer {
        let case = json!({ "subject": key, "description": "It does not work." });
        self.post_once("/v1/workspaces/{ws}/support/cases", key, &case).await
    }

    /// Creates a webhook for new support cases.
    pub async fn subscribe(&self, url: &str) -> Answer {
        let webhook = json!({ "events": ["support_case.created"], "url": url });
        self.post("/v1/workspaces/{ws}/webhooks", &webhook).await
    }
}

/// Returns the path of an upload.
#[must_use]
pub fn path_of(upload: &Value) -> String {
    path_at("/v1/workspaces/{ws}/uploads", upload)
}

/// Returns the path of a resource of the collection at this path.
#[must_use]
pub fn path_at(collection: &str, resource: &Value) -> String {
    format!("{collection}/{}", id_of(resource))
}

/// Returns the `id` of a resource.
///
/// # Panics
/// It has none.
#[must_use]
pub fn id_of(resource: &Value) -> String {
    resource["id"].as_str().unwrap_or_else(|| panic!("no id: {resource:#}")).to_owned()
}

/// Returns the headers for sending an upload's content.
///
/// # Panics
/// The upload has none.
#[must_use]
pub fn headers_of(upload: &Value) -> Vec<(String, String)> {
    let headers = upload["upload_headers"].as_object().expect("headers");
    let text = |value: &Value| value.as_str().expect("a text header").to_owned();
    headers.iter().map(|(name, value)| (name.clone(), text(value))).collect()
}

/// Returns a `multipart/form-data` body with the boundary `boundary`. Each part has a name, and a
/// filename if it is a file.
#[must_use]
pub fn form(parts: &[(&str, Option<&str>, &[u8])]) -> Vec<u8> {
    let mut body = Vec::new();
    for (name, filename, content) in parts {
        let filename = filename.map(|name| format!("; filename=\"{name}\"")).unwrap_or_default();
        let head = format!(
            "--boundary\r\ncontent-disposition: form-data; name=\"{name}\"{filename}\r\n\r\n"
        );
        body.extend([head.as_bytes(), content, b"\r\n"].concat());
    }
    body.extend(b"--boundary--\r\n");
    body
}
