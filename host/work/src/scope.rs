//! The parts of an area's manifest and limits that its calls need.

use std::collections::{BTreeMap, BTreeSet};

use assurance_core::access::AccessPatterns;
use assurance_core::domain::job::{EventRequests, Lane};
use assurance_core::domain::manifest::{JobSpec, LinkHolder};
use assurance_store::{CollectionScope, Quota};

/// Data and limits that an area's calls can access.
#[derive(Clone, Debug, Default)]
pub struct AreaScope {
    /// The area's name.
    pub area: String,
    /// Version of the area.
    pub version: String,
    /// SHA-256 of its component, lower-case hex.
    pub digest: String,
    /// Collections by the name that the guest uses: the short name for its own,
    /// `area.name` for readable ones of other areas.
    pub collections: BTreeMap<String, CollectionScope>,
    /// Areas whose blobs it may read.
    pub shared_blobs: BTreeSet<String>,
    /// Routes that accept a signed link, by operation id.
    pub links: BTreeMap<String, LinkHolder>,
    /// All live areas; collections of other areas are empty.
    pub live: BTreeSet<String>,
    /// Published events with their subscribers.
    pub events: BTreeMap<String, Vec<Subscriber>>,
    /// Job kinds by name.
    pub jobs: BTreeMap<String, JobSpec>,
    /// Limits of one call.
    pub limits: WorkLimits,
    /// Storage access patterns of its jobs' earlier runs.
    pub access_patterns: AccessPatterns,
    /// See [`Manifest::can_obtain_secrets`](assurance_core::domain::manifest::Manifest::can_obtain_secrets).
    pub can_obtain_secrets: bool,
}

/// An area that receives an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subscriber {
    /// Name of the area.
    pub area: String,
    /// Lane of the delivery.
    pub lane: Lane,
    /// Number of attempts after which the delivery is dead.
    pub max_attempts: u32,
    /// Wall-clock limit of one attempt, in milliseconds.
    pub timeout_ms: u32,
    /// Documents without which a workspace's events are not delivered; `None`:
    /// every event is delivered.
    pub requests: Option<EventRequests>,
}

/// Limits of one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkLimits {
    /// Documents read and written.
    pub max_documents: u32,
    /// Bytes of documents read and written.
    pub max_bytes: u64,
    /// Jobs enqueued.
    pub max_jobs: u32,
    /// Jobs of the area that may wait in the workspace.
    pub max_waiting_jobs: u64,
    /// Storage quotas.
    pub quota: Quota,
    /// Events published.
    pub max_events: u32,
    /// Bytes of one job's payload, and of one event's data.
    pub max_payload_bytes: u64,
    /// Total bytes of payloads; an event counts once for each subscriber.
    pub max_outgoing_bytes: u64,
    /// Total bytes of responses from the network to one step of a job.
    pub max_incoming_bytes: u64,
    /// Bytes of blobs read and written by the guest.
    pub max_blob_bytes: u64,
}

impl Default for WorkLimits {
    fn default() -> Self {
        Self {
            max_documents: 10_000,
            max_bytes: 64 << 20,
            max_jobs: 1_000,
            max_waiting_jobs: 100_000,
            quota: Quota { area: 20 << 30, workspace: 50 << 30 },
            max_events: 1_000,
            max_payload_bytes: 1 << 20,
            max_outgoing_bytes: 16 << 20,
            max_incoming_bytes: 64 << 20,
            max_blob_bytes: 32 << 20,
        }
    }
}

/// Limits of calls, by area.
#[derive(Clone, Debug, Default)]
pub struct LimitsByArea {
    /// Limits of areas without an entry.
    pub default: WorkLimits,
    /// Limits of single areas, by name.
    pub areas: BTreeMap<String, WorkLimits>,
}

impl LimitsByArea {
    /// Returns the limits of an area.
    #[must_use]
    pub fn of(&self, area: &str) -> WorkLimits {
        self.areas.get(area).copied().unwrap_or(self.default)
    }
}
