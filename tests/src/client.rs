//! A client of the API: a session cookie, its CSRF token, and a workspace.

use std::sync::Once;

use reqwest::{Method, RequestBuilder};
use serde_json::Value;

use crate::Answer;

/// One signed-in person, or nobody.
#[derive(Clone, Debug)]
pub struct Client {
    /// Sends the requests.
    pub http: reqwest::Client,
    /// Where the API is, without a slash at the end.
    pub base: String,
    /// The value of `service_session`.
    pub session: Option<String>,
    /// What goes into `X-CSRF-Token`.
    pub csrf: Option<String>,
    /// What `{ws}` in a path stands for.
    pub workspace: String,
}

/// Makes ring this process's TLS provider, once.
pub fn install_tls_provider() {
    static PROVIDER: Once = Once::new();
    PROVIDER.call_once(|| {
        // Another test of this process may have installed one: as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
}

impl Client {
    /// Somebody who has not signed in.
    #[must_use]
    pub fn nobody(base: &str) -> Self {
        install_tls_provider();
        let http = reqwest::Client::builder().no_proxy().build().expect("an HTTP client");
        let base = base.trim_end_matches('/').to_owned();
        Self { http, base, session: None, csrf: None, workspace: String::new() }
    }

    /// The same person in another workspace.
    #[must_use]
    pub fn in_workspace(&self, workspace: &str) -> Self {
        Self { workspace: workspace.to_owned(), ..self.clone() }
    }

    /// A request with cookie and, where it writes, CSRF token; `{ws}` in the
    /// path stands for the client's workspace.
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let url = format!("{}{}", self.base, path.replace("{ws}", &self.workspace));
        let writes = ![Method::GET, Method::HEAD, Method::OPTIONS].contains(&method);
        let mut request = self.http.request(method, url);
        if let Some(session) = &self.session {
            request = request.header("cookie", format!("service_session={session}"));
        }
        if let Some(csrf) = self.csrf.as_ref().filter(|_| writes) {
            request = request.header("x-csrf-token", csrf);
        }
        request
    }

    /// GET.
    pub async fn get(&self, path: &str) -> Answer {
        send(self.request(Method::GET, path)).await
    }

    /// DELETE.
    pub async fn delete(&self, path: &str) -> Answer {
        send(self.request(Method::DELETE, path)).await
    }

    /// POST of a JSON body.
    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        send(self.request(Method::POST, path).json(body)).await
    }

    /// POST of a JSON body under an idempotency key.
    pub async fn post_once(&self, path: &str, key: &str, body: &Value) -> Answer {
        let request = self.request(Method::POST, path).header("idempotency-key", key);
        send(request.json(body)).await
    }
}

/// Sends a request that must be answered, whatever the answer.
pub async fn send(request: RequestBuilder) -> Answer {
    try_send(request).await.expect("an answer")
}

/// Sends a request that may find nobody there.
pub async fn try_send(request: RequestBuilder) -> Result<Answer, reqwest::Error> {
    let response = request.send().await?;
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    let path = response.url().path().to_owned();
    let bytes = response.bytes().await?.to_vec();
    Ok(Answer { status, headers, bytes, path })
}
