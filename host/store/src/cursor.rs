//! Authenticated page cursors, which clients can return but not create.

use std::str::FromStr;

use base64::prelude::{BASE64_URL_SAFE_NO_PAD, Engine};
use hmac::{Hmac, Mac};
use sha2::Sha256;
use subtle::ConstantTimeEq;
use uuid::Uuid;

use super::error::Error;
use assurance_core::domain::document::{FieldValue, QueryCondition, SortField};

const TAG_BYTES: usize = 16;

/// Position after one document in the order of a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CursorPosition {
    /// The document's values in the fields of the order.
    pub(super) values: Vec<FieldValue>,
    pub(super) id: String,
}

/// Query that a cursor is bound to. The cursor is invalid for any other query.
#[derive(Clone, Copy, Debug)]
pub(super) struct CursorBinding<'a> {
    pub(super) key: &'a [u8; 32],
    /// Workspace or user whose rows are listed.
    pub(super) owner: Uuid,
    pub(super) collection: &'a str,
    pub(super) conditions: &'a [QueryCondition],
    pub(super) order: &'a [SortField],
}

impl<'a> CursorBinding<'a> {
    /// Returns the binding to a list without conditions, in the order of its
    /// ids.
    pub(super) fn of_list(key: &'a [u8; 32], owner: Uuid, collection: &'a str) -> Self {
        Self { key, owner, collection, conditions: &[], order: &[] }
    }

    pub(super) fn encode(&self, position: &CursorPosition) -> String {
        let payload = to_json(&(&position.id, &position.values));
        let mut bytes = self.tag(&payload).to_vec();
        bytes.extend_from_slice(&payload);
        BASE64_URL_SAFE_NO_PAD.encode(bytes)
    }

    /// Decodes a page cursor; `None` if it was not created for this query.
    pub(super) fn decode(&self, cursor: &str) -> Option<CursorPosition> {
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(cursor).ok()?;
        let (tag, payload) = bytes.split_first_chunk::<TAG_BYTES>()?;
        if !bool::from(tag.ct_eq(&self.tag(payload))) {
            return None;
        }
        let (id, values): (String, Vec<FieldValue>) = serde_json::from_slice(payload).ok()?;
        (values.len() == self.order.len()).then_some(CursorPosition { values, id })
    }

    /// Returns the id that the page of a cursor begins after; `None` without a
    /// cursor, for the first page. Returns [`Error::InvalidCursor`] for a
    /// cursor of another query.
    pub(super) fn after<T: FromStr>(&self, cursor: Option<&str>) -> Result<Option<T>, Error> {
        let id = |cursor: &str| self.decode(cursor)?.id.parse().ok();
        cursor.map(|cursor| id(cursor).ok_or(Error::InvalidCursor)).transpose()
    }

    /// Returns a page of rows and the cursor of the next one, if there is one.
    /// `rows` are at most one more than the page, which shows whether there is
    /// a next page.
    pub(super) fn page<T>(
        &self,
        mut rows: Vec<T>,
        limit: u32,
        id: impl Fn(&T) -> String,
    ) -> (Vec<T>, Option<String>) {
        let more = rows.len() > limit as usize;
        rows.truncate(limit as usize);
        let last = rows.last().filter(|_| more);
        let next = last.map(|last| CursorPosition { values: Vec::new(), id: id(last) });
        (rows, next.map(|position| self.encode(&position)))
    }

    fn tag(&self, payload: &[u8]) -> [u8; TAG_BYTES] {
        let query = to_json(&(self.collection, self.conditions, self.order));
        let mut mac = <Hmac<Sha256> as hmac::KeyInit>::new_from_slice(self.key)
            .expect("HMAC takes a key of any length");
        mac.update(self.owner.as_bytes());
        mac.update(&(query.len() as u64).to_be_bytes());
        mac.update(&query);
        mac.update(payload);
        let full = mac.finalize().into_bytes();
        std::array::from_fn(|at| full[at])
    }
}

fn to_json(value: &impl serde::Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("texts, numbers and lists of them have a JSON form")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use assurance_core::domain::document::FieldTest;

    fn value() -> impl Strategy<Value = FieldValue> {
        prop_oneof![
            Just(FieldValue::Null),
            any::<bool>().prop_map(FieldValue::Boolean),
            any::<i64>().prop_map(FieldValue::Integer),
            ".{0,8}".prop_map(FieldValue::Text),
        ]
    }

    fn position() -> impl Strategy<Value = CursorPosition> {
        ("[a-z0-9-]{1,12}", prop::collection::vec(value(), 2))
            .prop_map(|(id, values)| CursorPosition { values, id })
    }

    fn order(descending: bool) -> Vec<SortField> {
        let by = |field: &str| SortField { field: field.into(), descending };
        vec![by("a"), by("b")]
    }

    proptest! {
        #[test]
        fn a_cursor_comes_back_whole_and_only_unaltered(position in position(), flip in any::<prop::sample::Index>(), bit in 0..8_u8) {
            let key = [1; 32];
            let order = order(true);
            let list = CursorBinding::of_list(&key, Uuid::new_v4(), "a.b");
            let binding = CursorBinding { order: &order, ..list };
            let cursor = binding.encode(&position);
            prop_assert_eq!(binding.decode(&cursor), Some(position));
            let mut bytes = BASE64_URL_SAFE_NO_PAD.decode(&cursor).unwrap();
            let at = flip.index(bytes.len());
            bytes[at] ^= 1 << bit;
            prop_assert_eq!(binding.decode(&BASE64_URL_SAFE_NO_PAD.encode(&bytes)), None);
        }

        #[test]
        fn anything_else_is_no_cursor(text in ".{0,80}") {
            let binding = CursorBinding::of_list(&[1; 32], Uuid::new_v4(), "a.b");
            prop_assert_eq!(binding.decode(&text), None);
        }
    }

    #[test]
    fn a_cursor_belongs_to_one_query() {
        let (up, down) = (order(false), order(true));
        let filter = [QueryCondition {
            fields: vec!["a".into()],
            test: FieldTest::Equals(FieldValue::Text("x".into())),
        }];
        let list = CursorBinding::of_list(&[1; 32], Uuid::new_v4(), "a.b");
        let home = CursorBinding { order: &up, ..list };
        let position = CursorPosition {
            values: vec![FieldValue::Null, FieldValue::Integer(3)],
            id: "x".into(),
        };
        let cursor = home.encode(&position);
        assert_eq!(home.decode(&cursor), Some(position));
        let strangers = [
            CursorBinding { key: &[2; 32], ..home },
            CursorBinding { owner: Uuid::new_v4(), ..home },
            CursorBinding { collection: "a.c", ..home },
            CursorBinding { conditions: &filter, ..home },
            CursorBinding { order: &down, ..home },
        ];
        for stranger in strangers {
            assert_eq!(stranger.decode(&cursor), None, "{stranger:?}");
        }
    }
}
