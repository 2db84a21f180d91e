//! Reads and effects of a call, recorded to compare the call with a run of
//! another version.
//!
//! The other version runs after the response was sent, and receives its reads
//! from the log. So it sees the state that the call saw, and no transaction
//! stays open for it. Reads that the log does not contain get the current state
//! from the database; [`ReadLog::is_exact`] is then false.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value as Json, json};

use super::UnitOfWork;
use assurance_core::domain::document::{Document, DocumentPage, FieldValue, GroupCount};
use assurance_core::domain::job::delivers_events;
use assurance_store::apply::Effects;
use assurance_store::documents::DocumentHead;

/// Recorded reads and effects of one call, with which another version repeats the call.
#[derive(Debug, Default)]
pub struct ReadLog(Mutex<ReadLogEntries>);

#[derive(Debug, Default)]
struct ReadLogEntries {
    /// Documents that the call read, by the collection's full name and id; `None` if the document
    /// did not exist.
    documents: HashMap<(String, String), Option<Document>>,
    /// Results of the call's queries by query, in the order of the host calls.
    answers: HashMap<String, VecDeque<RepeatableQueryResult>>,
    /// Size of the recorded queries and their results, in bytes.
    answer_bytes: u64,
    left: ComparedEffects,
    missed: bool,
}

/// Result of one query of the recorded call: a page, a count, groups, or versions of documents.
#[derive(Clone, Debug)]
pub(super) enum RepeatableQueryResult {
    Page(DocumentPage),
    Count(u64),
    Groups(Vec<GroupCount>),
    Heads(Vec<DocumentHead>),
}

/// Whether a unit of work records its reads in a log, takes their results from one, or neither.
#[derive(Clone, Debug, Default)]
pub(super) enum ReadLogMode {
    #[default]
    Not,
    CallRecording(Arc<ReadLog>),
    Playing(Arc<ReadLog>),
}

/// Effects of a call for a comparison: documents, events, jobs and the rest, as one JSON object.
#[derive(Clone, Debug, Default)]
pub(super) struct ComparedEffects {
    documents: BTreeMap<String, BTreeMap<String, Json>>,
    events: BTreeMap<String, Vec<Json>>,
    jobs: BTreeMap<String, Vec<Json>>,
    secrets: BTreeMap<String, bool>,
    blobs: BTreeMap<String, Option<String>>,
    more: Vec<String>,
}

impl ReadLog {
    /// Discards the reads and effects that an earlier attempt of the call recorded.
    fn rewind(&self) {
        *self.0.lock() = ReadLogEntries::default();
    }

    /// Returns whether the log contained every read that the repeating version made.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        !self.0.lock().missed
    }

    /// Returns the effects of the recorded call.
    #[must_use]
    pub fn effects(&self) -> Json {
        self.0.lock().left.to_json()
    }
}

impl UnitOfWork {
    /// Makes the unit of work record its reads and effects in a log, whose previous entries are
    /// discarded.
    #[must_use]
    pub fn with_read_log(mut self, log: &Arc<ReadLog>) -> Self {
        log.rewind();
        self.read_log = ReadLogMode::CallRecording(Arc::clone(log));
        self
    }

    /// Makes the unit of work take the results of its reads from a log. The unit never begins a
    /// transaction that writes, and must not be committed.
    #[must_use]
    pub fn replaying(mut self, log: &Arc<ReadLog>) -> Self {
        self.read_log = ReadLogMode::Playing(Arc::clone(log));
        self
    }

    /// Returns the effects that the call would have, without committing them.
    #[must_use]
    pub fn into_effects(mut self) -> Json {
        let mut left = std::mem::take(&mut self.effects);
        left.take(self.effects(false));
        left.more = self.other_effects();
        left.to_json()
    }

    pub(super) fn is_replaying(&self) -> bool {
        matches!(self.read_log, ReadLogMode::Playing(_))
    }

    /// Returns the document as the recorded call saw it. `None`: the read log does not contain it;
    /// `Some(None)`: it did not exist.
    pub(super) fn logged_document(&self, collection: &str, id: &str) -> Option<Option<Document>> {
        let ReadLogMode::Playing(log) = &self.read_log else { return None };
        let mut kept = log.0.lock();
        let known = kept.documents.get(&(collection.to_owned(), id.to_owned())).cloned();
        kept.missed |= known.is_none();
        known
    }

    pub(super) fn note_document(&self, collection: &str, id: &str, found: Option<&Document>) {
        if let ReadLogMode::CallRecording(log) = &self.read_log {
            let place = (collection.to_owned(), id.to_owned());
            log.0.lock().documents.insert(place, found.cloned());
        }
    }

