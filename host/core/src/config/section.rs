//! A macro for the sections of the configuration.

/// Defines a section of the configuration: a struct with the default of each
/// field after `=`, or else that of its type. `; min 1` sets the smallest
/// number that is accepted.
macro_rules! section {
    (
        $(#[$attribute:meta])*
        pub struct $name:ident {
            $(
                $(#[$field_attribute:meta])*
                pub $field:ident: $type:ty $(= $default:expr)? $(; min $min:tt)?,
            )*
        }
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Debug, ::serde::Serialize, ::serde::Deserialize, ::schemars::JsonSchema)]
        #[serde(default, deny_unknown_fields)]
        pub struct $name {
            $(
                $(#[$field_attribute])*
                $(#[schemars(range(min = $min))])?
                pub $field: $type,
            )*
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: section!(@default $($default)?),)* }
            }
        }
    };
    (@default) => { Default::default() };
    (@default $default:expr) => { $default };
}
pub(super) use section;
