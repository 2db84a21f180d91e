//! The end of a call: all effects are committed, or none.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::reading::ReadTransactionState;
use super::{CommitAdditions, UnitOfWork, UnitOfWorkSpec};
use assurance_core::domain::job::Lane;
use assurance_core::domain::time::Timestamp;
use assurance_store::apply::{AutocommitOrTransaction, Effects, apply};
use assurance_store::idempotency::{self, StoredReply};
use assurance_store::search::SearchPairsToInsert;
use assurance_store::{Backend, Error, TransactionAccess, Tx, indexes, jobs, memberships};

/// Pauses between attempts to commit while another call holds the workspace's write gate.
const GATE_PAUSES: [Duration; 4] = [
    Duration::from_millis(2),
    Duration::from_millis(5),
    Duration::from_millis(10),
    Duration::from_millis(20),
];

impl UnitOfWork {
    /// Commits all effects of the call, or none. Opens no write transaction if there are no
    /// effects.
    ///
    /// [`Error::KeyTaken`] takes precedence over every other conflict: if the idempotency key is
    /// taken meanwhile, the same request already has a response.
    pub async fn commit(mut self, end: CommitAdditions) -> Result<(), Error> {
        self.check_queues().await?;
        let reading = std::mem::replace(&mut self.reading, ReadTransactionState::Broken);
        if matches!(reading, ReadTransactionState::Broken) {
            return Err(Error::RunAgain);
        }
        if !self.wrote() && end.reply.is_none() && end.jobs.is_empty() {
            return self.end_reading(reading).await;
        }
        let checked = self.released_connection || !matches!(reading, ReadTransactionState::In(_));
        let mut effects = self.effects(checked);
        let response = end.reply.as_ref().and_then(|reply| reply.body.as_ref());
        let bytes = self.check_quota(&effects)? + response.map_or(0, |body| body.len() as u64);
        self.note_effects(&effects);
        effects.reply.clone_from(&end.reply);
        effects.job_ends = end.jobs;
        let mut enqueued = BTreeMap::<String, u64>::new();
        for job in &effects.jobs {
            *enqueued.entry(job.area.clone()).or_default() += 1;
        }
        let mut announced: Vec<(Lane, Timestamp)> =
            effects.jobs.iter().map(|job| (job.lane, job.available_at)).collect();
        announced.extend(self.job_changes.iter().map(|change| (change.lane, effects.now)));
        let requested: Vec<(Lane, Timestamp, String)> = effects
            .deliveries
            .iter()
            .map(|one| (one.job.lane, one.job.available_at, one.job.area.clone()))
            .collect();
        let secrets: Vec<_> =
            effects.secrets.iter().map(|(name, to)| (name.clone(), to.is_some())).collect();
        let kept = match reading {
            ReadTransactionState::In(tx) => {
                let kept = Box::pin(self.keep_in(tx, effects)).await;
                self.remember(&kept);
                kept
            }
            reading => {
                end_snapshot(reading);
                Box::pin(self.keep(effects)).await
            }
        };
        match kept {
            Ok(delivered) => {
                if delivered > 0 {
                    announced.extend(requested.iter().map(|(lane, due, _)| (*lane, *due)));
                    let areas: BTreeSet<_> = requested.into_iter().map(|(.., area)| area).collect();
                    for area in areas {
                        *enqueued.entry(area).or_default() += delivered;
                    }
                }
                self.note_stored(bytes);
                let (workspace, most) =
                    (self.spec.call.workspace, self.spec.limits.max_waiting_jobs);
                for (area, jobs) in enqueued {
                    self.store.note_enqueued(workspace, &area, jobs, most);
                }
                announced.into_iter().for_each(|(lane, due)| self.store.wake().wake(lane, due));
                self.log_security_events(&secrets);
                Ok(())
            }
            Err(error) => Err(Box::pin(self.explain(error, end.reply.as_ref())).await),
        }
    }

