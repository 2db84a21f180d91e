//! Requests to the operators' API with the operators' token.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;

use assurance_core::signing::Ed25519PrivateKey;
use reqwest::{Method, RequestBuilder};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::client::send;
use crate::{Answer, Client, TestHost, until};

impl TestHost {
    /// Builds a request with the bearer token.
    pub fn operator(&self, method: Method, path: &str) -> RequestBuilder {
        let client = Client::nobody(&self.operators);
        client.request(method, path).bearer_auth(self.operators_token())
    }

    /// Sends a request with the bearer token.
    pub async fn operate(&self, method: Method, path: &str) -> Answer {
        send(self.operator(method, path)).await
    }

    /// Deploys a component under an area's name, after which a query may follow.
    pub async fn put_area(&self, name: &str, component: &[u8]) -> Answer {
        let request = self.operator(Method::PUT, &format!("/areas/{name}"));
        let request = request.header("content-type", "application/wasm");
        send(request.body(component.to_vec())).await
    }

    /// Signs a component's file as the publisher `team`.
    pub fn sign_component(&self, file: &str, key: &Ed25519PrivateKey) {
        let key_file = self.write("team.pem", key.to_pem().expect("a key").as_bytes());
        let private = Permissions::from_mode(0o600);
        fs::set_permissions(self.folder().join(key_file), private).expect("private");
        self.cli(&["area", "sign", file, "--key", key_file, "--publisher", "team"]);
    }

    /// Sends a POST request with a JSON body.
    pub async fn operate_with(&self, path: &str, body: &Value) -> Answer {
        send(self.operator(Method::POST, path).json(body)).await
    }

    /// Returns the digest of an area's live version; `None` if it is not live.
    pub async fn live_digest(&self, name: &str) -> Option<String> {
        let areas = self.operate(Method::GET, "/areas").await.expect(200);
        let areas = areas["areas"].as_array().expect("a list").clone();
        let area = areas.iter().find(|area| area["name"] == name)?;
        area["digest"].as_str().map(str::to_owned)
    }

    /// Waits until an area's live version has this digest.
    ///
    /// # Panics
    /// It takes more than three minutes.
    #[track_caller]
    pub fn until_live(&self, name: &str, digest: &str) -> impl Future<Output = ()> {
        until(format!("{name} {digest} is live"), async move || {
            self.live_digest(name).await.as_deref() == Some(digest)
        })
    }

    /// Returns a number from the metrics: that of the first line with this prefix.
    pub async fn metric(&self, line: &str) -> Option<f64> {
        let page = self.operate(Method::GET, "/metrics").await;
        assert_eq!(page.status, 200);
        let text = page.text();
        let found = text.lines().find(|candidate| candidate.starts_with(line))?;
        found.rsplit(' ').next()?.parse().ok()
    }
}

/// Returns a component's digest: SHA-256 in lower-case hex.
#[must_use]
pub fn digest(component: &[u8]) -> String {
    hex::encode(Sha256::digest(component))
}

/// Returns the component with an additional custom section, which changes only its digest.
#[must_use]
pub fn stamped(component: &[u8], stamp: u8) -> Vec<u8> {
    let section = [0, 7, 5, b's', b't', b'a', b'm', b'p', stamp];
    [component, &section].concat()
}

/// Returns the items of a list.
#[must_use]
pub fn items(value: &Value) -> &[Value] {
    value.as_array().expect("an array")
}
