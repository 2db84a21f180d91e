//! Configuration of limits for a component's declarations.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Limits of a component's declarations. A version that exceeds them is refused
/// when it is deployed, and is not served when a node starts.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ManifestLimits {
    /// The whole manifest as JSON, in bytes.
    pub max_bytes: u32,
    /// One summary, description, path or name, in bytes.
    pub max_text_bytes: u32,
    /// Routes of an area.
    pub max_routes: u32,
    /// Parameters of one route.
    pub max_parameters: u32,
    /// Collections of an area.
    pub max_collections: u32,
    /// Fields of one collection.
    pub max_fields: u32,
    /// Indexes of all collections of an area.
    pub max_indexes: u32,
    /// Events that an area publishes, and events that it subscribes to.
    pub max_events: u32,
    /// Job kinds of an area.
    pub max_jobs: u32,
    /// Entries of any other list: values of a parameter, form parts, problem
    /// codes, readers, capabilities.
    pub max_entries: u32,
    /// Nodes of one schema, each counted as often as `$ref`, `anyOf`, `oneOf`
    /// and `allOf` lead to it.
    pub max_schema_nodes: u32,
    /// Nodes of all schemas of an area, counted in the same way.
    pub max_total_schema_nodes: u32,
    /// Compiled program of one regular expression, in bytes.
    pub max_pattern_bytes: u32,
    /// Compiled programs of all regular expressions of an area, in bytes.
    pub max_total_pattern_bytes: u32,
}

impl Default for ManifestLimits {
    fn default() -> Self {
        Self {
            max_bytes: 4_194_304,
            max_text_bytes: 65_536,
            max_routes: 500,
            max_parameters: 200,
            max_collections: 200,
            max_fields: 300,
            max_indexes: 300,
            max_events: 100,
            max_jobs: 100,
            max_entries: 200,
            max_schema_nodes: 10_000,
            max_total_schema_nodes: 100_000,
            max_pattern_bytes: 1_048_576,
            max_total_pattern_bytes: 8_388_608,
        }
    }
}

impl ManifestLimits {
    /// Returns every limit with its configuration key.
    #[must_use]
    pub fn all(&self) -> [(&'static str, u32); 14] {
        [
            ("max_bytes", self.max_bytes),
            ("max_text_bytes", self.max_text_bytes),
            ("max_routes", self.max_routes),
            ("max_parameters", self.max_parameters),
            ("max_collections", self.max_collections),
            ("max_fields", self.max_fields),
            ("max_indexes", self.max_indexes),
            ("max_events", self.max_events),
            ("max_jobs", self.max_jobs),
            ("max_entries", self.max_entries),
            ("max_schema_nodes", self.max_schema_nodes),
            ("max_total_schema_nodes", self.max_total_schema_nodes),
            ("max_pattern_bytes", self.max_pattern_bytes),
            ("max_total_pattern_bytes", self.max_total_pattern_bytes),
        ]
    }
}