    /// Sends the call's pending documents to the database before the commit, so that a query finds
    /// them.
    pub(super) async fn flush(&mut self) -> Result<(), Error> {
        let (mut tx, effects) = self.prepare_flush().await?;
        let within = within(&tx);
        if let Err(error) = apply(&mut tx, effects, within).await {
            drop(tx);
            return Err(Box::pin(self.explain(error, None)).await);
        }
        self.reading = ReadTransactionState::In(tx);
        Ok(())
    }

    /// Like [`UnitOfWork::flush`], but with a savepoint: a violated unique
    /// index undoes only this flush. The call continues and the guest receives
    /// [`Error::UniqueConflict`].
    pub(super) async fn flush_with_savepoint(&mut self) -> Result<(), Error> {
        let (mut tx, effects) = self.prepare_flush().await?;
        tx.savepoint().await?;
        let within = within(&tx);
        let Err(error) = apply(&mut tx, effects, within).await else {
            tx.release_savepoint().await?;
            self.reading = ReadTransactionState::In(tx);
            return Ok(());
        };
        let error = Box::pin(self.explain(error, None)).await;
        if matches!(error, Error::UniqueConflict { .. }) {
            tx.roll_back_to_savepoint().await?;
            self.reading = ReadTransactionState::In(tx);
        }
        Err(error)
    }

    async fn prepare_flush(&mut self) -> Result<(Tx, Effects), Error> {
        let mut tx = match std::mem::replace(&mut self.reading, ReadTransactionState::Broken) {
            ReadTransactionState::In(tx) => tx,
            ReadTransactionState::NotYet => self.begin().await?,
            ReadTransactionState::Once | ReadTransactionState::Snapshot(_) => {
                self.note_isolation_profile(true);
                return Err(Error::RunAgain);
            }
            ReadTransactionState::Broken => return Err(Error::RunAgain),
        };
        self.store.upgrade(&mut tx).await?;
        self.turn.take();
        let call = &self.spec.call;
        let mut effects = Effects::new(call.workspace, &self.spec.area.area, call.now);
        self.documents.take(&mut effects);
        let bytes = self.check_quota(&effects)?;
        self.note_stored(bytes);
        self.note_effects(&effects);
        self.pairs(&effects).keep(&self.store).await?;
        self.flushed = true;
        Ok((tx, effects))
    }

    /// Returns the number of bytes that the effects store. If the storage quota is used up,
    /// existing data may be changed and deleted, but new data is refused.
    fn check_quota(&self, effects: &Effects) -> Result<u64, Error> {
        let (inserts, updates) = (effects.inserts.iter(), effects.updates.iter());
        let blobs = effects.blobs.iter().filter_map(|(_, blob)| Some(blob.as_ref()?.size));
        let new = inserts.map(|insert| insert.body.len() as u64).chain(blobs).sum::<u64>();
        if new > 0 {
            let (workspace, quota) = (self.spec.call.workspace, self.spec.limits.quota);
            self.store.check_quota(workspace, &self.spec.area.area, quota)?;
        }
        Ok(new + updates.map(|update| update.body.len() as u64).sum::<u64>())
    }

    /// Refuses a request that adds jobs to an area's full queue. An event adds none if no document
    /// requests it. A job is not refused here: it ends, and so makes room, and its area's own limit
    /// applies when it enqueues.
    async fn check_queues(&mut self) -> Result<(), Error> {
        if self.spec.in_job {
            return Ok(());
        }
        if let Some(job) = self.jobs.iter().find(|job| self.has_full_queue(&job.area)) {
            return Err(Error::QueueFull(job.area.clone()));
        }
        let deliveries = std::mem::take(&mut self.deliveries);
        let mut known = BTreeSet::new();
        for one in &deliveries {
            if self.has_full_queue(&one.job.area) && known.insert((&one.requests, &one.event)) {
                let reading = self.read_apart(async |c| jobs::is_requested(c, one).await);
                if Box::pin(reading).await? {
                    return Err(Error::QueueFull(one.job.area.clone()));
                }
            }
        }
        drop(known);
        self.deliveries = deliveries;
        Ok(())
    }

