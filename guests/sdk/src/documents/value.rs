//! Values of fields, from the types that documents have.

use uuid::Uuid;

use super::Value;
use crate::time::Timestamp;

/// Implements the conversion of each type by a variant and an expression.
macro_rules! values {
    ($($variant:ident($value:ident: $type:ty) => $converted:expr;)*) => {$(
        impl From<$type> for Value {
            fn from($value: $type) -> Self {
                Self::$variant($converted)
            }
        }
    )*};
}

values! {
    Text(text: &str) => text.to_owned();
    Text(text: String) => text;
    Text(text: &String) => text.clone();
    Text(id: Uuid) => id.to_string();
    Text(moment: Timestamp) => moment.to_string();
    Integer(number: i64) => number;
    Boolean(truth: bool) => truth;
}
