//! What a call read of documents and what it left behind, kept so that another
//! version can be held against it.
//!
//! The other version runs when the call has been answered, and is told what
//! the call was told: so it sees the state that the call saw, without a
//! transaction that is held open for it. Of what the call did not ask for the
//! tape has nothing; the later state is read then, and [`Tape::is_exact`] says
//! so.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value as Json, json};

use super::UnitOfWork;
use crate::domain::document::{Document, Group, Page};
use crate::store::apply::Effects;
use crate::store::documents::Head;

/// What one call read and left behind.
#[derive(Debug, Default)]
pub struct Tape(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    /// By collection's full name and id.
    documents: HashMap<(String, String), Option<Document>>,
    /// By the question, in the order in which it was asked.
    answers: HashMap<String, VecDeque<Answer>>,
    left: Left,
    missed: bool,
}

/// The answer to a question about many documents.
#[derive(Clone, Debug)]
pub(super) enum Answer {
    Page(Page),
    Count(u64),
    Groups(Vec<Group>),
    Heads(Vec<Head>),
}

/// Whether a unit of work writes a tape or is told by one.
#[derive(Clone, Debug, Default)]
pub(super) enum Taped {
    #[default]
    Not,
    Recording(Arc<Tape>),
    Playing(Arc<Tape>),
}

/// What a call leaves behind: documents, events, jobs and the rest, as one
/// JSON object.
#[derive(Clone, Debug, Default)]
pub(super) struct Left {
    documents: BTreeMap<String, BTreeMap<String, Json>>,
    events: BTreeMap<String, Vec<Json>>,
    jobs: BTreeMap<String, Vec<Json>>,
    secrets: BTreeMap<String, bool>,
    blobs: BTreeMap<String, Option<String>>,
    more: Vec<String>,
}

impl Tape {
    /// Forgets what a run left that was not kept.
    fn rewind(&self) {
        *self.0.lock() = Kept::default();
    }

    /// Whether everything that was asked of it was on it.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        !self.0.lock().missed
    }

    /// What the recorded call left behind.
    #[must_use]
    pub fn left(&self) -> Json {
        self.0.lock().left.told()
    }
}

impl UnitOfWork {
    /// Writes what is read and left behind onto a tape, from its beginning.
    #[must_use]
    pub fn recording(mut self, tape: &Arc<Tape>) -> Self {
        tape.rewind();
        self.taped = Taped::Recording(Arc::clone(tape));
        self
    }

    /// Is told what is on a tape, and never begins a transaction that writes.
    /// It is never to be committed.
    #[must_use]
    pub fn playing(mut self, tape: &Arc<Tape>) -> Self {
        self.taped = Taped::Playing(Arc::clone(tape));
        self
    }

    /// What the call would leave behind.
    #[must_use]
    pub fn would_leave(mut self) -> Json {
        let mut left = std::mem::take(&mut self.told);
        left.take(self.effects(false));
        left.more = self.more_to_tell();
        left.told()
    }

    pub(super) fn is_playing(&self) -> bool {
        matches!(self.taped, Taped::Playing(_))
    }

    /// The document as the recorded call saw it; nothing: it is not on the
    /// tape, or there is none.
    pub(super) fn recall_document(&self, collection: &str, id: &str) -> Option<Option<Document>> {
        let Taped::Playing(tape) = &self.taped else { return None };
        let mut kept = tape.0.lock();
        let known = kept.documents.get(&(collection.to_owned(), id.to_owned())).cloned();
        kept.missed |= known.is_none();
        known
    }

    pub(super) fn note_document(&self, collection: &str, id: &str, found: Option<&Document>) {
        if let Taped::Recording(tape) = &self.taped {
            let place = (collection.to_owned(), id.to_owned());
            tape.0.lock().documents.insert(place, found.cloned());
        }
    }

    /// The answer the recorded call had to the same question; the last one
    /// again, where it asked less often.
    pub(super) fn recall(&self, question: impl FnOnce() -> String) -> Option<Answer> {
        let Taped::Playing(tape) = &self.taped else { return None };
        let mut kept = tape.0.lock();
        let answer = kept.answers.get_mut(&question()).and_then(|answers| {
            if answers.len() > 1 { answers.pop_front() } else { answers.front().cloned() }
        });
        kept.missed |= answer.is_none();
        answer
    }

    pub(super) fn note(&self, question: impl FnOnce() -> String, answer: impl FnOnce() -> Answer) {
        if let Taped::Recording(tape) = &self.taped {
            tape.0.lock().answers.entry(question()).or_default().push_back(answer());
        }
    }

    /// An event goes out, whoever hears it.
    pub(super) fn note_event(&mut self, name: &str, data: &str) {
        let data = || serde_json::from_str(data).unwrap_or_default();
        match &self.taped {
            Taped::Not => {}
            Taped::Playing(_) => {
                self.told.events.entry(name.to_owned()).or_default().push(data());
            }
            Taped::Recording(tape) => {
                let left = &mut tape.0.lock().left;
                left.events.entry(name.to_owned()).or_default().push(data());
            }
        }
    }

    /// Effects go to the database.
    pub(super) fn note_effects(&self, effects: &Effects) {
        if let Taped::Recording(tape) = &self.taped {
            let left = &mut tape.0.lock().left;
            left.take(effects.clone());
            left.more = self.more_to_tell();
        }
    }

    fn more_to_tell(&self) -> Vec<String> {
        let members = self.new_members.iter().map(|member| format!("{member:?}"));
        members.chain(self.job_changes.iter().map(|change| format!("{change:?}"))).collect()
    }
}

impl Left {
    fn take(&mut self, effects: Effects) {
        let whole = |body: &str| serde_json::from_str(body).unwrap_or_default();
        for insert in effects.inserts {
            let documents = self.documents.entry(insert.collection).or_default();
            documents.insert(insert.id, whole(&insert.body));
        }
        for update in effects.updates {
            let documents = self.documents.entry(update.collection).or_default();
            documents.insert(update.id, whole(&update.body));
        }
        for delete in effects.deletes {
            let documents = self.documents.entry(delete.collection).or_default();
            documents.insert(delete.id, Json::Null);
        }
        // Events are told by themselves, since some are heard by nobody.
        let jobs =
            effects.jobs.into_iter().filter(|job| job.kind != crate::domain::job::EVENT_KIND);
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

    fn told(&self) -> Json {
        json!({
            "documents": self.documents, "events": self.events, "jobs": self.jobs,
            "secrets": self.secrets, "blobs": self.blobs, "more": self.more,
        })
    }
}
