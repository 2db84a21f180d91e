//! Checks documents and queries against the manifest and the limits of a service.

use super::{FakeHost, MOST_DOCUMENTS};
use crate::documents::MAX_SEARCH_TEXT;
use crate::wit::assurance::area::documents::{Condition, Error, Query, Test, Value};
use crate::wit::assurance::area::manifest::Collection;

/// Maximum bytes of one read of a blob.
pub(super) const MAX_BLOB_READ: u32 = 8 << 20;
/// Maximum number of characters of a job's deduplication key.
pub(super) const MAX_KEY: usize = 200;
/// Maximum bytes of a secret's value.
pub(super) const MAX_SECRET: usize = 4_096;
/// Maximum bytes of a document's JSON body.
pub(super) const MAX_BODY: usize = 16 << 20;
/// Maximum number of values in one condition.
const MAX_VALUES: usize = 1_000;
/// Maximum number of fields of one condition.
const MAX_CONDITION_FIELDS: usize = 32;
const MAX_CONDITIONS: usize = 64;
/// Maximum bytes of text in the conditions of a query.
const MAX_CONDITION_BYTES: usize = 1 << 20;
/// Maximum number of fields of an order or a grouping.
const MAX_ORDER: usize = 8;
/// Maximum number of documents of a page.
const MAX_PAGE: u32 = 1_000;

fn misuse<T>(what: String) -> Result<T, Error> {
    Err(Error::Misuse(what))
}

impl FakeHost {
    /// Checks that the collection belongs to this area, or to another one that shares it or that
    /// the test has not declared.
    pub(super) fn readable(&self, collection: &str) -> Result<(), Error> {
        let Some((owner, name)) = collection.split_once('.') else {
            return self.declared(collection).map(drop);
        };
        let (own, others) = (&self.0.manifest.name, self.0.other_areas.borrow());
        let may_read = |reader: &String| reader == "*" || reader == own;
        let shares = |one: &Collection| one.name == name && one.readers.iter().any(may_read);
        let mut declared = others.iter().filter(|area| area.name == owner);
        if declared.all(|area| area.collections.iter().any(shares)) {
            return Ok(());
        }
        misuse(format!("{own} has no access to the collection {collection:?}"))
    }

    pub(super) fn declared(&self, collection: &str) -> Result<&Collection, Error> {
        let mut collections = self.0.manifest.collections.iter();
        collections
            .find(|declared| declared.name == collection)
            .ok_or_else(|| Error::Misuse(format!("no collection {collection}")))
    }

    fn fields<'a>(
        &self,
        collection: &str,
        mut fields: impl Iterator<Item = &'a String>,
    ) -> Result<(), Error> {
        let Ok(declared) = self.declared(collection) else { return Ok(()) };
        let unknown =
            fields.find(|field| !declared.fields.iter().any(|known| known.name == **field));
        unknown.map_or(Ok(()), |field| misuse(format!("{collection} has no field {field}")))
    }

    /// Checks that a query may read the collection and that its conditions are within the limits.
    pub(super) fn asked(&self, collection: &str, conditions: &[Condition]) -> Result<(), Error> {
        self.readable(collection)?;
        let declared = &self.0.manifest.collections;
        self.0.state.borrow_mut().documents.flush(Some(collection), declared);
        self.fields(collection, conditions.iter().flat_map(|condition| &condition.fields))?;
        if conditions.len() > MAX_CONDITIONS {
            return misuse(format!("a query has at most {MAX_CONDITIONS} conditions"));
        }
        let bytes: usize = conditions.iter().map(|condition| text_bytes(&condition.test)).sum();
        if bytes > MAX_CONDITION_BYTES {
            return misuse(format!(
                "the conditions hold {bytes} bytes of text; use at most {MAX_CONDITION_BYTES}"
            ));
        }
        conditions.iter().try_for_each(check_condition)
    }

    /// Checks the order and the limit of a query.
    pub(super) fn check_page(&self, query: &Query) -> Result<(), Error> {
        self.fields(&query.collection, query.order.iter().map(|order| &order.field))?;
        if !(1..=MAX_PAGE).contains(&query.limit) {
            return misuse(format!("a page has 1 to {MAX_PAGE} documents"));
        }
        if query.order.len() > MAX_ORDER {
            return misuse(format!("an order has at most {MAX_ORDER} fields"));
        }
        Ok(())
    }

    /// Checks the fields that a query groups by.
    pub(super) fn check_groups(&self, collection: &str, fields: &[String]) -> Result<(), Error> {
        self.fields(collection, fields.iter())?;
        if !(1..=MAX_ORDER).contains(&fields.len()) {
            return misuse(format!("counts are grouped by 1 to {MAX_ORDER} fields"));
        }
        Ok(())
    }

    /// Counts documents that the current call reads or writes, and enforces the limit.
    pub(super) fn charge(&self, documents: usize) -> Result<(), Error> {
        let used = self.0.used.get() + documents;
        self.0.used.set(used);
        if used > MOST_DOCUMENTS { Err(Error::LimitExceeded) } else { Ok(()) }
    }
}

fn check_condition(condition: &Condition) -> Result<(), Error> {
    if !(1..=MAX_CONDITION_FIELDS).contains(&condition.fields.len()) {
        return misuse(format!("a condition names 1 to {MAX_CONDITION_FIELDS} fields"));
    }
    match &condition.test {
        Test::OneOf(values) if values.len() > MAX_VALUES => {
            misuse(format!("one-of lists at most {MAX_VALUES} values"))
        }
        Test::Contains(text) if text.chars().count() > MAX_SEARCH_TEXT => {
            misuse(format!("contains takes at most {MAX_SEARCH_TEXT} characters"))
        }
        _ => Ok(()),
    }
}

/// Returns the number of bytes of the texts in a condition's test.
fn text_bytes(test: &Test) -> usize {
    let text = |value: &Value| if let Value::Text(text) = value { text.len() } else { 0 };
    match test {
        Test::Equals(value) => text(value),
        Test::OneOf(values) => values.iter().map(text).sum(),
        Test::Range((from, below)) => from.iter().chain(below).map(text).sum(),
        Test::Prefix(part) | Test::Contains(part) => part.len(),
    }
}
