//! The host functions of the contract. On wasm32 they are the component's imports. Natively, a
//! [`Host`] implements them, for a test or a benchmark.

use crate::wit::assurance::area::*;

/// Gives access to the host functions of the contract, which `wit/` documents.
#[cfg(target_arch = "wasm32")]
pub struct HostFunctions;

/// Gives access to the host functions of the contract, which `wit/` documents.
#[cfg(not(target_arch = "wasm32"))]
pub struct HostFunctions(Box<dyn Host>);

#[cfg(not(target_arch = "wasm32"))]
impl HostFunctions {
    /// Forwards all calls of host functions to this host, for native tests.
    pub fn new(host: impl Host + 'static) -> Self {
        Self(Box::new(host))
    }
}

/// Defines [`Host`] and the methods of [`HostFunctions`], one for each function in the list that
/// `build.rs` generates.
macro_rules! host_functions {
    ($(
        $(#[$docs:meta])*
        $capability:ident $module:ident::$function:ident
            as $name:ident($($argument:ident: $type:ty),*) -> $output:ty;
    )*) => {
        /// Host of an area that runs natively. A function without an implementation panics, which
        /// ends the call.
        #[cfg(not(target_arch = "wasm32"))]
        #[allow(missing_docs, reason = "documented in wit/")]
        pub trait Host {
            /// Called before each host function of an area, with the capability to which the
            /// function belongs.
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

        #[allow(missing_docs, reason = "documented in wit/")]
        impl HostFunctions {
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
