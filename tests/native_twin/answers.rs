//! Host functions of a native handler: stores the results of the host calls so far, for repeated
//! runs.

use std::sync::Arc;

use area_sdk::Host;
use area_sdk::wit::assurance::area::{documents, events, log};
use assurance_core::domain::document::Query;
use assurance_store as store;
use assurance_work::{HostCallError, UnitOfWork};
use futures::FutureExt as _;
use parking_lot::Mutex;

use crate::convert;

/// A read whose result the handler needs before it can continue.
pub(crate) enum PendingRead {
    Get(String, String),
    Query(Query),
}

/// Result of a host call, stored so that a repeated run gets the same one.
#[derive(Clone)]
pub(crate) enum HostCallResult {
    Document(Result<Option<documents::Document>, documents::Error>),
    Page(Result<documents::Page, documents::Error>),
    Versions(Result<Vec<u64>, documents::Error>),
    Event(Result<String, events::Error>),
}

impl PendingRead {
    /// Executes the read through the unit of work.
    pub(crate) async fn ask(self, unit: &mut UnitOfWork) -> Result<HostCallResult, store::Error> {
        Ok(match self {
            Self::Get(collection, id) => {
                let found = told(unit.get(&collection, &id).await)?;
                HostCallResult::Document(found.map(|document| document.map(convert::document)))
            }
            Self::Query(query) => {
                HostCallResult::Page(told(unit.query(&query).await)?.map(convert::page))
            }
        })
    }
}

/// Converts a result for the guest; an error of the host ends the call.
fn told<T>(
    result: Result<T, HostCallError<assurance_work::DocumentError>>,
) -> Result<Result<T, documents::Error>, store::Error> {
    match result {
        Ok(value) => Ok(Ok(value)),
        Err(HostCallError::Refused(error)) => Ok(Err(convert::document_error(error))),
        Err(HostCallError::Abort(error)) => Err(error),
    }
}

/// Results of one call, in the order of its host calls.
pub(crate) struct Answers {
    unit: Option<UnitOfWork>,
    known: Vec<HostCallResult>,
    question: Option<PendingRead>,
}

impl Answers {
    pub(crate) fn new(unit: UnitOfWork) -> Self {
        Self { unit: Some(unit), known: Vec::new(), question: None }
    }

    pub(crate) fn take_question(&mut self) -> Option<PendingRead> {
        self.question.take()
    }

    pub(crate) fn take_unit(&mut self) -> Option<UnitOfWork> {
        self.unit.take()
    }

    pub(crate) fn give_back(&mut self, unit: UnitOfWork) {
        self.unit = Some(unit);
    }

    pub(crate) fn learn(&mut self, answer: HostCallResult) {
        self.known.push(answer);
    }
}

/// Host functions for one run of a handler, which return the stored results in order.
pub(crate) struct RepeatableHost {
    answers: Arc<Mutex<Answers>>,
    position: std::cell::Cell<usize>,
}

impl RepeatableHost {
    pub(crate) fn new(answers: Arc<Mutex<Answers>>) -> Self {
        Self { answers, position: std::cell::Cell::new(0) }
    }

    /// Returns the next stored result, or a new one; `None` if the result must be awaited first.
    fn next(
        &self,
        fresh: impl FnOnce(&mut Answers) -> Option<HostCallResult>,
    ) -> Option<HostCallResult> {
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

/// Placeholder result for a handler that is stopped to wait; it is never used.
const WAIT: documents::Error = documents::Error::LimitExceeded;

/// Host functions that the benchmark's operations use. Any other function ends the call.
impl Host for RepeatableHost {
    fn documents_get(
        &self,
        collection: &str,
        id: &str,
    ) -> Result<Option<documents::Document>, documents::Error> {
        let answer = self.next(|answers| {
            answers.question = Some(PendingRead::Get(collection.to_owned(), id.to_owned()));
            None
        });
        match answer {
            Some(HostCallResult::Document(found)) => found,
            _ => Err(WAIT),
        }
    }

    fn documents_find(
        &self,
        query: &documents::Query,
    ) -> Result<documents::Page, documents::Error> {
        let answer = self.next(|answers| {
            answers.question = Some(PendingRead::Query(convert::query(query)));
            None
        });
        match answer {
            Some(HostCallResult::Page(page)) => page,
            _ => Err(WAIT),
        }
    }

    /// Supports only creations, which the unit of work stores without a read.
    fn documents_apply(
        &self,
        collection: &str,
        writes: &[documents::Write],
    ) -> Result<Vec<u64>, documents::Error> {
        let answer = self.next(|answers| {
            let unit = answers.unit.as_mut()?;
            let writes = writes.iter().map(convert::write).collect();
            let kept = unit.write(collection, writes).now_or_never();
            let kept = kept.expect("a creation waits for nothing");
            Some(HostCallResult::Versions(match kept {
                Ok(versions) => Ok(versions),
                Err(HostCallError::Refused(error)) => Err(convert::document_error(error)),
                Err(HostCallError::Abort(error)) => panic!("{error}"),
            }))
        });
        match answer {
            Some(HostCallResult::Versions(versions)) => versions,
            _ => Err(WAIT),
        }
    }

    fn events_publish(&self, name: &str, data: &str) -> Result<String, events::Error> {
        let answer = self.next(|answers| {
            let id = answers.unit.as_mut()?.publish(name, data.to_owned());
            let id = id.map(|id| id.to_string());
            Some(HostCallResult::Event(
                id.map_err(|error| events::Error::Misuse(error.to_string())),
            ))
        });
        match answer {
            Some(HostCallResult::Event(id)) => id,
            _ => Err(events::Error::LimitExceeded),
        }
    }

    fn crypto_random_bytes(&self, length: u32) -> Vec<u8> {
        self.unit_call(|unit| unit.random_bytes(length as usize))
    }

    fn log_write(&self, _level: log::Level, message: &str) {
        tracing::debug!(message);
    }
}
