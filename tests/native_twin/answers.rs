//! The host's side of a native handler: what was asked so far, and what was
//! answered.

use std::sync::Arc;

use area_sdk::Host;
use area_sdk::wit::assurance::area::{
    blobs, calendar, directory, documents, egress, events, jobs, links, log, mail, malware,
    membership, queue, secrets, types,
};
use assurance::domain::document::Query;
use assurance::store;
use assurance::work::{Fault, UnitOfWork};
use futures::FutureExt as _;
use parking_lot::Mutex;

use crate::convert;

/// A read that the handler waits for.
pub(crate) enum Question {
    Get(String, String),
    Query(Query),
}

/// One host call's result, kept so that a second pass gets the same one.
#[derive(Clone)]
pub(crate) enum Answer {
    Document(Result<Option<documents::Document>, documents::Error>),
    Page(Result<documents::Page, documents::Error>),
    Versions(Result<Vec<u64>, documents::Error>),
    Event(Result<String, events::Error>),
}

impl Question {
    /// Reads through the unit of work.
    pub(crate) async fn ask(self, unit: &mut UnitOfWork) -> Result<Answer, store::Error> {
        Ok(match self {
            Self::Get(collection, id) => {
                let found = told(unit.get(&collection, &id).await)?;
                Answer::Document(found.map(|document| document.map(convert::document)))
            }
            Self::Query(query) => Answer::Page(told(unit.query(&query).await)?.map(convert::page)),
        })
    }
}

/// What the guest is told, or why the call ends.
fn told<T>(
    result: Result<T, Fault<assurance::work::DocumentError>>,
) -> Result<Result<T, documents::Error>, store::Error> {
    match result {
        Ok(value) => Ok(Ok(value)),
        Err(Fault::Refused(error)) => Ok(Err(convert::document_error(error))),
        Err(Fault::Abort(error)) => Err(error),
    }
}

/// The answers of one call, in the order of its host calls.
pub(crate) struct Answers {
    unit: Option<UnitOfWork>,
    known: Vec<Answer>,
    question: Option<Question>,
}

impl Answers {
    pub(crate) fn new(unit: UnitOfWork) -> Self {
        Self { unit: Some(unit), known: Vec::new(), question: None }
    }

    pub(crate) fn take_question(&mut self) -> Option<Question> {
        self.question.take()
    }

    pub(crate) fn take_unit(&mut self) -> Option<UnitOfWork> {
        self.unit.take()
    }

    pub(crate) fn give_back(&mut self, unit: UnitOfWork) {
        self.unit = Some(unit);
    }

    pub(crate) fn learn(&mut self, answer: Answer) {
        self.known.push(answer);
    }
}

/// One pass of a handler over the answers.
pub(crate) struct Line {
    answers: Arc<Mutex<Answers>>,
    position: std::cell::Cell<usize>,
}

impl Line {
    pub(crate) fn new(answers: Arc<Mutex<Answers>>) -> Self {
        Self { answers, position: std::cell::Cell::new(0) }
    }

    /// The answer of an earlier pass, or a fresh one; nothing where it has to
    /// be awaited first.
    fn next(&self, fresh: impl FnOnce(&mut Answers) -> Option<Answer>) -> Option<Answer> {
        let position = self.position.replace(self.position.get() + 1);
        let mut answers = self.answers.lock();
        if let Some(answer) = answers.known.get(position) {
            return Some(answer.clone());
        }
        if answers.question.is_some() {
            return None;
        }
        let answer = fresh(&mut answers)?;
        answers.known.push(answer.clone());
        Some(answer)
    }

    fn unit_call<T>(&self, call: impl FnOnce(&mut UnitOfWork) -> T) -> T {
        let mut answers = self.answers.lock();
        call(answers.unit.as_mut().expect("the unit is there while a handler runs"))
    }
}

/// What a handler gets that is stopped to wait; its result is not looked at.
const WAIT: documents::Error = documents::Error::LimitExceeded;

impl Host for Line {
    fn get(
        &self,
        collection: &str,
        id: &str,
    ) -> Result<Option<documents::Document>, documents::Error> {
        let answer = self.next(|answers| {
            answers.question = Some(Question::Get(collection.to_owned(), id.to_owned()));
            None
        });
        match answer {
            Some(Answer::Document(found)) => found,
            _ => Err(WAIT),
        }
    }

    fn query(&self, query: &documents::Query) -> Result<documents::Page, documents::Error> {
        let answer = self.next(|answers| {
            answers.question = Some(Question::Query(convert::query(query)));
            None
        });
        match answer {
            Some(Answer::Page(page)) => page,
            _ => Err(WAIT),
        }
    }

    /// Creations only: the unit of work keeps them without a read.
    fn write(
        &self,
        collection: &str,
        writes: &[documents::Write],
    ) -> Result<Vec<u64>, documents::Error> {
        let answer = self.next(|answers| {
            let unit = answers.unit.as_mut()?;
            let writes = writes.iter().map(convert::write).collect();
            let kept = unit.write(collection, writes).now_or_never();
            let kept = kept.expect("a creation waits for nothing");
            Some(Answer::Versions(match kept {
                Ok(versions) => Ok(versions),
                Err(Fault::Refused(error)) => Err(convert::document_error(error)),
                Err(Fault::Abort(error)) => panic!("{error}"),
            }))
        });
        match answer {
            Some(Answer::Versions(versions)) => versions,
            _ => Err(WAIT),
        }
    }

    fn publish(&self, name: &str, data: &str) -> Result<String, events::Error> {
        let answer = self.next(|answers| {
            let id = answers.unit.as_mut()?.publish(name, data.to_owned());
            let id = id.map(|id| id.to_string());
            Some(Answer::Event(id.map_err(|error| events::Error::Misuse(error.to_string()))))
        });
        match answer {
            Some(Answer::Event(id)) => id,
            _ => Err(events::Error::LimitExceeded),
        }
    }

