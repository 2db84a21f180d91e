//! A client of the API with a session cookie and a CSRF token, or an access token, and a workspace.

use std::sync::Once;
use std::time::Duration;

use reqwest::{Method, RequestBuilder};
use serde_json::Value;

use crate::until::{Deadline, LIMIT};
use crate::{Answer, TestHost};

/// A client: signed in, a machine with an access token, or anonymous.
#[derive(Clone, Debug)]
pub struct Client {
    /// HTTP client that sends the requests.
    pub http: reqwest::Client,
    /// Base URL of the API, without a slash at the end.
    pub base: String,
    /// Value of the cookie `service_session`.
    pub session: Option<String>,
    /// Value of `X-CSRF-Token`.
    pub csrf: Option<String>,
    /// Access token for `Authorization: Bearer`.
    pub token: Option<String>,
    /// Replacement of `{ws}` in paths.
    pub workspace: String,
}

/// Installs ring as this process's TLS provider, once.
pub fn install_tls_provider() {
    static PROVIDER: Once = Once::new();
    PROVIDER.call_once(|| {
        // Another test of this process may have installed it.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
}

impl Client {
    /// Returns an anonymous client.
    #[must_use]
    pub fn nobody(base: &str) -> Self {
        install_tls_provider();
        let http = reqwest::Client::builder().no_proxy().build().expect("an HTTP client");
        let base = base.trim_end_matches('/').to_owned();
        Self { http, base, session: None, csrf: None, token: None, workspace: String::new() }
    }

    /// Returns a client of the same user for another workspace.
    #[must_use]
    pub fn in_workspace(&self, workspace: &str) -> Self {
        Self { workspace: workspace.to_owned(), ..self.clone() }
    }

    /// Returns the client for another host, or for its host after that started again.
    #[must_use]
    pub fn at(&self, host: &TestHost) -> Self {
        Self { base: host.api.clone(), ..self.clone() }
    }

    /// Returns a client with the same session that sends no CSRF token.
    #[must_use]
    pub fn without_csrf(&self) -> Self {
        Self { csrf: None, ..self.clone() }
    }

    /// Returns a client with the session that a response has begun.
    #[must_use]
    pub fn with_session(&self, answer: &Answer) -> Self {
        let mut cookies =
            answer.headers.get_all("set-cookie").iter().flat_map(|value| value.to_str());
        let session = cookies.find_map(|cookie| cookie.strip_prefix("service_session="));
        let session = session.and_then(|rest| rest.split(';').next()).expect("a session");
        let answer = answer.json();
        let csrf = answer["csrf_token"].as_str().expect("a CSRF token").to_owned();
        Self { session: Some(session.to_owned()), csrf: Some(csrf), ..self.clone() }
    }

    /// Returns a client with this access token for the same workspace.
    #[must_use]
    pub fn machine(&self, token: &str) -> Self {
        Self { session: None, csrf: None, token: Some(token.to_owned()), ..self.clone() }
    }

    /// Builds a request with the cookie and, for writes, the CSRF token. `{ws}` in the path is
    /// replaced by the client's workspace.
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let url = format!("{}{}", self.base, path.replace("{ws}", &self.workspace));
        let writes = ![Method::GET, Method::HEAD, Method::OPTIONS].contains(&method);
        let mut request = self.http.request(method, url);
        if let Some(session) = &self.session {
            request = request.header("cookie", format!("service_session={session}"));
        }
        if let Some(token) = &self.token {
            request = request.bearer_auth(token);
        }
        if let Some(csrf) = self.csrf.as_ref().filter(|_| writes) {
            request = request.header("x-csrf-token", csrf);
        }
        request
    }

    /// Sends a GET request.
    pub async fn get(&self, path: &str) -> Answer {
        send(self.request(Method::GET, path)).await
    }

    /// Sends a DELETE request.
    pub async fn delete(&self, path: &str) -> Answer {
        send(self.request(Method::DELETE, path)).await
    }

    /// Sends a POST request with a JSON body.
    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        send(self.request(Method::POST, path).json(body)).await
    }

    /// Sends a POST request with a JSON body and an idempotency key.
    pub async fn post_once(&self, path: &str, key: &str, body: &Value) -> Answer {
        let request = self.request(Method::POST, path).header("idempotency-key", key);
        send(request.json(body)).await
    }

    /// Sends a write with `If-Match` for this version. A null body is not sent.
    pub async fn change(&self, method: Method, path: &str, version: u64, body: &Value) -> Answer {
        let request = self.request(method, path).header("if-match", format!("\"{version}\""));
        send(if body.is_null() { request } else { request.json(body) }).await
    }

    /// Reads a resource until it meets the condition.
    ///
    /// # Panics
    /// It takes more than three minutes.
    #[track_caller]
    pub fn until(
        &self,
        path: &str,
        wanted: impl Fn(&Value) -> bool,
    ) -> impl Future<Output = Value> {
        self.read_until(path, format!("GET {path} returns the awaited content"), wanted)
    }

    /// Reads a resource until a member has one of these values.
    ///
    /// # Panics
    /// It takes more than three minutes.
    #[track_caller]
    pub fn settled(
        &self,
        path: &str,
        member: &str,
        values: &[&str],
    ) -> impl Future<Output = Value> {
        let what = format!("{member} of {path} is one of {values:?}");
        self.read_until(path, what, move |resource| {
            resource[member].as_str().is_some_and(|value| values.contains(&value))
        })
    }

    #[track_caller]
    fn read_until(
        &self,
        path: &str,
        what: String,
        wanted: impl Fn(&Value) -> bool,
    ) -> impl Future<Output = Value> {
        let deadline = Deadline::after(LIMIT);
        async move {
            loop {
                let resource = self.get(path).await.expect(200);
                if wanted(&resource) {
                    return resource;
                }
                deadline.pause(&what, &resource).await;
            }
        }
    }

    /// Repeats a GET request until the response has this status.
    ///
    /// # Panics
    /// It takes more than three minutes.
    #[track_caller]
    pub fn until_status(&self, path: &str, status: u16) -> impl Future<Output = Answer> {
        self.status_within(LIMIT, path, status)
    }

    /// Repeats a GET request until the response has this status.
    ///
    /// # Panics
    /// It takes longer than the limit.
    #[track_caller]
    pub fn status_within(
        &self,
        limit: Duration,
        path: &str,
        status: u16,
    ) -> impl Future<Output = Answer> {
        let deadline = Deadline::after(limit);
        async move {
            loop {
                let answer = self.get(path).await;
                if answer.status == status {
                    return answer;
                }
                let state = format!("{}: {}", answer.status, answer.text());
                deadline.pause(&format!("GET {path} returns {status}"), &state).await;
            }
        }
    }
}

/// Sends a request that must get a response.
pub async fn send(request: RequestBuilder) -> Answer {
    try_send(request).await.expect("an answer")
}

/// Sends a request that may fail to connect.
pub async fn try_send(request: RequestBuilder) -> Result<Answer, reqwest::Error> {
    let response = request.send().await?;
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    let path = response.url().path().to_owned();
    let bytes = response.bytes().await?.to_vec();
    Ok(Answer { status, headers, bytes, path })
}
