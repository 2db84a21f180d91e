//! The dispatcher of one lane claims due jobs whenever the lane has a free slot.
//!
//! One scan of the lane's oldest jobs serves several claims. If the scan is full, newer jobs of
//! other workspaces may be behind it. Then the dispatcher also pages through the lane's flows, a
//! few at a time.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use super::leases::LeaseGuard;
use super::workspace_turns::WorkspaceTurns;
use super::{WorkerState, batch, run};
use assurance_core::config::LaneConfig;
use assurance_core::domain::job::{JobFairnessKey, Lane, LeasedJob};
use assurance_core::domain::time::Timestamp;
use assurance_store as store;
use assurance_store::jobs::{ClaimRequest, FlowWalkProgress, OLDEST};

/// Wait of a dispatcher after a database error before it tries again.
const RETRY_PAUSE: Duration = Duration::from_secs(1);
/// Time for which one scan of the lane's oldest jobs is used for claims.
const SCAN_REUSE: Duration = Duration::from_millis(20);
/// Maximum number of pages of flows that a dispatcher reads in one round, while slots are free and
/// nothing was claimed.
const PAGES_PER_ROUND: usize = 8;
/// Maximum time for which a full lane waits for further free slots before the next claim.
const GATHER: Duration = Duration::from_millis(2);
/// Wait between two rounds in which a dispatcher pages through the lane's flows.
const ROUND_PAUSE: Duration = Duration::from_millis(20);

pub(super) struct LaneDispatcher {
    shared: Arc<WorkerState>,
    tasks: TaskTracker,
    lane: Lane,
    share: LaneConfig,
    turns: Arc<Mutex<WorkspaceTurns>>,
    /// Notified when a job of the lane has ended.
    freed: Arc<Notify>,
    scan: Option<QueueScanCoverage>,
    /// Progress of paging through the lane's flows. It survives a scan, so that every workspace is
    /// reached.
    walk: FlowWalkProgress,
    /// Whether the paging through the lane's flows began at the first flow and nothing was claimed
    /// since.
    walked_from_first: bool,
    /// Whether a job of the lane was enqueued since the last scan.
    enqueued: bool,
}

/// Result of a scan of the lane's oldest jobs.
#[derive(Clone, Copy)]
struct QueueScanCoverage {
    at: Instant,
    /// Whether the scan saw every due job of the lane.
    has_all_jobs: bool,
    /// Whether the scan saw every workspace with due jobs, possibly not all jobs of it.
    has_all_flows: bool,
    /// Due time of the lane's first job that is not due yet; `None` if there is none.
    next_due: Option<Timestamp>,
}

/// What a dispatcher waits for before its next round.
enum DispatcherWait {
    /// Nothing: the next round starts at once.
    Not,
    /// Every slot of the lane is used: wait until a job ends.
    Full,
    /// No job is due; contains the time at which the next job is due, `None` if there is none.
    Idle(Option<Timestamp>),
    /// Jobs are due, but their workspaces or resources have used their shares; contains the time at
    /// which the next job is due, `None` if there is none.
    Blocked(Option<Timestamp>),
    /// Some flows of the lane were not read yet: wait for a short pause.
    Walk,
}

/// A running job's slot in the lane. Dropping it frees the slot.
struct LaneSlot {
    turns: Arc<Mutex<WorkspaceTurns>>,
    freed: Arc<Notify>,
    flow: JobFairnessKey,
    /// Lease of the job, which other jobs of the claim have, too.
    _lease: Arc<LeaseGuard>,
}

impl Drop for LaneSlot {
    fn drop(&mut self) {
        self.turns.lock().ended(self.flow);
        self.freed.notify_one();
    }
}

impl LaneDispatcher {
    pub(super) fn new(
        shared: &Arc<WorkerState>,
        tasks: &TaskTracker,
        lane: Lane,
        share: LaneConfig,
    ) -> Self {
        Self {
            shared: Arc::clone(shared),
            tasks: tasks.clone(),
            lane,
            share,
            turns: Arc::new(Mutex::new(WorkspaceTurns::new(share))),
            freed: Arc::default(),
            scan: None,
            walk: FlowWalkProgress::default(),
            walked_from_first: false,
            enqueued: false,
        }
    }

    /// Claims and starts the lane's jobs until the workers stop.
    pub(super) async fn run(mut self) {
        let stop = self.shared.stop.clone();
        while !stop.is_cancelled() {
            // Not cancelled: the response to a claim must be read.
            let wait = match self.round().await {
                Ok(wait) => wait,
                Err(error) => {
                    tracing::warn!(lane = %self.lane, %error, "cannot read the queue");
                    stop.run_until_cancelled(tokio::time::sleep(RETRY_PAUSE)).await;
                    continue;
                }
            };
            stop.run_until_cancelled(self.wait(wait)).await;
        }
    }

