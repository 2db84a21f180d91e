//! One lane: claims what is due whenever there is a free place.
//!
//! A look at the lane's oldest jobs serves many claims. Where these are so
//! many that newer ones of other workspaces may be behind them, the lane's
//! flows are walked through as well, a few at a time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use super::turns::Turns;
use super::{Shared, run};
use crate::config::LaneShare;
use crate::domain::job::{Flow, Lane, LeasedJob};
use crate::domain::time::Timestamp;
use crate::store;
use crate::store::jobs::{Claim, OLDEST};

/// Between two tries when the database does not answer.
const PAUSE: Duration = Duration::from_secs(1);
/// For how long a look at the queue serves further claims.
const FRESH: Duration = Duration::from_millis(20);
/// Walks of one round, when places are free and nothing was found to run.
const WALKS: usize = 8;
/// Between two rounds of such walks.
const WALK_PAUSE: Duration = Duration::from_millis(20);

pub(super) struct Dispatcher {
    shared: Arc<Shared>,
    tasks: TaskTracker,
    lane: Lane,
    share: LaneShare,
    turns: Arc<Mutex<Turns>>,
    /// Rung when a job has ended.
    freed: Arc<Notify>,
    look: Option<Look>,
    /// Where the walk through the flows goes on; it outlives a look, so that
    /// every flow is seen in its turn.
    walked_to: Option<Flow>,
    /// The walk began at the first flow, and nothing was claimed since.
    walked_from_first: bool,
    /// A job was enqueued since the last look.
    rung: bool,
}

/// What a look at the lane's oldest jobs was like.
#[derive(Clone, Copy)]
struct Look {
    at: Instant,
    /// Every flow with due jobs was seen.
    complete: bool,
    /// When the first job is due that was not.
    next_due: Option<Timestamp>,
}

/// What to wait for, before there may be something to claim.
enum Wait {
    /// For nothing.
    Not,
    /// For a job to end: every place is taken.
    Full,
    /// Nothing is due.
    Idle(Option<Timestamp>),
    /// What is due is of workspaces or resources that have their part.
    Blocked(Option<Timestamp>),
    /// There are flows that were not walked through yet.
    Walk,
}

/// A running job's place in the lane; free again when dropped.
struct Place {
    turns: Arc<Mutex<Turns>>,
    freed: Arc<Notify>,
    flow: Flow,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.turns.lock().ended(self.flow);
        self.freed.notify_one();
    }
}

impl Dispatcher {
    pub(super) fn new(
        shared: &Arc<Shared>,
        tasks: &TaskTracker,
        lane: Lane,
        share: LaneShare,
    ) -> Self {
        Self {
            shared: Arc::clone(shared),
            tasks: tasks.clone(),
            lane,
            share,
            turns: Arc::new(Mutex::new(Turns::new(share))),
            freed: Arc::default(),
            look: None,
            walked_to: None,
            walked_from_first: false,
            rung: false,
        }
    }

    /// Works until the workers are told to stop.
    pub(super) async fn run(mut self) {
        let stop = self.shared.stop.clone();
        while !stop.is_cancelled() {
            // Not interrupted: a claim that was sent must be heard out.
            let wait = match self.round().await {
                Ok(wait) => wait,
                Err(error) => {
                    tracing::warn!(lane = %self.lane, %error, "cannot read the queue");
                    stop.run_until_cancelled(tokio::time::sleep(PAUSE)).await;
                    continue;
                }
            };
            stop.run_until_cancelled(self.wait(wait)).await;
        }
    }

    /// Claims as many jobs as there are places, as far as they are known.
    async fn round(&mut self) -> Result<Wait, store::Error> {
        if self.turns.lock().free() == 0 {
            return Ok(Wait::Full);
        }
        let mut look = match self.look.filter(|look| look.at.elapsed() < FRESH) {
            Some(look) => look,
            None => self.look().await?,
        };
        if !look.complete && self.turns.lock().none_waits() {
            look = self.look().await?;
        }
        if self.claim_chosen().await {
            return Ok(Wait::Not);
        }
        if !look.complete {
            return self.search().await;
        }
        let idle = self.turns.lock().none_waits();
        Ok(if idle { Wait::Idle(look.next_due) } else { Wait::Blocked(look.next_due) })
    }

    /// Walks through the flows until there is something to claim, or all were
    /// seen.
    async fn search(&mut self) -> Result<Wait, store::Error> {
        for _ in 0..WALKS {
            let at_the_end = self.walk().await?;
            if self.claim_chosen().await {
                return Ok(Wait::Not);
            }
            if at_the_end && self.walked_from_first {
                let next_due = self.next_due().await?;
                if let Some(look) = &mut self.look {
                    (look.complete, look.next_due) = (true, next_due);
                }
                return Ok(Wait::Blocked(next_due));
            }
        }
        Ok(Wait::Walk)
    }

    /// Looks at the oldest jobs, and where these are all due, at the next flows.
    async fn look(&mut self) -> Result<Look, store::Error> {
        let deps = &self.shared.deps;
        let areas = (deps.areas.names)();
        let now = deps.clock.now();
        let mut connection = deps.store.reader().await?;
        let mut oldest = store::jobs::oldest(&mut connection, self.lane, &areas).await?;
        connection.release();
        let seen = oldest.len();
        let next_due = oldest.iter().map(|job| job.available_at).find(|due| *due > now);
        oldest.retain(|job| job.available_at <= now);
        let complete = oldest.len() < seen || seen < OLDEST;
        {
            let mut turns = self.turns.lock();
            turns.forget_waiting();
            turns.note_waiting(&oldest);
        }
        let look = Look { at: Instant::now(), complete, next_due };
        (self.look, self.rung) = (Some(look), false);
        if !complete {
            self.walk().await?;
        }
        Ok(look)
    }

