//! Documents in memory, with the behavior that `wit/documents.wit` defines.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::rc::Rc;

use serde_json::Value as Json;

use super::limits::MAX_BODY;
use crate::time::Timestamp;
use crate::wit::assurance::area::documents::{
    Condition, Document, Error, Group, Order, Query, Start, Test, Value, Write,
};
use crate::wit::assurance::area::manifest::Collection;

/// Maximum number of characters of a document's id, as in a service.
const MAX_ID: usize = 200;

/// Maximum bytes of text in one index entry, as in a service.
const MAX_INDEXED_BYTES: usize = 1_600;

/// Documents of all collections. Each call begins with a copy; collections that it does not change
/// stay shared.
#[derive(Clone, Default)]
pub(super) struct Documents {
    collections: BTreeMap<String, Rc<CollectionDocuments>>,
    /// Versions of the documents that the call deleted, by collection and id. A new document with
    /// the id continues them.
    deleted: BTreeMap<(String, String), u64>,
    /// Documents whose unique values the next flush checks, by collection, as they were at the last
    /// one. `None` if each `apply` checks its own, or after a flush that found a conflict.
    pending: Option<BTreeMap<String, FormerDocuments>>,
}

/// The documents of a collection, by id.
type CollectionDocuments = BTreeMap<String, Rc<ParsedDocument>>;

/// The documents that an `apply` writes, as they were before it, by id; `None` if there was none.
type FormerDocuments = BTreeMap<String, Option<Rc<ParsedDocument>>>;

/// A stored document and its parsed JSON body.
struct ParsedDocument {
    document: Document,
    body: Json,
}

impl ParsedDocument {
    fn new(document: Document) -> Self {
        let body = serde_json::from_str(&document.body).unwrap_or_default();
        Self { document, body }
    }

    /// Returns the value of a field; `Null` if the body lacks it.
    fn value(&self, field: &str) -> Value {
        member(&self.body[field])
    }
}

fn member(member: &Json) -> Value {
    match member {
        Json::String(text) => Value::Text(text.clone()),
        Json::Bool(truth) => Value::Boolean(*truth),
        Json::Number(number) => number.as_i64().map_or(Value::Null, Value::Integer),
        _ => Value::Null,
    }
}

fn compare(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Text(a), Value::Text(b)) => a.cmp(b),
        (Value::Integer(a), Value::Integer(b)) => a.cmp(b),
        (Value::Boolean(a), Value::Boolean(b)) => a.cmp(b),
        (Value::Null, Value::Null) => Ordering::Equal,
        (Value::Null, _) => Ordering::Less,
        _ => Ordering::Greater,
    }
}

fn passes(found: &Value, test: &Test) -> bool {
    match (test, found) {
        (Test::Equals(expected), found) => found == expected,
        (Test::OneOf(expected), found) => expected.contains(found),
        (Test::Range((from, below)), found) => {
            *found != Value::Null
                && from.as_ref().is_none_or(|from| compare(found, from).is_ge())
                && below.as_ref().is_none_or(|below| compare(found, below).is_lt())
        }
        (Test::Prefix(prefix), Value::Text(text)) => text.starts_with(prefix),
        (Test::Contains(part), Value::Text(text)) => {
            text.to_lowercase().contains(&part.to_lowercase())
        }
        _ => false,
    }
}

/// Refuses a body whose texts are too long for one of the indexes.
fn check_indexed(declared: &Collection, body: &Json) -> Result<(), Error> {
    for index in &declared.indexes {
        let lengths = index.fields.iter().filter_map(|field| body[field].as_str().map(str::len));
        let bytes: usize = lengths.sum();
        if bytes > MAX_INDEXED_BYTES {
            return Err(Error::Misuse(format!(
                "{}: the indexed fields {} hold {bytes} bytes; an index takes {MAX_INDEXED_BYTES}",
                declared.name,
                index.fields.join(", ")
            )));
        }
    }
    Ok(())
}

