//! Query parameters and small JSON bodies of operators' requests. Unknown members are refused, so
//! that a typing error is never ignored.

use std::collections::BTreeMap;

use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::http::StatusCode;
use serde::de::DeserializeOwned;

use super::views::PageView;
use crate::http::code::Code;
use crate::http::problem::Refusal;

/// Default number of items on a page of the operators' API.
const PAGE: u32 = 50;
/// Maximum number of items on a page of the operators' API.
const MAX_PAGE: u32 = 200;

/// Query parameters of an operator's request that were not read yet.
pub(super) struct AdminQueryParams(BTreeMap<String, String>);

impl AdminQueryParams {
    /// Parses a query string. Refuses parameters that are not in `known`, or that are repeated.
    pub(super) fn of(query: Option<&str>, known: &[&str]) -> Result<Self, Refusal> {
        let pairs = url::form_urlencoded::parse(query.unwrap_or_default().as_bytes());
        let mut sent = BTreeMap::new();
        for (name, value) in pairs.into_owned() {
            if !known.contains(&name.as_str()) {
                let known = if known.is_empty() { "none".into() } else { known.join(", ") };
                let message = format!("is not a parameter of this operation; known: {known}");
                return Err(Refusal::invalid_one(&name, &message));
            }
            if sent.insert(name.clone(), value).is_some() {
                return Err(Refusal::invalid_one(&name, "is given more than once"));
            }
        }
        Ok(Self(sent))
    }

    /// Returns a parameter that may be empty; `None` if it is absent.
    pub(super) fn sent(&mut self, name: &str) -> Option<String> {
        self.0.remove(name)
    }

    /// Returns a parameter; `None` if it is absent or empty.
    pub(super) fn text(&mut self, name: &str) -> Option<String> {
        self.sent(name).filter(|text| !text.is_empty())
    }

    pub(super) fn boolean(&mut self, name: &str, default: bool) -> Result<bool, Refusal> {
        match self.sent(name).as_deref() {
            None => Ok(default),
            Some("true") => Ok(true),
            Some("false") => Ok(false),
            Some(_) => Err(Refusal::invalid_one(name, "must be true or false")),
        }
    }

    /// Reads the requested page from the parameters `limit` and `cursor`.
    pub(super) fn page(&mut self) -> Result<AdminPageParams, Refusal> {
        let limit = self.text("limit").map_or(Ok(PAGE), |text| text.parse());
        let limit = limit.ok().filter(|limit| (1..=MAX_PAGE).contains(limit)).ok_or_else(|| {
            Refusal::invalid_one("limit", &format!("must be from 1 to {MAX_PAGE}"))
        })?;
        let cursor = self.text("cursor").map(|text| text.parse()).transpose();
        let cursor = cursor.map_err(|_| {
            Refusal::invalid_one("cursor", "must be the cursor of an earlier response")
        })?;
        Ok(AdminPageParams { limit, cursor })
    }
}

/// Page of a list that a request of the operators' API asks for: its size and its cursor.
pub(super) struct AdminPageParams {
    pub(super) limit: u32,
    pub(super) cursor: Option<i64>,
}

impl AdminPageParams {
    /// Returns the exclusive upper bound of the ids on the page, from the request's cursor.
    pub(super) fn before(&self) -> i64 {
        self.cursor.unwrap_or(i64::MAX)
    }

    /// Returns the number of items to read for the page: one more than its size, which shows
    /// whether there is a next page.
    pub(super) fn read_limit(&self) -> u32 {
        self.limit + 1
    }

    /// Returns the page of the items that were read with [`Self::read_limit`].
    pub(super) fn view<T>(&self, mut items: Vec<T>, number: impl Fn(&T) -> i64) -> PageView<T> {
        let size = self.limit as usize;
        let more = items.len() > size;
        items.truncate(size);
        let last = items.last().filter(|_| more);
        let next_cursor = last.map(|last| number(last).to_string());
        PageView { items, next_cursor }
    }
}

/// Body of an operator's request, at most `limits.max_component_bytes`, or the reason why it was
/// not received.
pub(super) type RequestBytesResult = Result<Bytes, BytesRejection>;

/// Returns the bytes of a request body, or the refusal if it was too large or not received
/// completely.
pub(super) fn whole(sent: RequestBytesResult) -> Result<Bytes, Refusal> {
    sent.map_err(|rejected| match rejected.status() {
        StatusCode::PAYLOAD_TOO_LARGE => Refusal::new(
            Code::PayloadTooLarge,
            "The body is larger than the setting limits.max_component_bytes.",
        ),
        _ => Refusal::new(Code::MalformedRequest, "The body was not received completely."),
    })
}

/// Parses the JSON body of an operator's request. Refuses unknown members.
pub(super) fn body<T: DeserializeOwned>(sent: RequestBytesResult) -> Result<T, Refusal> {
    serde_json::from_slice(&whole(sent)?)
        .map_err(|error| Refusal::invalid_one("", &format!("is invalid: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_page_has_no_cursor_also_if_it_is_full() {
        let page = AdminQueryParams::of(Some("limit=2&cursor=9"), &["limit", "cursor"]).unwrap();
        let page = { page }.page().unwrap();
        assert_eq!((page.read_limit(), page.before()), (3, 9));
        for (read, items, next) in
            [(vec![8, 7, 6], vec![8, 7], Some("7")), (vec![8, 7], vec![8, 7], None)]
        {
            let view = page.view(read, |n| *n);
            assert_eq!((view.items, view.next_cursor.as_deref()), (items, next));
        }
    }

    #[test]
    fn what_is_not_known_or_out_of_bounds_is_refused() {
        assert!(AdminQueryParams::of(Some("activat=false"), &["activate"]).is_err());
        let repeated = Some("dry_run=true&dry_run=false");
        assert!(AdminQueryParams::of(repeated, &["dry_run"]).is_err());
        for wrong in ["limit=0", "limit=201", "limit=x", "cursor=x"] {
            let mut sent = AdminQueryParams::of(Some(wrong), &["limit", "cursor"]).unwrap();
            assert!(sent.page().is_err(), "{wrong}");
        }
        for wrong in ["activate=no", "activate="] {
            let mut sent = AdminQueryParams::of(Some(wrong), &["activate"]).unwrap();
            assert!(sent.boolean("activate", true).is_err(), "{wrong}");
        }
    }
}
