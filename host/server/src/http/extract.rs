//! Extracts bodies, queries and paths of the host's own operations. The rules are those of areas: strict
//! JSON, a schema, and all violations reported.

use std::time::Duration;

use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use axum::http::request::Parts;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use super::body::{BodyReader, check_media_type};
use super::code::Code;
use super::json;
use super::parameters::split_query;
use super::problem::{MOST_VIOLATIONS, Refusal};
use assurance_contract::CompiledSchema;
use assurance_service::app::App;

/// Maximum body size of the host's own operations, in bytes.
const MOST_BYTES: u64 = 64 << 10;

/// Type of a request body of the host's own operations, with its JSON Schema.
pub(super) trait BodySchema: DeserializeOwned + JsonSchema {
    /// Returns the compiled JSON Schema of the body type.
    fn schema() -> &'static CompiledSchema;
}

/// Compiles the schema of a body type. Panics if the schema is invalid, which is a bug of this
/// program.
pub(super) fn compiled<T: JsonSchema>() -> CompiledSchema {
    match CompiledSchema::new(schemars::schema_for!(T).to_value()) {
        Ok(schema) => schema,
        Err(error) => unreachable!("the schema of {}: {error}", T::schema_name()),
    }
}

/// Implements [`BodySchema`] with a static compiled schema.
macro_rules! host_body {
    ($($name:ty),+ $(,)?) => {$(
        impl $crate::http::extract::BodySchema for $name {
            fn schema() -> &'static assurance_contract::CompiledSchema {
                static SCHEMA: std::sync::LazyLock<assurance_contract::CompiledSchema> =
                    std::sync::LazyLock::new($crate::http::extract::compiled::<$name>);
                &SCHEMA
            }
        }
    )+};
}
pub(super) use host_body;

/// Extractor of a strictly parsed JSON body that matches the schema of its type.
pub(super) struct StrictJson<T>(pub(super) T);

impl<T: BodySchema> FromRequest<App> for StrictJson<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, app: &App) -> Result<Self, Refusal> {
        let (parts, body) = request.into_parts();
        check_media_type(&parts.headers, &body, "application/json")?;
        let content = BodyReader::open(&parts.headers, body, MOST_BYTES)?;
        let time = Duration::from_millis(u64::from(app.config.limits.body_timeout_ms));
        let bytes = content.read(time).await?;
        let text =
            std::str::from_utf8(&bytes).map_err(|_| Refusal::invalid_one("", "is not UTF-8"))?;
        shaped(text).map(Self)
    }
}

fn shaped<T: BodySchema>(text: &str) -> Result<T, Refusal> {
    let value = json::parse(text).map_err(|wrong| Refusal::invalid(&[wrong], 0))?.value;
    let (wrong, more) = T::schema().violations(&value, MOST_VIOLATIONS);
    if !wrong.is_empty() {
        return Err(Refusal::invalid(&wrong, more));
    }
    serde_json::from_value(value).map_err(|error| Refusal::invalid_one("", &error.to_string()))
}

/// Extractor that refuses requests with a query, for operations without query parameters.
pub(super) struct NoQuery;

impl FromRequestParts<App> for NoQuery {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, Refusal> {
        match split_query(parts.uri.query().unwrap_or_default())?.first() {
            Some((name, _)) => {
                Err(Refusal::invalid_one(name, "is not a parameter of this operation"))
            }
            None => Ok(Self),
        }
    }
}

/// Decoded text of the only parameter in the request's path.
pub(super) struct SinglePathParameter(pub(super) String);

impl<S: Send + Sync> FromRequestParts<S> for SinglePathParameter {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        let text = Path::from_request_parts(parts, state).await;
        let malformed =
            |_| Refusal::new(Code::MalformedRequest, "The path is not UTF-8 once decoded.");
        text.map(|Path(text)| Self(text)).map_err(malformed)
    }
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::body::Body;
    use axum::http::StatusCode;
    use axum::routing::get;
    use serde::Deserialize;
    use tower::ServiceExt as _;

    use super::*;
    use crate::http::problem::UnrenderedRefusal;

    #[derive(Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    struct SampleBody {
        #[schemars(length(min = 1, max = 3))]
        name: String,
    }
    host_body!(SampleBody);

    fn detail(text: &str) -> String {
        match shaped::<SampleBody>(text) {
            Ok(sample) => sample.name,
            Err(refusal) => format!("{refusal:?}"),
        }
    }

    #[tokio::test]
    async fn a_path_that_is_not_text_is_a_problem() {
        let router: Router = Router::new().route(
            "/guides/{name}",
            get(|SinglePathParameter(name): SinglePathParameter| async { name }),
        );
        for (path, status) in
            [("/guides/%C3%A4", StatusCode::OK), ("/guides/%FF", StatusCode::BAD_REQUEST)]
        {
            let request = Request::get(path).body(Body::empty()).unwrap();
            let response = router.clone().oneshot(request).await.unwrap();
            assert_eq!(response.status(), status, "{path}");
            let problem = response.extensions().get::<UnrenderedRefusal>();
            assert_eq!(problem.is_some(), status != StatusCode::OK, "{path}");
        }
    }

    #[test]
    fn the_types_own_schema_decides() {
        assert_eq!(detail(r#"{"name": "abc"}"#), "abc");
        assert!(detail(r#"{"name": "abcd"}"#).contains("/name: is longer than 3 characters"));
        assert!(detail(r#"{"nam": "abc"}"#).contains("/nam: is not a member"));
        assert!(detail(r#"{"name": "a", "name": "b"}"#).contains("/name: is given more than once"));
    }
}
