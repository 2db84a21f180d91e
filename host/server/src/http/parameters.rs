//! Parses path, query and header parameters as declared by the route.

use std::borrow::Cow;
use std::collections::HashSet;

use axum::http::HeaderMap;
use percent_encoding::percent_decode_str;
use uuid::Uuid;

use super::headers::malformed;
use super::problem::Refusal;
use assurance_contract::CompiledRoute;
use assurance_core::domain::area::{Parameter, Violation};
use assurance_core::domain::manifest::{
    ParameterKind, ParameterPlace, ParameterSpec, WorkspaceSource,
};

/// A decoded name and value of the query.
type QueryPair<'r> = (Cow<'r, str>, Cow<'r, str>);

/// Parameters and headers of a request that are not parsed yet.
pub(super) struct RawParameters<'r> {
    path: Vec<(&'r str, Cow<'r, str>)>,
    query: Vec<QueryPair<'r>>,
    headers: &'r HeaderMap,
}

impl<'r> RawParameters<'r> {
    /// Decodes the path and the query of a request.
    ///
    /// # Errors
    /// The percent-encoding is invalid.
    pub(super) fn new(
        contract: &'r CompiledRoute,
        path_values: &[&'r str],
        query: Option<&'r str>,
        headers: &'r HeaderMap,
    ) -> Result<Self, Refusal> {
        let names = contract.path_parameters.iter().map(String::as_str);
        let path = names
            .zip(path_values)
            .map(|(name, value)| Ok((name, decoded(value, "the path")?)))
            .collect::<Result<_, Refusal>>()?;
        Ok(Self { path, query: split_query(query.unwrap_or_default())?, headers })
    }

    /// Returns the decoded text of a path parameter; `None` if the route has no
    /// such parameter.
    pub(super) fn in_path(&self, name: &str) -> Option<&str> {
        self.path.iter().find(|(n, _)| *n == name).map(|(_, value)| value.as_ref())
    }

    /// Parses every parameter of the route and adds violations to `violations`.
    pub(super) fn read(
        &self,
        contract: &CompiledRoute,
        violations: &mut Vec<Violation>,
    ) -> Vec<Parameter> {
        let link = match &contract.route.workspace {
            WorkspaceSource::SignedLink(link) => Some(link.parameter.as_str()),
            WorkspaceSource::Path | WorkspaceSource::BodyMember(_) => None,
        };
        self.read_all(&contract.route.parameters, link, violations)
    }

    /// Parses the parameters `specs`. The query may also have the parameter `link`.
    fn read_all(
        &self,
        specs: &[ParameterSpec],
        link: Option<&str>,
        violations: &mut Vec<Violation>,
    ) -> Vec<Parameter> {
        self.refuse_unknown(specs, link, violations);
        let mut parameters = Vec::with_capacity(specs.len());
        for spec in specs {
            match self.read_one(spec) {
                Ok(Some(value)) => {
                    parameters.push(Parameter { name: spec.name.clone(), value });
                }
                Ok(None) => {}
                Err(message) => {
                    violations.push(Violation { pointer: spec.name.clone(), message });
                }
            }
        }
        parameters
    }

    fn read_one(&self, spec: &ParameterSpec) -> Result<Option<String>, String> {
        let text = match spec.place {
            ParameterPlace::Path => self.in_path(&spec.name).map(Cow::Borrowed),
            ParameterPlace::Query => self.in_query(&spec.name)?,
            ParameterPlace::Header => self.in_headers(&spec.name)?,
        };
        if spec.place == ParameterPlace::Path {
            let text = text.unwrap_or_default();
            return assurance_contract::decode(&spec.kind, &text).map(Some);
        }
        match text.filter(|text| !text.is_empty() && text != "null") {
            Some(text) => assurance_contract::decode(&spec.kind, &text).map(Some),
            None if spec.required => Err("is required".into()),
            None => Ok(spec.default.as_ref().map(ToString::to_string)),
        }
    }

    /// Returns the text of a query parameter; `None` if it is absent.
    ///
    /// # Errors
    /// The parameter is repeated.
    pub(super) fn in_query(&self, name: &str) -> Result<Option<Cow<'_, str>>, String> {
        let mut values = self.query.iter().filter(|(n, _)| n == name);
        let first = values.next().map(|(_, value)| Cow::Borrowed(value.as_ref()));
        if values.next().is_some() {
            return Err("is given more than once".into());
        }
        Ok(first)
    }

