//! What operators send beside components: a few query parameters and small
//! JSON bodies. What is not known is refused, so that a typing error does not
//! pass for a wish.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;

use crate::http::problem::Refusal;

/// Items of a page, where the operator does not say.
const PAGE: u32 = 50;
/// Items of a page at most.
const MAX_PAGE: u32 = 200;

/// The parameters of a query.
pub(super) struct Parameters(BTreeMap<String, String>);

impl Parameters {
    /// Reads them; each must be one of those known.
    pub(super) fn of(query: Option<&str>, known: &[&str]) -> Result<Self, Refusal> {
        let pairs = url::form_urlencoded::parse(query.unwrap_or_default().as_bytes());
        let sent: BTreeMap<String, String> = pairs.into_owned().collect();
        match sent.keys().find(|name| !known.contains(&name.as_str())) {
            None => Ok(Self(sent)),
            Some(name) => {
                let known = if known.is_empty() { "none".into() } else { known.join(", ") };
                Err(Refusal::invalid_one(name, &format!("is not a parameter here; known: {known}")))
            }
        }
    }

    pub(super) fn text(&mut self, name: &str) -> Option<String> {
        self.0.remove(name).filter(|text| !text.is_empty())
    }

    pub(super) fn boolean(&mut self, name: &str, default: bool) -> Result<bool, Refusal> {
        match self.text(name).as_deref() {
            None => Ok(default),
            Some("true") => Ok(true),
            Some("false") => Ok(false),
            Some(_) => Err(Refusal::invalid_one(name, "must be true or false")),
        }
    }

    /// `limit` and `cursor`.
    pub(super) fn page(&mut self) -> Result<Page, Refusal> {
        let limit = self.text("limit").map_or(Ok(PAGE), |text| text.parse());
        let limit = limit.ok().filter(|limit| (1..=MAX_PAGE).contains(limit)).ok_or_else(|| {
            Refusal::invalid_one("limit", &format!("must be from 1 to {MAX_PAGE}"))
        })?;
        let cursor = self.text("cursor").map(|text| text.parse()).transpose();
        let cursor = cursor.map_err(|_| {
            Refusal::invalid_one("cursor", "must be the cursor of an earlier answer")
        })?;
        Ok(Page { limit, cursor })
    }
}

/// Which part of a list is wanted.
pub(super) struct Page {
    pub(super) limit: u32,
    pub(super) cursor: Option<i64>,
}

impl Page {
    /// What is older is on it.
    pub(super) fn before(&self) -> i64 {
        self.cursor.unwrap_or(i64::MAX)
    }

    /// Where the next page begins, if there may be one.
    pub(super) fn next<T>(&self, items: &[T], number: impl Fn(&T) -> i64) -> Option<String> {
        let full = items.len() == self.limit as usize;
        items.last().filter(|_| full).map(|last| number(last).to_string())
    }
}

/// A JSON body of exactly its type's shape.
pub(super) fn body<T: DeserializeOwned>(sent: &[u8]) -> Result<T, Refusal> {
    serde_json::from_slice(sent)
        .map_err(|error| Refusal::invalid_one("", &format!("is not what is taken here: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_ends_where_fewer_came_than_were_asked_for() {
        let page = Parameters::of(Some("limit=2&cursor=9"), &["limit", "cursor"]).unwrap();
        let page = { page }.page().unwrap();
        assert_eq!((page.limit, page.before()), (2, 9));
        assert_eq!(page.next(&[8, 7], |n| *n), Some("7".into()));
        assert_eq!(page.next(&[8], |n| *n), None);
    }

    #[test]
    fn what_is_not_known_or_out_of_bounds_is_refused() {
        assert!(Parameters::of(Some("activat=false"), &["activate"]).is_err());
        for wrong in ["limit=0", "limit=201", "limit=x", "cursor=x"] {
            let mut sent = Parameters::of(Some(wrong), &["limit", "cursor"]).unwrap();
            assert!(sent.page().is_err(), "{wrong}");
        }
        let mut sent = Parameters::of(Some("activate=no"), &["activate"]).unwrap();
        assert!(sent.boolean("activate", true).is_err());
    }
}
