//! One lane: claims what is due whenever there is a free place.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use super::{Shared, run};
use crate::config::LaneShare;
use crate::domain::job::{Lane, LeasedJob};
use crate::store;
use crate::store::jobs::Claim;

/// Between two tries when the database does not answer.
const PAUSE: Duration = Duration::from_secs(1);

pub(super) struct Dispatcher {
    shared: Arc<Shared>,
    tasks: TaskTracker,
    lane: Lane,
    share: LaneShare,
    places: Arc<Semaphore>,
}

impl Dispatcher {
    pub(super) fn new(
        shared: &Arc<Shared>,
        tasks: &TaskTracker,
        lane: Lane,
        share: LaneShare,
    ) -> Self {
        let places = Arc::new(Semaphore::new(share.capacity as usize));
        Self { shared: Arc::clone(shared), tasks: tasks.clone(), lane, share, places }
    }

    /// Works until the workers are told to stop.
    pub(super) async fn run(self) {
        let stop = self.shared.stop.clone();
        while let Some(Some(places)) = stop.run_until_cancelled(self.free_places()).await {
            // Not interrupted: a claim that was sent must be heard out.
            let all_taken = self.claim_into(places).await;
            if !all_taken {
                stop.run_until_cancelled(self.something_due()).await;
            }
        }
    }

    /// Every free place, and at least one.
    async fn free_places(&self) -> Option<OwnedSemaphorePermit> {
        let mut places = Arc::clone(&self.places).acquire_owned().await.ok()?;
        let free = u32::try_from(self.places.available_permits()).unwrap_or(u32::MAX);
        if let Ok(more) = Arc::clone(&self.places).try_acquire_many_owned(free) {
            places.merge(more);
        }
        Some(places)
    }

    /// Answers whether every place was taken, so that there may be more.
    async fn claim_into(&self, mut places: OwnedSemaphorePermit) -> bool {
        let lease = Uuid::new_v4();
        let jobs = match self.claim(places.num_permits(), lease).await {
            Ok(jobs) => jobs,
            Err(error) => {
                tracing::warn!(lane = %self.lane, %error, "jobs could not be claimed");
                self.give_back(lease).await;
                return false;
            }
        };
        let all_taken = jobs.len() == places.num_permits();
        for job in jobs {
            let place = places.split(1);
            let shared = Arc::clone(&self.shared);
            let share = self.share;
            self.tasks.spawn(async move {
                let abandon = shared.abandon.clone();
                let run = Box::pin(run::run(&shared, share, job));
                abandon.run_until_cancelled(run).await;
                drop(place);
            });
        }
        all_taken
    }

    async fn claim(&self, limit: usize, lease: Uuid) -> Result<Vec<LeasedJob>, store::Error> {
        let deps = &self.shared.deps;
        let areas = (deps.areas.names)();
        let claim = Claim {
            lane: self.lane,
            limit: u32::try_from(limit).unwrap_or(u32::MAX),
            areas: &areas,
            worker: self.shared.worker,
            lease,
        };
        let mut connection = deps.store.writer().await?;
        let jobs = store::jobs::claim(&mut connection, claim, deps.clock.now()).await?;
        connection.release();
        Ok(jobs)
    }

    /// The claim's answer was lost, perhaps not its effect: jobs that nobody
    /// knows to be running would be under a good lease for ever.
    async fn give_back(&self, lease: Uuid) {
        while !self.shared.stop.is_cancelled() {
            tokio::time::sleep(PAUSE).await;
            match self.release(lease).await {
                Ok(_) => return,
                Err(error) => tracing::warn!(lane = %self.lane, %error, "the queue is away"),
            }
        }
    }

    async fn release(&self, lease: Uuid) -> Result<u64, store::Error> {
        let deps = &self.shared.deps;
        let mut connection = deps.store.writer().await?;
        let (worker, now) = (self.shared.worker, deps.clock.now());
        let released = store::jobs::release(&mut connection, worker, Some(lease), now).await?;
        connection.release();
        Ok(released)
    }

    /// Waits until a job is due, or somebody says that one may be.
    async fn something_due(&self) {
        let deps = &self.shared.deps;
        loop {
            let poll = Duration::from_millis(u64::from(deps.settings.poll_ms));
            let pause = match self.next_due_in_ms().await {
                Ok(Some(ms)) if ms <= 0 => return,
                Ok(Some(ms)) => poll.min(Duration::from_millis(ms.unsigned_abs())),
                Ok(None) => poll,
                Err(error) => {
                    tracing::warn!(lane = %self.lane, %error, "the queue is away");
                    poll.max(PAUSE)
                }
            };
            tokio::select! {
                () = deps.store.wake().rung(self.lane) => return,
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    async fn next_due_in_ms(&self) -> Result<Option<i64>, store::Error> {
        let deps = &self.shared.deps;
        let areas = (deps.areas.names)();
        let mut connection = deps.store.reader().await?;
        let due = store::jobs::next_due(&mut connection, self.lane, &areas).await?;
        connection.release();
        // Rounded up: woken too early, it would only have to wait again.
        Ok(due.map(|due| due.plus_ms(1).ms_since(deps.clock.now())))
    }
}