    /// Claims as many due jobs as the lane has free slots. Returns what to wait for before the next
    /// round.
    async fn round(&mut self) -> Result<DispatcherWait, store::Error> {
        if self.turns.lock().free() == 0 {
            return Ok(DispatcherWait::Full);
        }
        let mut scan = match self.scan.filter(|scan| scan.at.elapsed() < SCAN_REUSE) {
            Some(scan) => scan,
            None => self.scan().await?,
        };
        if !scan.has_all_jobs && self.turns.lock().has_none_waiting() {
            scan = self.scan().await?;
        }
        if self.claim_chosen().await {
            return Ok(DispatcherWait::Not);
        }
        if !scan.has_all_flows {
            return self.search().await;
        }
        let idle = self.turns.lock().has_none_waiting();
        Ok(if idle {
            DispatcherWait::Idle(scan.next_due)
        } else {
            DispatcherWait::Blocked(scan.next_due)
        })
    }

    /// Pages through the lane's flows until a job was claimed or all flows were read.
    async fn search(&mut self) -> Result<DispatcherWait, store::Error> {
        for _ in 0..PAGES_PER_ROUND {
            let at_the_end = self.read_flows().await?;
            if self.claim_chosen().await {
                return Ok(DispatcherWait::Not);
            }
            if at_the_end && self.walked_from_first {
                let next_due = self.next_due().await?;
                if let Some(scan) = &mut self.scan {
                    (scan.has_all_flows, scan.next_due) = (true, next_due);
                }
                return Ok(DispatcherWait::Blocked(next_due));
            }
        }
        Ok(DispatcherWait::Walk)
    }

    /// Reads the lane's oldest jobs. If all of them are due, also reads the next page of flows.
    async fn scan(&mut self) -> Result<QueueScanCoverage, store::Error> {
        let deps = &self.shared.deps;
        let areas = (deps.areas.names)();
        let now = deps.clock.now();
        let mut connection = deps.store.reader().await?;
        deps.store.wake().forget(self.lane);
        let mut oldest = store::jobs::oldest(&mut connection, self.lane, &areas).await?;
        connection.release();
        let seen = oldest.len();
        let next_due = oldest.iter().map(|job| job.available_at).find(|due| *due > now);
        oldest.retain(|job| job.available_at <= now);
        let has_all_jobs = oldest.len() < seen || seen < OLDEST;
        {
            let mut turns = self.turns.lock();
            turns.forget_waiting();
            turns.note_waiting(&oldest);
        }
        let at = Instant::now();
        let scan = QueueScanCoverage { at, has_all_jobs, has_all_flows: has_all_jobs, next_due };
        (self.scan, self.enqueued) = (Some(scan), false);
        if !has_all_jobs {
            self.read_flows().await?;
        }
        Ok(scan)
    }

    /// Reads the next page of the lane's flows (pairs of workspace and resource with waiting jobs).
    /// Returns true if it was the last page, and no flows were left out.
    async fn read_flows(&mut self) -> Result<bool, store::Error> {
        let deps = &self.shared.deps;
        let areas = (deps.areas.names)();
        let now = deps.clock.now();
        self.walked_from_first |= self.walk.is_at_start();
        let mut connection = deps.store.reader().await?;
        let walk = &mut self.walk;
        let due = store::jobs::walk(&mut connection, self.lane, &areas, walk, now).await?;
        connection.release();
        self.turns.lock().note_waiting(&due);
        Ok(self.walk.is_at_start())
    }

    /// Claims and starts the jobs that get the lane's free slots. Returns false if no job was
    /// chosen.
    async fn claim_chosen(&mut self) -> bool {
        let chosen = self.turns.lock().choose();
        if chosen.is_empty() {
            return false;
        }
        let lease = Arc::new(self.shared.leases.begin());
        match self.claim(&chosen, lease.id).await {
            Ok(jobs) => self.start(&chosen, jobs, &lease),
            Err(error) => {
                self.start(&chosen, Vec::new(), &lease);
                tracing::warn!(lane = %self.lane, %error, "cannot claim jobs");
                release_lease(&self.shared, self.lane, lease.id).await;
            }
        }
        true
    }

    /// Starts the claimed jobs. Frees the slots of chosen jobs that were not claimed.
    fn start(
        &self,
        chosen: &[(JobFairnessKey, u32)],
        jobs: Vec<LeasedJob>,
        lease: &Arc<LeaseGuard>,
    ) {
        // A look for more jobs of a flow costs a statement.
        let more: HashSet<JobFairnessKey> = {
            let mut turns = self.turns.lock();
            for (flow, wanted) in chosen {
                let got = jobs.iter().filter(|leased| leased.job.flow() == *flow).count();
                let missing = (*wanted as usize).saturating_sub(got);
                (0..missing).for_each(|_| turns.ended(*flow));
                if missing > 0 {
                    turns.forget_flow(*flow);
                }
            }
            chosen.iter().map(|(flow, _)| *flow).filter(|flow| turns.has_more(flow)).collect()
        };
        for job in jobs {
            let slot = LaneSlot {
                turns: Arc::clone(&self.turns),
                freed: Arc::clone(&self.freed),
                flow: job.job.flow(),
                _lease: Arc::clone(lease),
            };
            let (shared, share) = (Arc::clone(&self.shared), self.share);
            let more = more.contains(&slot.flow);
            self.tasks.spawn(async move {
                let abandon = shared.abandon.clone();
                let run = Box::pin(async {
                    // In use until the further jobs have ended, too.
                    let lease = shared.leases.begin();
                    let jobs = match more {
                        true => batch::gather(&shared, job, lease.id).await,
                        false => vec![job],
                    };
                    // `Workers::drain` releases jobs that have not begun.
                    if !shared.stop.is_cancelled() {
                        run::run(&shared, share, jobs).await;
                    }
                });
                abandon.run_until_cancelled(run).await;
                drop(slot);
            });
        }
    }

