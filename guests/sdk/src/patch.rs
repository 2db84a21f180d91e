//! Members of a change: absent, null, or a value.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{DeserializeOwned, Error as _};
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

/// A member of a JSON merge patch (RFC 7396). A change that leaves the member
/// out keeps the current value, null removes it, and a value replaces it. An
/// `Option` cannot distinguish the first two.
///
/// Every such member needs `#[serde(default)]`; serde does not know otherwise
/// that it may be absent, and the schema requires it. In the schema it is the
/// value or null.
///
/// ```
/// use area_sdk::prelude::*;
///
/// #[derive(Deserialize, JsonSchema)]
/// struct ServiceChanges {
///     /// A member that is always there: absent or null keeps it.
///     name: Option<String>,
///     #[serde(default)]
///     owner_id: Patch<Uuid>,
/// }
///
/// struct Service {
///     name: String,
///     owner_id: Option<Uuid>,
/// }
///
/// fn change(service: &mut Service, changes: ServiceChanges) {
///     service.name = changes.name.unwrap_or_else(|| service.name.clone());
///     changes.owner_id.apply(&mut service.owner_id);
/// }
///
/// let mut service = Service { name: "api".into(), owner_id: Some(Uuid::nil()) };
/// change(&mut service, serde_json::from_str(r#"{"name": "web"}"#).unwrap());
/// assert_eq!((service.name.as_str(), service.owner_id), ("web", Some(Uuid::nil())));
/// change(&mut service, serde_json::from_str(r#"{"owner_id": null}"#).unwrap());
/// assert_eq!(service.owner_id, None);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Patch<T> {
    /// The change does not have the member; the current value is kept.
    #[default]
    Absent,
    /// The member is null; the current value is removed.
    Null,
    /// The member has a value, which replaces the current one.
    Value(T),
}

impl<T> Patch<T> {
    /// Applies the change to the current value.
    pub fn apply(self, current: &mut Option<T>) {
        match self {
            Self::Absent => {}
            Self::Null => *current = None,
            Self::Value(value) => *current = Some(value),
        }
    }

    /// Returns the new value; `None` if the change has none.
    #[must_use]
    pub fn value(&self) -> Option<&T> {
        match self {
            Self::Value(value) => Some(value),
            Self::Absent | Self::Null => None,
        }
    }

    /// Whether the change does not have the member; for `#[serde(skip_serializing_if =
    /// "Patch::is_absent")]`.
    #[must_use]
    pub fn is_absent(&self) -> bool {
        matches!(self, Self::Absent)
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Patch<T> {
    /// Parses through a [`Value`], because serde would otherwise replace an absent member with
    /// null.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::Null => Ok(Self::Null),
            value => serde_json::from_value(value).map(Self::Value).map_err(D::Error::custom),
        }
    }
}

impl<T: Serialize> Serialize for Patch<T> {
    /// Fails for an absent member, which must not be written; see [`Patch::is_absent`]. For this
    /// reason schemars writes no default for the member.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.is_absent() {
            let why = "an absent member needs skip_serializing_if = \"Patch::is_absent\"";
            return Err(S::Error::custom(why));
        }
        self.value().serialize(serializer)
    }
}

impl<T: JsonSchema> JsonSchema for Patch<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        Option::<T>::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Option::<T>::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::schema;

    #[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
    struct ExamplePatchBody {
        #[serde(default, skip_serializing_if = "Patch::is_absent")]
        #[schemars(length(max = 3))]
        text: Patch<String>,
        #[serde(default, skip_serializing_if = "Patch::is_absent")]
        numbers: Patch<Vec<u64>>,
    }

    #[derive(Deserialize, JsonSchema)]
    struct ExampleBodyWithDefault {
        #[serde(default)]
        #[schemars(length(max = 3))]
        text: Patch<String>,
    }

    #[derive(Deserialize)]
    struct ExampleBodyWithoutDefault {
        #[serde(rename = "text")]
        _text: Patch<String>,
    }

    #[test]
    fn absent_null_and_value_are_read_and_written() {
        for text in
            [r#"{}"#, r#"{"text":null}"#, r#"{"text":"a","numbers":[18446744073709551615]}"#]
        {
            let changes: ExamplePatchBody = serde_json::from_str(text).expect("a change");
            assert_eq!(serde_json::to_string(&changes).expect("JSON"), text);
        }
        let wrong = serde_json::from_str::<ExamplePatchBody>(r#"{"numbers":["a"]}"#);
        assert!(wrong.expect_err("no number").to_string().contains("invalid type"));
    }

    #[test]
    fn a_member_without_a_default_is_not_read_as_null() {
        let read = serde_json::from_str::<ExampleBodyWithoutDefault>("{}");
        assert!(read.err().expect("an error").to_string().contains("missing field `text`"));
    }

    #[test]
    fn the_schema_is_that_of_an_optional_member() {
        for text in [schema::body::<ExamplePatchBody>(), schema::body::<ExampleBodyWithDefault>()] {
            let schema: Value = serde_json::from_str(&text).expect("a schema");
            assert_eq!(schema.get("required"), None, "{schema}");
            let member = json!({"type": ["string", "null"], "maxLength": 3});
            assert_eq!(schema["properties"]["text"], member);
        }
        let received: ExampleBodyWithDefault = serde_json::from_str("{}").expect("a change");
        assert!(received.text.is_absent());
    }
}
