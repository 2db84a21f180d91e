//! Macros for enums that are stored and sent as words.

/// Defines an enum whose values are stored and sent as the given words. The
/// text after the enum's name describes a value in the error for an unknown
/// word.
macro_rules! words {
    (
        $(#[$attribute:meta])*
        pub enum $name:ident, $noun:literal {
            $($(#[$item_doc:meta])* $item:ident = $word:literal,)+
        }
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum $name {
            $($(#[$item_doc])* $item,)+
        }

        impl $name {
            /// All values of the enum, in the order of declaration.
            pub const ALL: [Self; [$($word),+].len()] = [$(Self::$item),+];

            /// Returns the word that is stored and sent.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$item => $word,)+
                }
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl ::std::str::FromStr for $name {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Self::ALL.into_iter().find(|word| word.as_str() == text).ok_or_else(|| {
                    let known = Self::ALL.map(Self::as_str).join(", ");
                    format!("{text:?} is not {}; use one of {known}", $noun)
                })
            }
        }
    };
}
pub(crate) use words;

/// Defines an enum like `words!` that is serialized as its word. Schemas list
/// the words where the enum is used, without the variants' descriptions.
macro_rules! inline_words {
    ($(#[$doc:meta])* pub enum $name:ident, $($rest:tt)+) => {
        $crate::domain::words::words! { $(#[$doc])* pub enum $name, $($rest)+ }

        impl ::serde::Serialize for $name {
            fn serialize<S: ::serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl ::schemars::JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> ::std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut ::schemars::SchemaGenerator) -> ::schemars::Schema {
                ::schemars::json_schema!({"type": "string", "enum": Self::ALL.map(Self::as_str)})
            }
        }
    };
}
pub(super) use inline_words;