    fn in_headers(&self, name: &str) -> Result<Option<Cow<'_, str>>, String> {
        let mut values = self.headers.get_all(name).iter();
        let Some(value) = values.next() else { return Ok(None) };
        if values.next().is_some() {
            return Err("is given more than once".into());
        }
        let text = std::str::from_utf8(value.as_bytes()).map_err(|_| "is not UTF-8".to_owned())?;
        Ok(Some(Cow::Borrowed(text)))
    }

    fn refuse_unknown(
        &self,
        specs: &[ParameterSpec],
        link: Option<&str>,
        violations: &mut Vec<Violation>,
    ) {
        let in_query = specs.iter().filter(|spec| spec.place == ParameterPlace::Query);
        let known: Vec<&str> = in_query.map(|spec| spec.name.as_str()).chain(link).collect();
        let mut seen: HashSet<&str> = known.iter().copied().collect();
        for (name, _) in &self.query {
            if seen.insert(name) {
                let meant = assurance_contract::did_you_mean(name, known.iter().copied());
                let message = format!("is not a parameter of this operation{meant}");
                // An empty pointer would name the body.
                let pointer = if name.is_empty() { "?" } else { name };
                violations.push(Violation { pointer: pointer.to_owned(), message });
            }
        }
    }
}

/// Page of a list that a request to one of the host's own operations asks for.
#[derive(Debug)]
pub(super) struct PageParameters {
    pub(super) limit: u32,
    pub(super) cursor: Option<String>,
}

/// Default number of items on a page of the host's own lists.
const PAGE_ITEMS: u32 = 50;
const MOST_ITEMS: i64 = 100;

/// Maximum length of a cursor, in characters. The longest one contains an e-mail.
const MOST_CURSOR: u32 = 1024;

/// Describes `limit` and `cursor` of lists of the host's own operations.
pub(super) fn page_parameters() -> Vec<ParameterSpec> {
    let spec = |name: &str, summary: &str, kind, default| ParameterSpec {
        name: name.to_owned(),
        place: ParameterPlace::Query,
        summary: summary.to_owned(),
        kind,
        required: false,
        default,
    };
    let limit = ParameterKind::Integer { minimum: 1, maximum: MOST_ITEMS };
    let cursor = ParameterKind::Text { min_length: 1, max_length: MOST_CURSOR };
    vec![
        spec("limit", "Maximum number of items.", limit, Some(PAGE_ITEMS.into())),
        spec("cursor", "The `next_cursor` of the previous page.", cursor, None),
    ]
}

/// Parses the query of a list of the host's own operations: `limit` and
/// `cursor`.
///
/// # Errors
/// Names every parameter that is invalid, unknown or repeated.
pub(super) fn page(query: &str) -> Result<PageParameters, Refusal> {
    let headers = HeaderMap::new();
    let given = RawParameters { path: Vec::new(), query: split_query(query)?, headers: &headers };
    let mut wrong = Vec::new();
    let mut page = PageParameters { limit: PAGE_ITEMS, cursor: None };
    for Parameter { name, value } in given.read_all(&page_parameters(), None, &mut wrong) {
        match name.as_str() {
            "limit" => page.limit = value.parse().unwrap_or(PAGE_ITEMS),
            _ => page.cursor = serde_json::from_str(&value).map_err(Refusal::internal)?,
        }
    }
    if wrong.is_empty() { Ok(page) } else { Err(Refusal::invalid(&wrong, 0)) }
}

/// Parses the UUID in a parameter or member.
///
/// # Errors
/// 422 if it is absent or no UUID.
pub(super) fn uuid(name: &str, text: Option<&str>) -> Result<Uuid, Refusal> {
    let id = text.and_then(assurance_contract::canonical_uuid);
    id.ok_or_else(|| Refusal::invalid_one(name, "must be a UUID"))
}

/// Splits and decodes an `application/x-www-form-urlencoded` query.
///
/// # Errors
/// The percent-encoding is invalid.
pub(super) fn split_query(query: &str) -> Result<Vec<QueryPair<'_>>, Refusal> {
    query
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Ok((form_decoded(name)?, form_decoded(value)?))
        })
        .collect()
}

fn form_decoded(text: &str) -> Result<Cow<'_, str>, Refusal> {
    if text.contains('+') {
        let spaced = text.replace('+', " ");
        return Ok(Cow::Owned(decoded(&spaced, "the query")?.into_owned()));
    }
    decoded(text, "the query")
}

fn decoded<'t>(text: &'t str, place: &str) -> Result<Cow<'t, str>, Refusal> {
    if !text.contains('%') {
        return Ok(Cow::Borrowed(text));
    }
    if has_stray_percent(text.as_bytes()) {
        return Err(malformed(place, "has a `%` that is not followed by two hex digits"));
    }
    percent_decode_str(text)
        .decode_utf8()
        .map_err(|_| malformed(place, "is not UTF-8 once decoded"))
}

