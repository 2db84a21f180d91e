//! Areas: which are loaded, what they may import, and their limits.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use super::{ManifestLimits, RecordingsConfig};
use crate::config::section::section;
use crate::domain::manifest::Capability;

section! {
    /// Which areas are loaded and what they may import.
    pub struct AreasConfig {
        /// Folder whose `.wasm` files are loaded at start, which must exist; not set:
        /// `areas` in the data folder.
        pub dir: Option<PathBuf>,
        /// Reload a component when its file changes (development).
        pub watch: bool = false,
        /// Interval at which a node polls for deployments without a notification, in
        /// milliseconds.
        pub poll_ms: u32 = 1_000; min 1,
        /// A node that has not read the live versions for this long answers 503,
        /// because its versions may have been withdrawn; in milliseconds.
        pub max_stale_ms: u32 = 10_000; min 1,
        /// Versions of all areas together that stay in memory and can be activated
        /// without loading: those that were live, on trial or deployed most
        /// recently. Each takes about three times its component's size.
        pub warm_versions: u32 = 64; min 1,
        /// Maximum number and size of a component's declarations.
        pub manifest: ManifestLimits,
        /// When a canary version is withdrawn automatically.
        pub canary: CanaryRollbackConfig,
        /// Shadow versions, which receive copies of requests.
        pub shadow: ShadowConfig,
        /// Which calls are recorded, so that `assurance area replay` can run them
        /// again. Reloaded at SIGHUP, except `dir`.
        pub record: RecordingsConfig,
        /// What each area may import; `*` is for areas not named.
        #[schemars(with = "BTreeMap<String, Vec<String>>", description = grants_description())]
        pub grants: BTreeMap<String, BTreeSet<Capability>> = default_grants(),
        /// Publishers whose signatures are trusted, with their areas. Outside
        /// development mode an unsigned component is not loaded.
        pub publishers: BTreeMap<String, TrustedPublisher>,
        /// Limits of one call by area, instead of those in `[limits]` and
        /// `[runtime]`.
        pub limits: BTreeMap<String, AreaCallLimits>,
        /// Settings that an area can read (capability `settings`), by area and key.
        /// Not for secrets.
        #[serde(deserialize_with = "settings")]
        pub settings: BTreeMap<String, BTreeMap<String, String>>,
    }
}

impl AreasConfig {
    /// Returns the capabilities that the operator grants an area.
    #[must_use]
    pub fn granted(&self, area: &str) -> BTreeSet<Capability> {
        self.grants.get(area).or_else(|| self.grants.get("*")).cloned().unwrap_or_default()
    }
}

/// Grants of areas that the operator does not name: everything that reaches
/// neither other services nor secrets.
fn default_grants() -> BTreeMap<String, BTreeSet<Capability>> {
    use Capability as C;
    let harmless = BTreeSet::from([
        C::Documents,
        C::Blobs,
        C::Events,
        C::Jobs,
        C::Crypto,
        C::Directory,
        C::Calendar,
        C::Log,
        C::Malware,
        C::Links,
        C::Settings,
    ]);
    BTreeMap::from([("*".into(), harmless)])
}

/// Description of `grants` in `config show`, with the name of each capability.
fn grants_description() -> String {
    let names: Vec<_> = Capability::IMPORTED.iter().map(|capability| capability.name()).collect();
    format!(
        "What each area may import: {}; and all_events, to subscribe to the events of all areas \
         (`*`). `*` is for areas not named.",
        names.join(", ")
    )
}

section! {
    /// When a canary version is withdrawn automatically. Each node compares the
    /// version's calls with those of the live version on that node since the trial
    /// began.
    #[derive(Copy)]
    pub struct CanaryRollbackConfig {
        /// Minimum number of calls for a comparison. If the canary had fewer calls,
        /// the missing ones count as successful. The p99 of an operation counts
        /// once both versions have this many calls of it.
        pub min_calls: u32 = 100; min 1,
        /// Maximum by which the canary's failure rate may exceed that of the live
        /// version: 0.02 allows two more failures in a hundred calls.
        pub max_fault_rate_difference: f64 = 0.02,
        /// Highest p99 latency of each operation of the canary, as a multiple of
        /// the live version's.
        pub max_p99_factor: f64 = 2.0,
        /// Latency up to which the p99 of an operation of the canary is always
        /// accepted, in milliseconds.
        pub min_p99_ms: u32 = 50,
    }
}

section! {
    /// Shadow versions, which receive copies of requests.
    #[derive(Copy)]
    pub struct ShadowConfig {
        /// Maximum number of copies of one area's requests that are queued and
        /// running in this process; further requests are not copied.
        pub max_concurrent: u32 = 4; min 1,
        /// Show operators the values in which a shadow's responses differ from the
        /// live version's; they are tenants' data. If off, show only their
        /// location, type and digest.
        pub show_values: bool = false,
    }
}

/// A publisher whose signatures of area components the operator trusts.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TrustedPublisher {
    /// The publisher's Ed25519 public key in base64, as `assurance key
    /// generate` prints it.
    pub public_key: String,
    /// Areas whose components the publisher may sign; `*`: all.
    pub areas: Vec<String>,
}

section! {
    /// Limits of each call of one area. A limit that is not set is taken from
    /// `[limits]` or `[runtime]`.
    #[derive(Copy)]
    pub struct AreaCallLimits {
        /// Linear memory of one instance, in bytes.
        pub max_memory_bytes: Option<u64>; min 1,
        /// Documents one call may read and write.
        pub max_documents: Option<u32>; min 1,
        /// Bytes of documents that one call may read and write.
        pub max_document_bytes: Option<u64>; min 1,
        /// Calls of host functions that one call may make.
        pub max_host_calls: Option<u32>; min 1,
        /// Processor time of one call, in milliseconds; waiting for the host does
        /// not count. Not set: only the deadline limits it.
        pub max_cpu_ms: Option<u32>; min 1,
        /// Processor time for which one call may block other writers, in
        /// milliseconds.
        pub max_turn_cpu_ms: Option<u32>; min 1,
        /// Total time for which one call may block other writers, in milliseconds.
        pub max_turn_ms: Option<u32>; min 1,
    }
}

/// A value in `areas.settings`, which is converted to text. It can be a number
/// or boolean, because environment variables that look like these are parsed
/// so.
#[derive(Deserialize)]
#[serde(untagged)]
enum SettingValue {
    Text(String),
    Integer(i64),
    Boolean(bool),
    Fraction(f64),
}

impl From<SettingValue> for String {
    fn from(setting: SettingValue) -> Self {
        match setting {
            SettingValue::Text(text) => text,
            SettingValue::Integer(number) => number.to_string(),
            SettingValue::Boolean(truth) => truth.to_string(),
            SettingValue::Fraction(number) => number.to_string(),
        }
    }
}

type SettingsByArea<T> = BTreeMap<String, BTreeMap<String, T>>;

fn settings<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<SettingsByArea<String>, D::Error> {
    let given = SettingsByArea::<SettingValue>::deserialize(deserializer)?;
    let texts = |values: BTreeMap<String, SettingValue>| {
        values.into_iter().map(|(key, value)| (key, value.into())).collect()
    };
    Ok(given.into_iter().map(|(area, values)| (area, texts(values))).collect())
}
