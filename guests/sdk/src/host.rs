//! The functions of the contract, as an area calls them. On wasm32 they are the
//! component's imports; natively a [`Host`] implements them, for a test or a
//! benchmark.

#[allow(clippy::wildcard_imports, reason = "every interface of the contract")]
use crate::wit::assurance::area::*;

/// The functions of the contract, documented in `wit/`.
#[cfg(target_arch = "wasm32")]
pub struct Handle;

/// The functions of the contract, documented in `wit/`.
#[cfg(not(target_arch = "wasm32"))]
pub struct Handle(Box<dyn Host>);

#[cfg(not(target_arch = "wasm32"))]
impl Handle {
    /// Calls go to this host.
    pub fn new(host: impl Host + 'static) -> Self {
        Self(Box::new(host))
    }
}

/// Makes the functions of the contract from the list that `build.rs` writes.
macro_rules! host_functions {
    ($(
        $(#[$docs:meta])*
        $capability:ident $module:ident::$function:ident
            as $name:ident($($argument:ident: $type:ty),*) -> $output:ty;
    )*) => {
        /// The host of an area that runs natively. A function that it does not
        /// implement ends the call with a panic.
        #[cfg(not(target_arch = "wasm32"))]
        #[allow(missing_docs, clippy::missing_errors_doc, reason = "documented in wit/")]
        pub trait Host {
            /// Comes before each call of a function, with its capability.
            fn enter(&self, capability: manifest::Capability) {
                let _ = capability;
            }

            $($(#[$docs])* fn $name(&self, $($argument: $type),*) -> $output {
                $(let _ = $argument;)*
                panic!(concat!(
                    "this host has no ", stringify!($module), "::", stringify!($function),
                ))
            })*
        }

        #[allow(
            missing_docs,
            clippy::missing_errors_doc,
            clippy::must_use_candidate,
            reason = "documented in wit/"
        )]
        impl Handle {
            $($(#[$docs])* pub fn $name(&self, $($argument: $type),*) -> $output {
                #[cfg(target_arch = "wasm32")]
                return $module::$function($($argument),*);
                #[cfg(not(target_arch = "wasm32"))]
                {
                    self.0.enter(manifest::Capability::$capability);
                    self.0.$name($($argument),*)
                }
            })*
        }
    };
}

include!(concat!(env!("OUT_DIR"), "/host_functions.rs"));
