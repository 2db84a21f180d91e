//! Conversions between WIT types and the host's types.
//!
//! Values from a guest are validated here, because they can be arbitrary.

pub(super) mod call;
pub(super) mod document;
pub(super) mod manifest;
pub(super) mod queue;

/// Implements `From` for two enums whose variants have the same names.
macro_rules! same {
    ($from:ty => $to:ty { $($variant:ident $(($value:ident))?),+ }) => {
        impl From<$from> for $to {
            fn from(from: $from) -> Self {
                type Source = $from;
                match from {
                    $(Source::$variant $(($value))? => Self::$variant $(($value))?,)+
                }
            }
        }
    };
}
pub(super) use same;
