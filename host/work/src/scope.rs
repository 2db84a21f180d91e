//! The parts of an area's manifest and limits that its calls use.

use std::collections::{BTreeMap, BTreeSet};

use assurance_core::access::JobIsolationProfiles;
use assurance_core::domain::job::{Lane, RequestedEventsDocumentField};
use assurance_core::domain::manifest::{JobSpec, LinkHolder};
use assurance_store::{AccessibleCollection, Quota};

/// What an area's calls may access, and their limits: collections, blobs, links, events and jobs.
#[derive(Clone, Debug, Default)]
pub struct AreaPolicy {
    /// Name of the area.
    pub area: String,
    /// Semantic version of the area, from its manifest.
    pub version: String,
    /// SHA-256 of the area's component, lower-case hex.
    pub digest: String,
    /// Collections by the name that the guest uses: the short name for its own,
    /// `area.name` for readable ones of other areas.
    pub collections: BTreeMap<String, AccessibleCollection>,
    /// Names of other areas whose blobs the area may read.
    pub shared_blobs: BTreeSet<String>,
    /// Operation ids of the area's routes that accept a signed link, with who
    /// may use the link.
    pub links: BTreeMap<String, LinkHolder>,
    /// Names of all live areas. Collections of an area that is not live read as
    /// empty.
    pub live: BTreeSet<String>,
    /// Events that the area publishes, with their subscribers.
    pub events: BTreeMap<String, Vec<EventSubscriber>>,
    /// Job kinds that the area declares, by name.
    pub jobs: BTreeMap<String, JobSpec>,
    /// Limits of one call of the area.
    pub limits: UnitOfWorkLimits,
    /// Isolation profiles of earlier runs of the area's jobs, by kind.
    pub isolation_profiles: JobIsolationProfiles,
    /// Whether the area's calls can obtain a secret or something derived from
    /// one; see
    /// [`Manifest::can_obtain_secrets`](assurance_core::domain::manifest::Manifest::can_obtain_secrets).
    pub can_obtain_secrets: bool,
}

/// An area that receives an event, with the settings of the delivery jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventSubscriber {
    /// Name of the subscribing area.
    pub area: String,
    /// Whether the subscribing area receives only a notice that events were published, once for all
    /// events until then.
    pub merged: bool,
    /// Lane of the jobs that deliver the event.
    pub lane: Lane,
    /// Number of attempts after which the event delivery is dead.
    pub max_attempts: u32,
    /// Wall-clock limit of one delivery attempt, in milliseconds.
    pub timeout_ms: u32,
    /// Field of the subscriber's documents in which a workspace requests events; others are not
    /// delivered to it. `None`: every event is delivered.
    pub requests: Option<RequestedEventsDocumentField>,
}

/// Limits of one call on documents, jobs, events and blobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnitOfWorkLimits {
    /// Maximum number of documents that one call reads and writes.
    pub max_documents: u32,
    /// Maximum bytes of documents that one call reads and writes. An id without a document counts
    /// 256 bytes and its length.
    pub max_bytes: u64,
    /// Maximum number of jobs that one call enqueues.
    pub max_jobs: u32,
    /// Maximum number of the area's jobs that wait in the workspace.
    pub max_waiting_jobs: u64,
    /// Storage quotas of the area and the workspace, in bytes.
    pub quota: Quota,
    /// Maximum number of events that one call publishes.
    pub max_events: u32,
    /// Maximum bytes of one job's payload, and of one event's data.
    pub max_payload_bytes: u64,
    /// Maximum total bytes of the payloads of one call's events and jobs; an event counts once for
    /// each subscriber, and at least once.
    pub max_outgoing_bytes: u64,
    /// Maximum total bytes of network responses that one step of a job
    /// receives.
    pub max_incoming_bytes: u64,
    /// Maximum bytes of blobs that one call of the guest reads and writes.
    pub max_blob_bytes: u64,
}

impl Default for UnitOfWorkLimits {
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

/// Limits of one call, by area.
#[derive(Clone, Debug, Default)]
pub struct LimitsByArea {
    /// Limits of areas without an entry.
    pub default: UnitOfWorkLimits,
    /// Limits of single areas, by name.
    pub areas: BTreeMap<String, UnitOfWorkLimits>,
}

impl LimitsByArea {
    /// Returns the limits of one call of this area.
    #[must_use]
    pub fn of(&self, area: &str) -> UnitOfWorkLimits {
        self.areas.get(area).copied().unwrap_or(self.default)
    }
}