/// Returns the values of a unique index as text; `None` if one of them is missing or null.
fn unique_key(body: &Json, fields: &[String]) -> Option<String> {
    let values = fields.iter().map(|field| member(&body[field]));
    let values = values.map(|value| (value != Value::Null).then_some(value));
    values.collect::<Option<Vec<Value>>>().map(|values| format!("{values:?}"))
}

fn matches(document: &ParsedDocument, conditions: &[Condition]) -> bool {
    conditions.iter().all(|condition| {
        condition.fields.iter().any(|field| passes(&document.value(field), &condition.test))
    })
}

/// Sort position of a document: the values of the order's fields, then the id.
#[derive(Clone)]
struct SortPosition {
    values: Vec<Value>,
    id: String,
}

impl SortPosition {
    fn of(document: &ParsedDocument, order: &[Order]) -> Self {
        let values = order.iter().map(|step| document.value(&step.field)).collect();
        Self { values, id: document.document.id.clone() }
    }

    /// Encodes the position as a cursor. The cursor stays valid if its document is deleted.
    fn encode(&self) -> String {
        let json = |value: &Value| match value {
            Value::Text(text) => Json::from(text.as_str()),
            Value::Integer(number) => Json::from(*number),
            Value::Boolean(truth) => Json::from(*truth),
            Value::Null => Json::Null,
        };
        let values: Vec<Json> = self.values.iter().map(json).collect();
        serde_json::json!([self.id, values]).to_string()
    }

    fn decode(cursor: &str, order: &[Order]) -> Option<Self> {
        let (id, values): (String, Vec<Json>) = serde_json::from_str(cursor).ok()?;
        let values: Vec<Value> = values.iter().map(member).collect();
        (values.len() == order.len()).then_some(Self { values, id })
    }

    fn cmp(&self, other: &Self, order: &[Order]) -> Ordering {
        let directed = |ordering: Ordering, descending: bool| {
            if descending { ordering.reverse() } else { ordering }
        };
        let pairs = self.values.iter().zip(&other.values).zip(order);
        let by_fields = pairs.fold(Ordering::Equal, |ordering, ((a, b), step)| {
            ordering.then_with(|| directed(compare(a, b), step.descending))
        });
        let descending = order.last().is_none_or(|step| step.descending);
        by_fields.then_with(|| directed(self.id.cmp(&other.id), descending))
    }
}

impl Documents {
    fn of(&self, collection: &str) -> impl Iterator<Item = &ParsedDocument> {
        self.collections.get(collection).into_iter().flat_map(|kept| kept.values()).map(Rc::as_ref)
    }

    pub(super) fn all(&self, collection: &str) -> Vec<Json> {
        self.of(collection).map(|document| document.body.clone()).collect()
    }

    fn find(&self, collection: &str, id: &str) -> Option<&ParsedDocument> {
        self.collections.get(collection)?.get(id).map(Rc::as_ref)
    }

    pub(super) fn get(&self, collection: &str, id: &str) -> Option<Document> {
        self.find(collection, id).map(|found| found.document.clone())
    }

    /// Discards the versions of the documents that the previous attempt of a call deleted.
    pub(super) fn begin_attempt(&mut self, defers_unique: bool) {
        self.deleted.clear();
        self.pending = defers_unique.then(BTreeMap::new);
    }

    /// Checks unique values at the commit, or before the query of a collection with pending writes.
    /// Returns false if this flush or an earlier one of the attempt found a conflict.
    pub(super) fn flush(&mut self, queried: Option<&str>, declared: &[Collection]) -> bool {
        let Some(pending) = &mut self.pending else { return false };
        if queried.is_some_and(|collection| !pending.contains_key(collection)) {
            return true;
        }
        let pending = std::mem::take(pending);
        let mut written = declared.iter().filter_map(|one| Some((one, pending.get(&one.name)?)));
        if written.any(|(collection, former)| self.check_unique(collection, former).is_err()) {
            self.pending = None;
        }
        self.pending.is_some()
    }

