//! Values of fields, from the types that documents have.

use uuid::Uuid;

use super::Value;
use crate::time::Timestamp;

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&String> for Value {
    fn from(text: &String) -> Self {
        Self::Text(text.clone())
    }
}

impl From<Uuid> for Value {
    fn from(id: Uuid) -> Self {
        Self::Text(id.to_string())
    }
}

impl From<Timestamp> for Value {
    fn from(moment: Timestamp) -> Self {
        Self::Text(moment.to_string())
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Integer(number)
    }
}

impl From<bool> for Value {
    fn from(truth: bool) -> Self {
        Self::Boolean(truth)
    }
}