    async fn claim(
        &self,
        flows: &[(JobFairnessKey, u32)],
        lease: Uuid,
    ) -> Result<Vec<LeasedJob>, store::Error> {
        let deps = &self.shared.deps;
        let areas = (deps.areas.names)();
        let claim = ClaimRequest {
            lane: self.lane,
            flows,
            areas: &areas,
            worker: self.shared.worker,
            lease,
        };
        deps.store.write(async |c| store::jobs::claim(c, claim, deps.clock.now()).await).await
    }

    /// Returns the due time of the lane's first job that is not due yet; `None` if there is none.
    async fn next_due(&self) -> Result<Option<Timestamp>, store::Error> {
        let deps = &self.shared.deps;
        let areas = (deps.areas.names)();
        let reading = deps
            .store
            .read(async |c| store::jobs::next_due(c, self.lane, &areas, deps.clock.now()).await);
        reading.await
    }

    /// Waits for the next round. Afterwards the scan is discarded, unless only a free slot was
    /// awaited.
    async fn wait(&mut self, wait: DispatcherWait) {
        let wake = self.shared.deps.store.wake();
        self.walked_from_first &= matches!(wait, DispatcherWait::Walk);
        match wait {
            DispatcherWait::Not => return,
            DispatcherWait::Full => return self.wait_for_slots().await,
            DispatcherWait::Walk => tokio::time::sleep(ROUND_PAUSE).await,
            DispatcherWait::Idle(due) => self.wait_until_due(due).await,
            // Keeps the scan: a workspace that has used its share may enqueue many jobs, and each
            // would cause another scan.
            DispatcherWait::Blocked(due) => {
                let fresh = self.scan.map_or(Duration::ZERO, |scan| scan.at.elapsed());
                let fresh = SCAN_REUSE.saturating_sub(fresh);
                let pause = if self.enqueued { fresh } else { self.pause(due).max(fresh) };
                tokio::select! {
                    () = self.wait_for_slots() => {}
                    _ = wake.wait(self.lane), if !self.enqueued => self.enqueued = true,
                    () = tokio::time::sleep(pause) => {}
                }
                return;
            }
        }
        self.scan = None;
    }

    /// Waits until a job of the lane is due, at most for the poll interval. `due` is when the first
    /// known job is due.
    async fn wait_until_due(&self, due: Option<Timestamp>) {
        let deps = &self.shared.deps;
        let mut until = Instant::now() + self.pause(due);
        loop {
            tokio::select! {
                due = deps.store.wake().wait(self.lane) => {
                    if due <= deps.clock.now() {
                        return;
                    }
                    until = until.min(Instant::now() + self.pause(Some(due)));
                }
                () = tokio::time::sleep_until(until.into()) => return,
            }
        }
    }

    /// Waits until a job of the lane has ended, and then up to 2 ms for others, because one claim
    /// of several jobs costs as much as a claim of one.
    async fn wait_for_slots(&self) {
        self.freed.notified().await;
        let several = async {
            while self.turns.lock().free() * 2 < self.share.capacity {
                self.freed.notified().await;
            }
        };
        let _ = tokio::time::timeout(GATHER, several).await;
    }

    /// Returns the time until the next scan: the poll interval, or less if a job is due earlier.
    fn pause(&self, due: Option<Timestamp>) -> Duration {
        let deps = &self.shared.deps;
        let poll = Duration::from_millis(u64::from(deps.settings.poll_ms));
        // Rounded up, because a dispatcher that wakes too early has to wait again.
        let ms = due.map(|due| due.plus_ms(1).ms_since(deps.clock.now()).max(0));
        ms.map_or(poll, |ms| poll.min(Duration::from_millis(ms.unsigned_abs())))
    }
}

/// Releases a lease whose claim failed. The claim may have been committed, and its jobs would stay
/// leased by this process without running. If it is committed after this, the search for lost jobs
/// releases it.
pub(super) async fn release_lease(shared: &WorkerState, lane: Lane, lease: Uuid) {
    let deps = &shared.deps;
    while !shared.stop.is_cancelled() {
        tokio::time::sleep(RETRY_PAUSE).await;
        let released = deps.store.write(async |c| {
            store::jobs::release(c, shared.worker, Some(lease), deps.clock.now()).await
        });
        match released.await {
            Ok(_) => return,
            Err(error) => tracing::warn!(%lane, %error, "cannot release claimed jobs"),
        }
    }
}