    pub(super) fn put(&mut self, collection: &str, id: &str, body: String, now: Timestamp) -> u64 {
        let before = self.find(collection, id).map(|found| &found.document);
        let deleted = || self.deleted.get(&(collection.to_owned(), id.to_owned())).copied();
        let last = before.map(|document| document.version).or_else(deleted).unwrap_or_default();
        let version = last + 1;
        let document = Document {
            id: id.to_owned(),
            version,
            body,
            created_at: before.map_or(now.0, |document| document.created_at),
            updated_at: now.0,
        };
        let kept = self.collections.entry(collection.to_owned()).or_default();
        Rc::make_mut(kept).insert(id.to_owned(), Rc::new(ParsedDocument::new(document)));
        version
    }

    pub(super) fn clear(&mut self, collection: &str) {
        self.collections.remove(collection);
    }

    fn matching(&self, collection: &str, conditions: &[Condition]) -> Vec<&ParsedDocument> {
        self.of(collection).filter(|document| matches(document, conditions)).collect()
    }

    pub(super) fn count(&self, collection: &str, conditions: &[Condition]) -> usize {
        self.matching(collection, conditions).len()
    }

    /// Returns the number of documents for each combination of the fields' values, ordered by them.
    pub(super) fn groups(
        &self,
        collection: &str,
        conditions: &[Condition],
        fields: &[String],
    ) -> Vec<Group> {
        let mut groups: Vec<Group> = Vec::new();
        for document in self.matching(collection, conditions) {
            let values: Vec<Value> = fields.iter().map(|field| document.value(field)).collect();
            match groups.iter_mut().find(|group| group.values == values) {
                Some(group) => group.count += 1,
                None => groups.push(Group { values, count: 1 }),
            }
        }
        groups.sort_by(|a, b| {
            let mut orders = a.values.iter().zip(&b.values).map(|(a, b)| compare(a, b));
            orders.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
        });
        groups
    }

    /// Returns a page of documents and the cursor of the next page.
    pub(super) fn query(&self, query: &Query) -> Result<(Vec<Document>, Option<String>), Error> {
        let order = &query.order;
        let found = self.matching(&query.collection, &query.conditions).into_iter();
        let mut found: Vec<(SortPosition, &ParsedDocument)> =
            found.map(|document| (SortPosition::of(document, order), document)).collect();
        found.sort_by(|(a, _), (b, _)| a.cmp(b, order));
        let after = match &query.start {
            Start::First => None,
            Start::Cursor(cursor) => {
                Some(SortPosition::decode(cursor, order).ok_or(Error::InvalidCursor)?)
            }
            Start::After(id) => {
                let document = self.find(&query.collection, id).ok_or(Error::NotFound)?;
                Some(SortPosition::of(document, order))
            }
        };
        let beyond = |position: &SortPosition| {
            after.as_ref().is_none_or(|after| position.cmp(after, order).is_gt())
        };
        found.retain(|(position, _)| beyond(position));
        let limit = usize::try_from(query.limit).unwrap_or(usize::MAX);
        let more = found.len() > limit;
        found.truncate(limit);
        let next = found.last().filter(|_| more).map(|(position, _)| position.encode());
        Ok((found.into_iter().map(|(_, found)| found.document.clone()).collect(), next))
    }

    /// Applies writes to documents in order, all or none.
    pub(super) fn apply(
        &mut self,
        declared: &Collection,
        writes: &[Write],
        now: Timestamp,
    ) -> Result<Vec<u64>, Error> {
        let (mut former, deleted) = (FormerDocuments::new(), self.deleted.clone());
        let write = |write: &Write| {
            let (Write::Create((id, _)) | Write::Replace((id, _, _)) | Write::Delete((id, _))) =
                write;
            let kept = self.collections.get(&declared.name);
            let document = || kept.and_then(|kept| kept.get(id)).cloned();
            former.entry(id.clone()).or_insert_with(document);
            self.write(declared, write, now)
        };
        let versions: Result<Vec<u64>, Error> = writes.iter().map(write).collect();
        let result = versions.and_then(|versions| {
            if self.pending.is_none() {
                self.check_unique(declared, &former)?;
            }
            Ok(versions)
        });
        if result.is_err() {
            self.restore(&declared.name, former);
            self.deleted = deleted;
        } else if let Some(pending) = &mut self.pending {
            let pending = pending.entry(declared.name.clone()).or_default();
            for (id, before) in former {
                pending.entry(id).or_insert(before);
            }
        }
        result
    }

