//! Which areas are loaded, what they may import, and how much of it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use super::{ManifestLimits, Record};
use crate::domain::manifest::Capability;

/// Which areas are loaded and what they may import.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Areas {
    /// Every `.wasm` file of this folder is loaded at start; not set: none.
    pub dir: Option<PathBuf>,
    /// Swap a component when its file changes (development).
    pub watch: bool,
    /// How often a node looks for deployments that it was not told of, in
    /// milliseconds.
    pub poll_ms: u32,
    /// A node that could not learn for so long which versions are live
    /// answers 503 rather than with one that may have been withdrawn, in
    /// milliseconds.
    pub max_stale_ms: u32,
    /// Versions kept in memory, of all areas together, ready to answer without
    /// being loaded again: those that were live, tried or deployed last. Each
    /// takes some three times its component's size.
    pub warm_versions: u32,
    /// How much a component may declare.
    pub manifest: ManifestLimits,
    /// When a version that is tried on some workspaces is withdrawn.
    pub canary: Canary,
    /// How a version is tried that answers copies of requests.
    pub shadow: Shadow,
    /// Which calls are written down, so that `assurance area replay` can run
    /// them again. Read again at SIGHUP, but for `dir`.
    pub record: Record,
    /// What each area may import: documents, blobs, events, jobs, secrets,
    /// crypto, directory, calendar, egress, log, malware, links, settings, queue,
    /// membership, mail; and all_events, to subscribe to the events of all areas
    /// (`*`). `*` is for areas not named.
    #[schemars(with = "BTreeMap<String, Vec<String>>")]
    pub grants: BTreeMap<String, BTreeSet<Capability>>,
    /// Whose signature counts for which areas; outside development mode no
    /// component is loaded without one.
    pub publishers: BTreeMap<String, Publisher>,
    /// What one call of an area may use, where that is not what `[limits]` and
    /// `[runtime]` say.
    pub limits: BTreeMap<String, AreaLimits>,
    /// What an area is told when it asks (`settings`), by area and key. Not
    /// for secrets.
    #[serde(deserialize_with = "settings")]
    pub settings: BTreeMap<String, BTreeMap<String, String>>,
}

impl Default for Areas {
    fn default() -> Self {
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
        let more = |capabilities: &[C]| {
            let mut granted = harmless.clone();
            granted.extend(capabilities);
            granted
        };
        Self {
            dir: None,
            watch: false,
            poll_ms: 1_000,
            max_stale_ms: 10_000,
            warm_versions: 64,
            manifest: ManifestLimits::default(),
            canary: Canary::default(),
            shadow: Shadow::default(),
            record: Record::default(),
            publishers: BTreeMap::new(),
            grants: BTreeMap::from([
                // Secrets, the network, mail, people and other areas' jobs
                // only where that is an area's work.
                ("assistant".into(), more(&[C::Secrets, C::Egress])),
                ("identity".into(), more(&[C::Secrets, C::Egress])),
                ("invitations".into(), more(&[C::Membership, C::Mail])),
                ("queue".into(), more(&[C::Queue])),
                ("context".into(), more(&[C::AllEvents])),
                ("webhooks".into(), more(&[C::Secrets, C::Egress, C::AllEvents])),
                ("*".into(), harmless),
            ]),
            limits: BTreeMap::from([
                ("control_room".into(), AreaLimits::for_all_findings()),
                ("dependencies".into(), AreaLimits::for_large_sboms()),
                ("uploads".into(), AreaLimits::for_unpacking()),
            ]),
            settings: BTreeMap::new(),
        }
    }
}

impl Areas {
    /// What the operator grants an area.
    #[must_use]
    pub fn granted(&self, area: &str) -> BTreeSet<Capability> {
        self.grants.get(area).or_else(|| self.grants.get("*")).cloned().unwrap_or_default()
    }
}

