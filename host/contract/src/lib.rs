//! Checks manifests of areas: limits their cost, compiles their routes,
//! compares two versions, and generates OpenAPI documents.

mod checks;
pub mod compatibility;
mod contract;
mod cost;
#[cfg(any(test, feature = "testing"))]
pub mod fixtures;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod meter;
pub mod openapi;
mod parameters;
mod schema;
mod violations;
mod walk;

pub use checks::template_key;
pub use contract::{CompiledRoute, ContractLimits, InvalidManifest, compile, depends_on_events};
pub use meter::OperationRequestDurations;
pub use openapi::{HostOperation, OpenApiDocument, OperationGroup, PublishedArea};
pub use parameters::{canonical_uuid, decode};
pub use schema::{CompiledSchema, is_subscribable};
pub use violations::did_you_mean;
