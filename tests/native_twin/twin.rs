//! Area code that runs natively over a unit of work.
//!
//! A handler is synchronous, the store is not. What the unit can answer at
//! once (writes it keeps, events, random bytes) it answers within the call.
//! Where the handler reads, it is stopped, the read is awaited, and the handler
//! runs again from its beginning with the answers it has had so far: a handler
//! always does the same with the same answers.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use area_sdk::Area;
use assurance::domain::area::{JobRun, Problem, Reply, Request};
use assurance::domain::job::{Failure, Outcome};
use assurance::work::{AreaCode, CallError, Ended, UnitOfWork};
use futures::future::BoxFuture;
use parking_lot::Mutex;

use crate::answers::{Answers, Line};
use crate::convert;

/// Makes an area.
pub(crate) type Make = fn() -> Area;

thread_local! {
    /// Areas are built once a thread, as a native service's router would be.
    static AREAS: RefCell<Vec<(Make, &'static Area)>> = const { RefCell::new(Vec::new()) };
}

/// One area, compiled natively.
pub(crate) struct Twin {
    area: Make,
    component: Arc<dyn AreaCode>,
}

impl Twin {
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

    /// Runs the logic until it needs no more answers.
    async fn settle<T>(
        &self,
        unit: UnitOfWork,
        call: impl Fn(&Area, Line) -> T,
    ) -> (Option<UnitOfWork>, Result<T, CallError>) {
        let answers = Arc::new(Mutex::new(Answers::new(unit)));
        loop {
            let line = Line::new(Arc::clone(&answers));
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

impl AreaCode for Twin {
    fn handle<'a>(
        &'a self,
        unit: UnitOfWork,
        request: &'a Request,
        _deadline: Duration,
    ) -> BoxFuture<'a, Ended<Result<Reply, Problem>>> {
        Box::pin(async move {
            let request = convert::request(request);
            let (unit, result) =
                self.settle(unit, |area, line| area.handle(Box::new(line), request.clone())).await;
            Ended { unit, result: result.map(convert::answer) }
        })
    }

    /// Jobs stay with the component: the benchmark measures requests.
    fn run<'a>(
        &'a self,
        unit: UnitOfWork,
        job: &'a JobRun,
        timeout: Duration,
    ) -> BoxFuture<'a, Ended<Result<Outcome, Failure>>> {
        self.component.run(unit, job, timeout)
    }
}