    /// Looks at the next flows. Answers whether they were the last ones.
    async fn walk(&mut self) -> Result<bool, store::Error> {
        let deps = &self.shared.deps;
        let areas = (deps.areas.names)();
        let (after, now) = (self.walked_to, deps.clock.now());
        self.walked_from_first |= after.is_none();
        let mut connection = deps.store.reader().await?;
        let walk = store::jobs::walk(&mut connection, self.lane, &areas, after, now).await?;
        connection.release();
        self.turns.lock().note_waiting(&walk.due);
        self.walked_to = walk.stopped_at;
        Ok(walk.stopped_at.is_none())
    }

    /// Claims and starts the jobs whose turn it is. Answers whether there were
    /// any.
    async fn claim_chosen(&mut self) -> bool {
        let chosen = self.turns.lock().choose();
        if chosen.is_empty() {
            return false;
        }
        let lease = Uuid::new_v4();
        match self.claim(&chosen, lease).await {
            Ok(jobs) => self.start(&chosen, jobs),
            Err(error) => {
                self.start(&chosen, Vec::new());
                tracing::warn!(lane = %self.lane, %error, "cannot claim jobs");
                self.give_back(lease).await;
            }
        }
        true
    }

    /// Starts the claimed jobs; the places of those that were not there any
    /// more are free again.
    fn start(&self, chosen: &[(Flow, u32)], jobs: Vec<LeasedJob>) {
        {
            let mut turns = self.turns.lock();
            for (flow, wanted) in chosen {
                let got = jobs.iter().filter(|leased| leased.job.flow() == *flow).count();
                let missing = (*wanted as usize).saturating_sub(got);
                (0..missing).for_each(|_| turns.ended(*flow));
                if missing > 0 {
                    turns.nothing_left(*flow);
                }
            }
        }
        for job in jobs {
            let place = Place {
                turns: Arc::clone(&self.turns),
                freed: Arc::clone(&self.freed),
                flow: job.job.flow(),
            };
            let (shared, share) = (Arc::clone(&self.shared), self.share);
            self.tasks.spawn(async move {
                let abandon = shared.abandon.clone();
                let run = Box::pin(run::run(&shared, share, job));
                abandon.run_until_cancelled(run).await;
                drop(place);
            });
        }
    }

    async fn claim(
        &self,
        flows: &[(Flow, u32)],
        lease: Uuid,
    ) -> Result<Vec<LeasedJob>, store::Error> {
        let deps = &self.shared.deps;
        let areas = (deps.areas.names)();
        let claim =
            Claim { lane: self.lane, flows, areas: &areas, worker: self.shared.worker, lease };
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
                Err(error) => {
                    tracing::warn!(lane = %self.lane, %error, "cannot give claimed jobs back");
                }
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

    /// When the first job that is not due yet will be.
    async fn next_due(&self) -> Result<Option<Timestamp>, store::Error> {
        let deps = &self.shared.deps;
        let areas = (deps.areas.names)();
        let mut connection = deps.store.reader().await?;
        let now = deps.clock.now();
        let due = store::jobs::next_due(&mut connection, self.lane, &areas, now).await?;
        connection.release();
        Ok(due)
    }

    /// Waits. After that the queue is looked at anew, unless only a place was
    /// waited for.
    async fn wait(&mut self, wait: Wait) {
        let wake = self.shared.deps.store.wake();
        self.walked_from_first &= matches!(wait, Wait::Walk);
        match wait {
            Wait::Not => return,
            Wait::Full => return self.freed.notified().await,
            Wait::Walk => tokio::time::sleep(WALK_PAUSE).await,
            Wait::Idle(due) => tokio::select! {
                () = wake.rung(self.lane) => {}
                () = tokio::time::sleep(self.pause(due)) => {}
            },
            // The look stays: while a workspace that has its part enqueues
            // more and more, not every job is worth another.
            Wait::Blocked(due) => {
                let fresh = self.look.map_or(Duration::ZERO, |look| look.at.elapsed());
                let fresh = FRESH.saturating_sub(fresh);
                let pause = if self.rung { fresh } else { self.pause(due).max(fresh) };
                tokio::select! {
                    () = self.freed.notified() => {}
                    () = wake.rung(self.lane), if !self.rung => self.rung = true,
                    () = tokio::time::sleep(pause) => {}
                }
                return;
            }
        }
        self.look = None;
    }

    /// Until the next look at the queue, or until something is due before it.
    fn pause(&self, due: Option<Timestamp>) -> Duration {
        let deps = &self.shared.deps;
        let poll = Duration::from_millis(u64::from(deps.settings.poll_ms));
        // Rounded up: woken too early, it would only have to wait again.
        let ms = due.map(|due| due.plus_ms(1).ms_since(deps.clock.now()).max(0));
        ms.map_or(poll, |ms| poll.min(Duration::from_millis(ms.unsigned_abs())))
    }
}