    fn restore(&mut self, collection: &str, former: FormerDocuments) {
        let kept = Rc::make_mut(self.collections.entry(collection.to_owned()).or_default());
        for (id, document) in former {
            match document {
                Some(document) => kept.insert(id, document),
                None => kept.remove(&id),
            };
        }
    }

    /// Refuses writes that violate a unique index in the order in which a service writes them:
    /// deletions, then changes by id, then creations.
    fn check_unique(&self, declared: &Collection, former: &FormerDocuments) -> Result<(), Error> {
        let now = |id: &String| self.find(&declared.name, id);
        for index in declared.indexes.iter().filter(|index| index.unique) {
            let key = |document: &ParsedDocument| unique_key(&document.body, &index.fields);
            let mut owners: BTreeMap<String, usize> = BTreeMap::new();
            for values in self.of(&declared.name).filter_map(key) {
                *owners.entry(values).or_default() += 1;
            }
            let mut written = former.keys().filter_map(|id| key(now(id)?));
            let is_shared = written.any(|values| owners.get(&values).is_some_and(|&n| n > 1));
            let mut changed =
                former.iter().filter_map(|(id, before)| Some((id, before.as_deref()?, now(id)?)));
            let given_up: BTreeMap<String, &String> =
                changed.clone().filter_map(|(id, before, _)| Some((key(before)?, id))).collect();
            let is_given_up_later = changed.any(|(id, _, after)| {
                key(after).and_then(|values| given_up.get(&values)).is_some_and(|other| *other > id)
            });
            if is_shared || is_given_up_later {
                return Err(Error::UniqueConflict(index.fields.clone()));
            }
        }
        Ok(())
    }

    fn write(
        &mut self,
        declared: &Collection,
        write: &Write,
        now: Timestamp,
    ) -> Result<u64, Error> {
        let collection = &declared.name;
        match write {
            Write::Create((id, body)) => {
                if !(1..=MAX_ID).contains(&id.chars().count()) {
                    let what = format!("{id:?} is not a valid id; use 1 to {MAX_ID} characters");
                    return Err(Error::Misuse(what));
                }
                if self.find(collection, id).is_some() {
                    return Err(Error::AlreadyExists);
                }
                self.keep(declared, id, body, now)
            }
            Write::Replace((id, expected, body)) => {
                self.expect(collection, id, *expected)?;
                self.keep(declared, id, body, now)
            }
            Write::Delete((id, expected)) => {
                self.expect(collection, id, *expected)?;
                if let Some(kept) = self.collections.get_mut(collection) {
                    let gone = Rc::make_mut(kept).remove(id);
                    let versions = gone.map(|gone| gone.document.version);
                    self.deleted
                        .extend(versions.map(|at| ((collection.to_owned(), id.to_owned()), at)));
                }
                Ok(0)
            }
        }
    }

    fn expect(&self, collection: &str, id: &str, expected: Option<u64>) -> Result<(), Error> {
        let current = self.find(collection, id).ok_or(Error::NotFound)?.document.version;
        match expected {
            Some(expected) if expected != current => Err(Error::VersionConflict(current)),
            _ => Ok(()),
        }
    }

    fn keep(
        &mut self,
        declared: &Collection,
        id: &str,
        body: &str,
        now: Timestamp,
    ) -> Result<u64, Error> {
        if body.len() > MAX_BODY {
            let (name, size) = (&declared.name, body.len());
            let what = format!("{name}: a document has {size} bytes; use at most {MAX_BODY} bytes");
            return Err(Error::Misuse(what));
        }
        let new: Json = serde_json::from_str(body).unwrap_or_default();
        if !new.is_object() {
            return Err(Error::Misuse(format!("{}: a document is a JSON object", declared.name)));
        }
        check_indexed(declared, &new)?;
        Ok(self.put(&declared.name, id, body.to_owned(), now))
    }
}