    /// Returns whether as many of the area's jobs as permitted wait in the call's workspace, as of
    /// the last count.
    pub(super) fn has_full_queue(&self, area: &str) -> bool {
        let (workspace, most) = (self.spec.call.workspace, self.spec.limits.max_waiting_jobs);
        self.store.has_full_queue(workspace, area, most)
    }

    fn note_stored(&self, bytes: u64) {
        if bytes > 0 {
            self.store.note_stored(self.spec.call.workspace, bytes, self.spec.limits.quota);
        }
    }

    /// Takes all pending writes out of the unit; with `checked`, also what was
    /// read of documents and blobs, which must be unchanged at the commit.
    pub(super) fn effects(&mut self, checked: bool) -> Effects {
        let call = &self.spec.call;
        let mut effects = Effects::new(call.workspace, &self.spec.area.area, call.now);
        if checked {
            self.documents.checks(&mut effects);
            effects.seen_blobs = std::mem::take(&mut self.seen_blobs);
        }
        self.documents.take(&mut effects);
        effects.jobs = std::mem::take(&mut self.jobs);
        effects.deliveries = std::mem::take(&mut self.deliveries);
        let secrets = std::mem::take(&mut self.secrets).into_iter();
        effects.secrets =
            secrets.filter(|(_, secret)| secret.changed).map(|(n, s)| (n, s.now)).collect();
        let blobs = std::mem::take(&mut self.blobs).into_iter();
        effects.blobs = blobs.filter(|(_, blob)| blob.changed).map(|(n, b)| (n, b.now)).collect();
        effects
    }

    /// Commits a call without a transaction. The call has read only documents by id and, on SQLite,
    /// blobs by name, which the commit verifies to be unchanged. While another call holds the
    /// workspace's gate, the commit is tried a few times; then the call queues for the gate itself.
    /// Returns the number of event deliveries, requested by workspaces, that were enqueued.
    async fn keep(&self, effects: Effects) -> Result<u64, Error> {
        if self.store.backend() == Backend::Sqlite {
            if !self.changes_more() {
                return self.store.commit_in_group(effects).await;
            }
            let tx = self.store.begin(TransactionAccess::WriteLocked).await?;
            return self.keep_in(tx, effects).await;
        }
        self.pairs(&effects).keep(&self.store).await?;
        if !self.spec.locked {
            let open = self.store.open_gate(self.spec.call.workspace).await?;
            for pause in GATE_PAUSES {
                match self.keep_once(effects.clone()).await {
                    Err(Error::GateBusy) => tokio::time::sleep(pause).await,
                    kept => return kept,
                }
            }
            drop(open);
        }
        let tx = self.store.begin_locked(self.holder()).await?;
        self.write_in(tx, effects).await
    }

    /// Commits a call in one attempt. Most calls need only one statement, which is a transaction by
    /// itself. Returns the number of requested event deliveries.
    async fn keep_once(&self, effects: Effects) -> Result<u64, Error> {
        if self.changes_more() {
            let tx = self.store.begin(TransactionAccess::Write).await?;
            return self.write_in(tx, effects).await;
        }
        self.store.commit_in_group(effects).await
    }

    /// Commits a call in the transaction that it has read from. Returns the number of requested
    /// event deliveries.
    async fn keep_in(&self, tx: Tx, effects: Effects) -> Result<u64, Error> {
        let pairs = self.pairs(&effects);
        // The two writes run concurrently, because each takes a large part of
        // an import's time.
        let keeping = pairs.keep(&self.store);
        let (tx, kept) = tokio::join!(self.write_effects(tx, effects), keeping);
        kept?;
        let (tx, delivered) = tx?;
        self.finish(tx).await?;
        Ok(delivered)
    }

    async fn write_in(&self, tx: Tx, effects: Effects) -> Result<u64, Error> {
        let (tx, delivered) = self.write_effects(tx, effects).await?;
        self.finish(tx).await?;
        Ok(delivered)
    }

