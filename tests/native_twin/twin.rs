//! Runs area code natively with a unit of work.
//!
//! A handler is synchronous, but the store is not. Host calls that need no read (writes, events,
//! random bytes) return at once. At a read the handler is stopped, the read is awaited, and the
//! handler runs again from its beginning with the stored results. A handler with the same results
//! always does the same.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use area_sdk::{Area, HostFunctions};
use assurance_core::domain::area::{JobRun, Problem, Request, SuccessReply};
use assurance_core::domain::job::{JobFailure, JobOutcome};
use assurance_work::{AreaCode, CallError, CallOutcome, UnitOfWork};
use futures::future::BoxFuture;
use parking_lot::Mutex;

use crate::answers::{Answers, RepeatableHost};
use crate::convert;

/// Creates an area.
pub(crate) type Make = fn() -> Area;

thread_local! {
    /// Areas are created once for each thread, like the router of a native service.
    static AREAS: RefCell<Vec<(Make, &'static Area)>> = const { RefCell::new(Vec::new()) };
}

/// A natively compiled area.
pub(crate) struct NativeArea {
    area: Make,
    component: Arc<dyn AreaCode>,
}

impl NativeArea {
    pub(crate) fn new(area: Make, component: Arc<dyn AreaCode>) -> Self {
        Self { area, component }
    }

    fn with_area<T>(&self, then: impl FnOnce(&Area) -> T) -> T {
        let make = self.area;
        let area = AREAS.with_borrow_mut(|areas| {
            let known = areas.iter().find(|(key, _)| std::ptr::fn_addr_eq(*key, make));
            if let Some((_, area)) = known {
                return *area;
            }
            let area: &'static Area = Box::leak(Box::new(make()));
            areas.push((make, area));
            area
        });
        then(area)
    }

    /// Runs the handler repeatedly until all results that it needs are stored.
    async fn settle<T>(
        &self,
        unit: UnitOfWork,
        call: impl Fn(&Area, RepeatableHost) -> T,
    ) -> (Option<UnitOfWork>, Result<T, CallError>) {
        let answers = Arc::new(Mutex::new(Answers::new(unit)));
        loop {
            let line = RepeatableHost::new(Arc::clone(&answers));
            let result = self.with_area(|area| call(area, line));
            let Some(question) = answers.lock().take_question() else {
                return (answers.lock().take_unit(), Ok(result));
            };
            let Some(mut unit) = answers.lock().take_unit() else {
                return (None, Err(CallError::Host(anyhow::anyhow!("the unit of work is gone"))));
            };
            let answer = question.ask(&mut unit).await;
            answers.lock().give_back(unit);
            match answer {
                Ok(answer) => answers.lock().learn(answer),
                Err(error) => return (answers.lock().take_unit(), Err(error.into())),
            }
        }
    }
}

impl AreaCode for NativeArea {
    fn handle<'a>(
        &'a self,
        unit: UnitOfWork,
        request: &'a Request,
        _deadline: Duration,
    ) -> BoxFuture<'a, CallOutcome<Result<SuccessReply, Problem>>> {
        Box::pin(async move {
            let request = convert::request(request);
            let (unit, result) = self
                .settle(unit, |area, line| area.handle(HostFunctions::new(line), request.clone()))
                .await;
            CallOutcome { unit, result: result.map(convert::answer) }
        })
    }

    /// Jobs run in the component, because the benchmark measures only requests.
    fn run<'a>(
        &'a self,
        unit: UnitOfWork,
        job: &'a JobRun,
        timeout: Duration,
    ) -> BoxFuture<'a, CallOutcome<Result<JobOutcome, JobFailure>>> {
        self.component.run(unit, job, timeout)
    }
}