    fn random_bytes(&self, length: u32) -> Vec<u8> {
        self.unit_call(|unit| unit.random_bytes(length as usize))
    }

    fn log(&self, _level: log::Level, message: &str) {
        tracing::debug!(message);
    }

    fn get_many(
        &self,
        _: &str,
        _: &[String],
    ) -> Result<Vec<documents::Document>, documents::Error> {
        unmeasured("get-many")
    }

    fn count(
        &self,
        _: &str,
        _: &[documents::Condition],
        _: Option<u32>,
    ) -> Result<u64, documents::Error> {
        unmeasured("count")
    }

    fn count_by(
        &self,
        _: &str,
        _: &[documents::Condition],
        _: &[String],
    ) -> Result<Vec<documents::Group>, documents::Error> {
        unmeasured("count-by")
    }

    fn blob_stat(&self, _: &str) -> Result<Option<blobs::Info>, blobs::Error> {
        unmeasured("blobs.stat")
    }

    fn blob_read(&self, _: &str, _: u64, _: u32) -> Result<Vec<u8>, blobs::Error> {
        unmeasured("blobs.read")
    }

    fn blob_write(&self, _: &str, _: &[u8]) -> Result<blobs::Info, blobs::Error> {
        unmeasured("blobs.write")
    }

    fn blob_delete(&self, _: &str) -> Result<(), blobs::Error> {
        unmeasured("blobs.delete")
    }

    fn shared_blob_stat(&self, _: &str, _: &str) -> Result<Option<blobs::Info>, blobs::Error> {
        unmeasured("blobs.stat-shared")
    }

    fn shared_blob_read(&self, _: &str, _: &str, _: u64, _: u32) -> Result<Vec<u8>, blobs::Error> {
        unmeasured("blobs.read-shared")
    }

    fn scan(&self, _: &str) -> Result<malware::Verdict, malware::Error> {
        unmeasured("malware.scan")
    }

    fn sign_link(&self, _: &str, _: &str, _: i64) -> Result<String, links::Error> {
        unmeasured("links.sign")
    }

    fn setting(&self, _: &str) -> Option<String> {
        unmeasured("settings.get")
    }

    fn enqueue(&self, _: &jobs::NewJob) -> Result<String, jobs::Error> {
        unmeasured("jobs.enqueue")
    }

    fn secret_put(&self, _: &str, _: &[u8]) -> Result<(), secrets::Error> {
        unmeasured("secrets.put")
    }

    fn secret_delete(&self, _: &str) -> Result<(), secrets::Error> {
        unmeasured("secrets.delete")
    }

    fn secret_exists(&self, _: &str) -> Result<bool, secrets::Error> {
        unmeasured("secrets.exists")
    }

    fn secret_hmac_sha256(&self, _: &str, _: &[u8]) -> Result<Vec<u8>, secrets::Error> {
        unmeasured("secrets.hmac-sha256")
    }

    fn sha256(&self, _: &[u8]) -> Vec<u8> {
        unmeasured("crypto.sha256")
    }

    fn ed25519_verify(&self, _: &[u8], _: &[u8], _: &[u8]) -> bool {
        unmeasured("crypto.ed25519-verify")
    }

    fn member(&self, _: &str) -> Option<directory::Person> {
        unmeasured("directory.member")
    }

    fn members(&self) -> Vec<directory::Person> {
        unmeasured("directory.members")
    }

    fn workspace(&self) -> (String, String) {
        unmeasured("directory.workspace")
    }

    fn local(&self, _: &str, _: i64) -> Result<calendar::Civil, calendar::Error> {
        unmeasured("calendar.local")
    }

    fn resolve(&self, _: &str, _: calendar::Civil) -> Result<i64, calendar::Error> {
        unmeasured("calendar.resolve")
    }

    fn send(&self, _: &egress::Outgoing) -> Result<egress::Incoming, egress::Error> {
        unmeasured("egress.send")
    }

    fn check_url(&self, _: &str) -> Result<(), egress::Error> {
        unmeasured("egress.check")
    }

    fn queue_lanes(&self) -> Vec<queue::Lane> {
        unmeasured("queue.lanes")
    }

    fn queue_overview(&self, _: u32) -> Result<Vec<queue::Job>, queue::Error> {
        unmeasured("queue.overview")
    }

    fn queue_find(
        &self,
        _: &queue::Filter,
        _: Option<&str>,
        _: u32,
    ) -> Result<queue::Page, queue::Error> {
        unmeasured("queue.find")
    }

    fn queue_get(&self, _: &str) -> Option<queue::Job> {
        unmeasured("queue.get")
    }

    fn queue_retry(&self, _: &str) -> Result<queue::Job, queue::Error> {
        unmeasured("queue.retry")
    }

    fn queue_cancel(&self, _: &str, _: &str) -> Result<queue::Job, queue::Error> {
        unmeasured("queue.cancel")
    }

    fn account(&self, _: &str) -> Option<membership::Account> {
        unmeasured("membership.account")
    }

    fn add_member(&self, _: &str, _: types::Role) -> Result<(), membership::Error> {
        unmeasured("membership.add")
    }

    fn vouch(&self, _: &str, _: i64) -> Result<String, membership::Error> {
        unmeasured("membership.vouch")
    }

    fn send_mail(&self, _: &mail::Message) -> Result<(), mail::Error> {
        unmeasured("mail.send")
    }
}

/// The twin answers what the benchmark measures; anything else ends the call
/// loudly rather than differently.
fn unmeasured(function: &str) -> ! {
    panic!("the native twin has no {function}: no measured operation calls it")
}