    async fn write_effects(&self, mut tx: Tx, effects: Effects) -> Result<(Tx, u64), Error> {
        self.store.upgrade(&mut tx).await?;
        let within = within(&tx);
        let delivered = apply(&mut tx, effects, within).await?;
        Ok((tx, delivered))
    }

    async fn finish(&self, mut tx: Tx) -> Result<(), Error> {
        self.change_more(&mut tx).await?;
        tx.commit().await
    }

    /// Returns the pairs of key and text that the search table stores for the documents to be
    /// written.
    fn pairs(&self, effects: &Effects) -> SearchPairsToInsert {
        let own = self.spec.area.collections.values().filter(|scope| scope.own);
        SearchPairsToInsert::of(&self.store, own, effects)
    }

    /// Writes new members and changes of jobs in the call's transaction, each by a separate
    /// statement; few calls have any.
    async fn change_more(&self, tx: &mut Tx) -> Result<(), Error> {
        let call = &self.spec.call;
        for (user, role) in &self.new_members {
            memberships::add(tx, call.workspace, *user, *role, call.now).await?;
        }
        for change in &self.job_changes {
            jobs::change(tx, call.workspace, change, call.now).await?;
        }
        Ok(())
    }

    /// Ends the reads of a call that wrote nothing. Reads of a serializable transaction are valid
    /// only if PostgreSQL lets it commit.
    async fn end_reading(&self, reading: ReadTransactionState) -> Result<(), Error> {
        match reading {
            ReadTransactionState::In(tx) if tx.backend() == Backend::Postgres => tx.commit().await,
            reading => {
                end_snapshot(reading);
                Ok(())
            }
        }
    }

    fn remember<T>(&self, kept: &Result<T, Error>) {
        if let Some(isolation_profile) = &self.spec.isolation_profile {
            isolation_profile.note_end(matches!(kept, Err(Error::RunAgain)));
        }
    }

    /// Converts an error of writing a call's effects into the error that the caller receives.
    async fn explain(&self, error: Error, reply: Option<&StoredReply>) -> Error {
        let own = self.spec.area.collections.values().filter(|scope| scope.own);
        let error = match indexes::explain(error, own) {
            Error::GateBusy => Error::RunAgain,
            error => error,
        };
        let Some(reply) = reply.filter(|_| error.is_write_conflict()) else { return error };
        match self.is_kept(reply).await {
            Ok(true) => Error::KeyTaken,
            _ => error,
        }
    }

    async fn is_kept(&self, reply: &StoredReply) -> Result<bool, Error> {
        let (workspace, user) = (reply.workspace, reply.user);
        let now = self.spec.call.now;
        let kept =
            idempotency::find(&self.store, workspace, user, &reply.operation, &reply.key, now);
        Ok(kept.await?.is_some())
    }
}

fn within(tx: &Tx) -> AutocommitOrTransaction {
    AutocommitOrTransaction::Transaction { gated: tx.is_gated() }
}

impl UnitOfWork {
    /// Logs changes of secrets and members for operators. `secrets` has only names of secrets, and
    /// whether each is stored or deleted.
    fn log_security_events(&self, secrets: &[(String, bool)]) {
        let UnitOfWorkSpec { area, call, actor, .. } = &self.spec;
        let (area, workspace) = (&area.area, call.workspace);
        let by = actor.map(|actor| actor.to_string());
        for (name, stored) in secrets {
            let event = if *stored { "secret_stored" } else { "secret_deleted" };
            tracing::info!(
                target: "security",
                event,
                area.name = area,
                workspace.id = %workspace,
                user.id = by,
                secret = name,
                "secret changed"
            );
        }
        for (user, role) in &self.new_members {
            tracing::info!(
                target: "security",
                event = "member_added",
                area.name = area,
                workspace.id = %workspace,
                user.id = by,
                member.id = %user,
                %role,
                "member added"
            );
        }
    }
}

/// Ends the transaction of a call's reads in the background.
fn end_snapshot(reading: ReadTransactionState) {
    if let ReadTransactionState::Snapshot(tx) | ReadTransactionState::In(tx) = reading {
        tokio::spawn(tx.commit());
    }
}
