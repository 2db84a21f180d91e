//! Configuration of limits for a component's declarations.

use std::collections::BTreeMap;

use crate::config::section::section;

section! {
    /// Limits of a component's declarations. A version that exceeds them is refused
    /// when it is deployed, and is not served when a node starts.
    #[derive(Copy)]
    pub struct ManifestLimits {
        /// The whole manifest as JSON, in bytes.
        pub max_bytes: u32 = 4_194_304; min 1,
        /// One summary, description, path or name, in bytes.
        pub max_text_bytes: u32 = 65_536; min 1,
        /// Routes of an area.
        pub max_routes: u32 = 500; min 1,
        /// Parameters of one route.
        pub max_parameters: u32 = 200; min 1,
        /// Collections of an area.
        pub max_collections: u32 = 200; min 1,
        /// Fields of one collection.
        pub max_fields: u32 = 300; min 1,
        /// Indexes of all collections of an area.
        pub max_indexes: u32 = 300; min 1,
        /// Events that an area publishes, and events that it subscribes to.
        pub max_events: u32 = 100; min 1,
        /// Job kinds of an area.
        pub max_jobs: u32 = 100; min 1,
        /// Entries of any other list in the manifest: values of a parameter, form
        /// parts, problem codes, readers, capabilities.
        pub max_entries: u32 = 200; min 1,
        /// Nodes of one schema, each counted as often as `$ref`, `anyOf`, `oneOf`
        /// and `allOf` lead to it.
        pub max_schema_nodes: u32 = 10_000; min 1,
        /// Nodes of all schemas of an area, counted in the same way.
        pub max_total_schema_nodes: u32 = 100_000; min 1,
        /// Compiled program of one regular expression, in bytes.
        pub max_pattern_bytes: u32 = 1_048_576; min 1,
        /// Compiled programs of all regular expressions of an area, in bytes.
        pub max_total_pattern_bytes: u32 = 8_388_608; min 1,
    }
}

impl ManifestLimits {
    /// Returns every limit of the section `[areas.manifest]` by its key.
    #[must_use]
    pub fn all(&self) -> BTreeMap<String, u32> {
        let all = serde_json::to_value(self).and_then(serde_json::from_value);
        all.expect("every limit is a number")
    }
}