    /// Returns the recorded result of the same query; `None` if there is none. If the recorded call
    /// made the query less often, returns the last result again.
    pub(super) fn logged_result(
        &self,
        question: impl FnOnce() -> String,
    ) -> Option<RepeatableQueryResult> {
        let ReadLogMode::Playing(log) = &self.read_log else { return None };
        let mut kept = log.0.lock();
        let answer = kept.answers.get_mut(&question()).and_then(|answers| {
            if answers.len() > 1 { answers.pop_front() } else { answers.front().cloned() }
        });
        kept.missed |= answer.is_none();
        answer
    }

    pub(super) fn note(
        &self,
        question: impl FnOnce() -> String,
        answer: impl FnOnce() -> RepeatableQueryResult,
    ) {
        if let ReadLogMode::CallRecording(log) = &self.read_log {
            log.0.lock().note(question(), answer(), self.spec.limits.max_bytes);
        }
    }

    /// Records a published event among the call's effects.
    pub(super) fn note_event(&mut self, name: &str, data: &str) {
        let data = || serde_json::from_str(data).unwrap_or_default();
        match &self.read_log {
            ReadLogMode::Not => {}
            ReadLogMode::Playing(_) => {
                self.effects.events.entry(name.to_owned()).or_default().push(data());
            }
            ReadLogMode::CallRecording(log) => {
                let left = &mut log.0.lock().left;
                left.events.entry(name.to_owned()).or_default().push(data());
            }
        }
    }

    /// Records the call's effects in the read log when they are sent to the database.
    pub(super) fn note_effects(&self, effects: &Effects) {
        if let ReadLogMode::CallRecording(log) = &self.read_log {
            let left = &mut log.0.lock().left;
            left.take(effects.clone());
            left.more = self.other_effects();
        }
    }

    fn other_effects(&self) -> Vec<String> {
        let members = self.new_members.iter().map(|member| format!("{member:?}"));
        members.chain(self.job_changes.iter().map(|change| format!("{change:?}"))).collect()
    }
}

impl ReadLogEntries {
    /// Records the result of a query. A log with more than `max_bytes` bytes keeps no results, so
    /// that a repeated call gets all of them from the database.
    fn note(&mut self, question: String, answer: RepeatableQueryResult, max_bytes: u64) {
        self.answer_bytes += (question.len() + answer.bytes()) as u64;
        if self.answer_bytes > max_bytes {
            self.answers.clear();
        } else {
            self.answers.entry(question).or_default().push_back(answer);
        }
    }
}

impl RepeatableQueryResult {
    fn bytes(&self) -> usize {
        let value = |value: &FieldValue| match value {
            FieldValue::Text(text) => size_of::<FieldValue>() + text.len(),
            _ => size_of::<FieldValue>(),
        };
        match self {
            Self::Page(page) => page.documents.iter().map(|document| document.body.len()).sum(),
            Self::Count(_) => size_of::<u64>(),
            Self::Groups(groups) => groups.iter().flat_map(|group| &group.values).map(value).sum(),
            Self::Heads(heads) => size_of_val(heads.as_slice()),
        }
    }
}

impl ComparedEffects {
    fn take(&mut self, effects: Effects) {
        let whole = |body: &str| serde_json::from_str(body).unwrap_or_default();
        let inserts =
            effects.inserts.into_iter().map(|one| (one.collection, one.id, whole(&one.body)));
        let updates =
            effects.updates.into_iter().map(|one| (one.collection, one.id, whole(&one.body)));
        let deletes = effects.deletes.into_iter().map(|one| (one.collection, one.id, Json::Null));
        for (collection, id, body) in inserts.chain(updates).chain(deletes) {
            self.documents.entry(collection).or_default().insert(id, body);
        }
        // Events are recorded separately, because some have no subscriber.
        let jobs = effects.jobs.into_iter().filter(|job| !delivers_events(&job.kind));
        for job in jobs {
            let told = json!({
                "payload": whole(&job.payload), "available_at": job.available_at,
                "resource": job.resource, "dedupe_key": job.dedupe_key,
            });
            self.jobs.entry(job.kind).or_default().push(told);
        }
        let secrets = effects.secrets.into_iter();
        self.secrets.extend(secrets.map(|(name, sealed)| (name, sealed.is_some())));
        let blobs = effects.blobs.into_iter();
        self.blobs.extend(blobs.map(|(name, blob)| (name, blob.map(|blob| blob.sha256))));
    }

    fn to_json(&self) -> Json {
        json!({
            "documents": self.documents, "events": self.events, "jobs": self.jobs,
            "secrets": self.secrets, "blobs": self.blobs, "more": self.more,
        })
    }
}