fn has_stray_percent(text: &[u8]) -> bool {
    text.iter().enumerate().any(|(at, byte)| {
        let digits = text.get(at + 1..at + 3);
        *byte == b'%' && !digits.is_some_and(|d| d.iter().all(u8::is_ascii_hexdigit))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use assurance_contract::fixtures;

    fn spec(name: &str, place: ParameterPlace, kind: ParameterKind) -> ParameterSpec {
        ParameterSpec {
            name: name.into(),
            place,
            summary: String::new(),
            kind,
            required: false,
            default: None,
        }
    }

    fn contract() -> CompiledRoute {
        let integer = ParameterKind::Integer { minimum: 1, maximum: 100 };
        let text = ParameterKind::Text { min_length: 0, max_length: 20 };
        let mut route = fixtures::route("list_notes", "/v1/workspaces/{workspace_id}/notes/{name}");
        route.parameters = vec![
            spec("name", ParameterPlace::Path, text.clone()),
            ParameterSpec {
                default: Some(json!(50)),
                ..spec("limit", ParameterPlace::Query, integer)
            },
            spec("q", ParameterPlace::Query, text),
            spec("x-mode", ParameterPlace::Header, ParameterKind::Boolean),
        ];
        fixtures::contract(route)
    }

    fn read(query: &str) -> (Vec<(String, String)>, Vec<String>) {
        let contract = contract();
        let headers = HeaderMap::new();
        let given = RawParameters::new(&contract, &["w", "a%20b"], Some(query), &headers).unwrap();
        let mut violations = Vec::new();
        let found = given.read(&contract, &mut violations);
        let found = found.into_iter().map(|p| (p.name, p.value)).collect();
        let wrong = violations.into_iter().map(|v| format!("{} {}", v.pointer, v.message));
        (found, wrong.collect())
    }

    fn values(query: &str) -> Vec<(String, String)> {
        let (found, wrong) = read(query);
        assert!(wrong.is_empty(), "{wrong:?}");
        found
    }

    #[test]
    fn absent_empty_and_null_are_not_given() {
        for query in ["", "q=", "q=null", "q"] {
            let found = values(query);
            assert_eq!(found.len(), 2, "{query}: {found:?}");
            assert_eq!(found[0], ("name".into(), "\"a b\"".into()));
            assert_eq!(found[1], ("limit".into(), "50".into()));
        }
        assert_eq!(values("q=a%2Bb+c&limit=7")[2], ("q".into(), "\"a+b c\"".into()));
    }

    #[test]
    fn unknown_repeated_and_wrong_parameters_are_named() {
        assert_eq!(read("limit=0").1, ["limit must be an integer from 1 to 100"]);
        assert_eq!(read("q=a&q=b").1, ["q is given more than once"]);
        assert_eq!(read("Q=a&Q=b").1, ["Q is not a parameter of this operation"]);
        let meant = "limt is not a parameter of this operation (did you mean `limit`?)";
        assert_eq!(read("limt=5").1, [meant]);
        assert_eq!(read("=5").1, ["? is not a parameter of this operation"]);
        assert_eq!(read("q=%00").1, ["q must not contain U+0000"]);
    }

    #[test]
    fn a_list_names_ten_wrong_parameters_each_once_and_counts_the_rest() {
        let detail = |query: &str| format!("{:?}", page(query).expect_err("a refusal"));
        assert_eq!(detail("x=1&x=2").matches("is not a parameter").count(), 1);
        assert!(detail("limit=1&limit=2").contains("limit: is given more than once"));
        let unknown = (0..12).map(|n| format!("u{n}=")).collect::<Vec<_>>().join("&");
        let detail = detail(&unknown);
        assert!(detail.contains("u9: ") && !detail.contains("u10"), "{detail}");
        assert!(detail.contains("and 2 more"), "{detail}");
    }

    #[test]
    fn the_cursor_of_the_longest_email_is_accepted() {
        // 254 characters that JSON escapes, seven of JSON and a tag of 16 bytes, in base64.
        let cursor = "x".repeat((254 * 2 + 7 + 16_usize).div_ceil(3) * 4);
        let page = page(&format!("cursor={cursor}")).expect("a page");
        assert_eq!(page.cursor, Some(cursor));
    }

    #[test]
    fn many_unknown_parameters_are_each_named_once_in_time() {
        let unknown = (0..60_000).map(|n| format!("u{n}=&U{n}")).collect::<Vec<_>>().join("&");
        let began = std::time::Instant::now();
        assert_eq!(read(&unknown).1.len(), 120_000);
        assert!(began.elapsed().as_secs() < 10, "{:?}", began.elapsed());
    }

    #[test]
    fn bad_percent_encoding_is_a_malformed_request() {
        for query in ["q=%", "q=%zz", "q=%ff"] {
            let (contract, headers) = (contract(), HeaderMap::new());
            assert!(
                RawParameters::new(&contract, &["w", "x"], Some(query), &headers).is_err(),
                "{query}"
            );
        }
    }
}