/// When a version that is tried on some workspaces is withdrawn by itself: each
/// node compares its calls with those of the live version since the trial
/// began, there.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Canary {
    /// Calls before a share of faults counts as it is; of fewer, those that
    /// are missing count as good. And the calls of one operation, of either
    /// version, before its p99 counts.
    pub min_calls: u32,
    /// So much more of its calls may fail: 0.02 is two in a hundred more.
    pub max_fault_rate_difference: f64,
    /// The p99 of each of its operations may be so many times the live one's.
    pub max_p99_factor: f64,
    /// A p99 up to this is never too long, in milliseconds.
    pub min_p99_ms: u32,
}

impl Default for Canary {
    fn default() -> Self {
        Self {
            min_calls: 100,
            max_fault_rate_difference: 0.02,
            max_p99_factor: 2.0,
            min_p99_ms: 50,
        }
    }
}

/// How a version is tried that answers copies of requests.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Shadow {
    /// Copies of one area's requests that are kept and run at a time in this
    /// process; of more there are none.
    pub max_concurrent: u32,
    /// Show operators the values that differ, which are tenants' data; else
    /// where they are, their type and a digest.
    pub show_values: bool,
}

impl Default for Shadow {
    fn default() -> Self {
        Self { max_concurrent: 4, show_values: false }
    }
}

/// Somebody who builds areas.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Publisher {
    /// The Ed25519 public key in base64, as `assurance key generate` prints it.
    pub public_key: String,
    /// The areas they are trusted with; `*`: all.
    pub areas: Vec<String>,
}

/// What one call of an area may use; not set: as of any area.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AreaLimits {
    /// Memory of one instance, in bytes.
    pub max_memory_bytes: Option<u64>,
    /// Documents one call may read and write.
    pub max_documents: Option<u32>,
    /// Bytes of documents one call may read and write.
    pub max_document_bytes: Option<u64>,
    /// Host calls of one call.
    pub max_host_calls: Option<u32>,
    /// Processor time of one call, in milliseconds; what it waits for the host
    /// does not count. Not set: its deadline is the bound.
    pub max_cpu_ms: Option<u32>,
    /// Processor time for which one call may keep others from writing, in
    /// milliseconds.
    pub max_turn_cpu_ms: Option<u32>,
    /// Time for which it may do so in all, in milliseconds.
    pub max_turn_ms: Option<u32>,
}

impl AreaLimits {
    /// A rebuild looks at every finding of a workspace in one call.
    fn for_all_findings() -> Self {
        Self {
            max_memory_bytes: Some(256 << 20),
            max_documents: Some(500_000),
            max_document_bytes: Some(512 << 20),
            max_turn_cpu_ms: Some(5_000),
            max_turn_ms: Some(30_000),
            ..Self::default()
        }
    }

    /// The largest SBOM as it was sent, and its components.
    fn for_large_sboms() -> Self {
        Self {
            max_memory_bytes: Some(256 << 20),
            max_turn_cpu_ms: Some(5_000),
            max_turn_ms: Some(30_000),
            ..Self::default()
        }
    }

    /// The largest upload is in memory twice, packed and not.
    fn for_unpacking() -> Self {
        Self { max_memory_bytes: Some(128 << 20), ..Self::default() }
    }
}

/// The environment has numbers where a text looks like one.
#[derive(Deserialize)]
#[serde(untagged)]
enum Setting {
    Text(String),
    Integer(i64),
    Boolean(bool),
    Fraction(f64),
}

impl From<Setting> for String {
    fn from(setting: Setting) -> Self {
        match setting {
            Setting::Text(text) => text,
            Setting::Integer(number) => number.to_string(),
            Setting::Boolean(truth) => truth.to_string(),
            Setting::Fraction(number) => number.to_string(),
        }
    }
}

type Settings<T> = BTreeMap<String, BTreeMap<String, T>>;

fn settings<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Settings<String>, D::Error> {
    let given = Settings::<Setting>::deserialize(deserializer)?;
    let texts = |values: BTreeMap<String, Setting>| {
        values.into_iter().map(|(key, value)| (key, value.into())).collect()
    };
    Ok(given.into_iter().map(|(area, values)| (area, texts(values))).collect())
}
