//! The end of a call: everything is written, or nothing.

use std::collections::BTreeSet;

use super::reading::Reading;
use super::{End, UnitOfWork};
use crate::domain::job::{JobEnd, Lane};
use crate::store::apply::{Effects, apply};
use crate::store::idempotency::{self, IdempotentReply};
use crate::store::{Access, Backend, Error, Tx, indexes, jobs};

impl UnitOfWork {
    /// Keeps everything, or nothing. Opens no write transaction where there is
    /// nothing to keep.
    ///
    /// [`Error::KeyTaken`] goes before every other conflict: where the reply's
    /// key was taken meanwhile, the same request has been answered already.
    pub async fn commit(mut self, end: End) -> Result<(), Error> {
        let reading = std::mem::replace(&mut self.reading, Reading::Broken);
        if matches!(reading, Reading::Broken) {
            return Err(Error::RunAgain);
        }
        if !self.wrote() && end.reply.is_none() && end.job.is_none() {
            return self.end_reading(reading).await;
        }
        let mut effects = self.effects();
        effects.reply.clone_from(&end.reply);
        let lanes: BTreeSet<Lane> = effects.jobs.iter().map(|job| job.lane).collect();
        let kept = match reading {
            Reading::In(tx) => self.keep_in(tx, effects, end.job.as_ref()).await,
            _ => self.keep(effects, end.job.as_ref()).await,
        };
        match kept {
            Ok(()) => {
                lanes.into_iter().for_each(|lane| self.store.wake().ring(lane));
                Ok(())
            }
            Err(error) => Err(self.explain(error, end.reply.as_ref()).await),
        }
    }

    /// Sends the documents that wait to be written to the database, so that a
    /// query finds them.
    pub(super) async fn flush(&mut self) -> Result<(), Error> {
        let mut tx = match std::mem::replace(&mut self.reading, Reading::Broken) {
            Reading::In(tx) => tx,
            Reading::NotYet => self.begin().await?,
            Reading::Once | Reading::Broken => return Err(Error::RunAgain),
        };
        self.store.upgrade(&mut tx).await?;
        let call = &self.spec.call;
        let mut effects = Effects::new(call.workspace, &self.spec.area.area, call.now);
        self.documents.take(&mut effects);
        self.flushed = true;
        let gated = tx.is_gated();
        if let Err(error) = apply(&mut tx, effects, gated).await {
            drop(tx);
            return Err(self.explain(error, None).await);
        }
        self.reading = Reading::In(tx);
        Ok(())
    }

    fn effects(&mut self) -> Effects {
        let call = &self.spec.call;
        let mut effects = Effects::new(call.workspace, &self.spec.area.area, call.now);
        self.documents.take(&mut effects);
        effects.jobs = std::mem::take(&mut self.jobs);
        let secrets = std::mem::take(&mut self.secrets).into_iter();
        effects.secrets =
            secrets.filter(|(_, secret)| secret.changed).map(|(n, s)| (n, s.now)).collect();
        let blobs = std::mem::take(&mut self.blobs).into_iter();
        effects.blobs = blobs.filter(|(_, blob)| blob.changed).map(|(n, b)| (n, b.now)).collect();
        effects
    }

    /// A call that read nothing: on PostgreSQL one statement is enough, which
    /// is a transaction by itself.
    async fn keep(&self, effects: Effects, job: Option<&JobEnd>) -> Result<(), Error> {
        if self.spec.locked {
            let tx = self.store.begin_locked(self.spec.call.workspace).await?;
            return self.keep_in(tx, effects, job).await;
        }
        if job.is_none() && self.store.backend() == Backend::Postgres {
            let mut connection = self.store.serializable().await?;
            apply(&mut connection, effects, false).await?;
            connection.release();
            return Ok(());
        }
        let access = match self.store.backend() {
            Backend::Sqlite => Access::WriteLocked,
            Backend::Postgres => Access::Write,
        };
        let tx = self.store.begin(access).await?;
        self.keep_in(tx, effects, job).await
    }

    async fn keep_in(
        &self,
        mut tx: Tx,
        effects: Effects,
        job: Option<&JobEnd>,
    ) -> Result<(), Error> {
        self.store.upgrade(&mut tx).await?;
        let gated = tx.is_gated();
        apply(&mut tx, effects, gated).await?;
        if let Some(end) = job {
            jobs::end(&mut tx, end, self.spec.call.now).await?;
        }
        tx.commit().await
    }

    /// A call that wrote nothing. What an optimistic transaction read is only
    /// certain once PostgreSQL has let it commit.
    async fn end_reading(&self, reading: Reading) -> Result<(), Error> {
        let Reading::In(tx) = reading else { return Ok(()) };
        if self.spec.writes && tx.backend() == Backend::Postgres {
            return tx.commit().await;
        }
        // Nobody waits for the end of a snapshot.
        tokio::spawn(tx.commit());
        Ok(())
    }

    /// What a failure to write means for the caller.
    async fn explain(&self, error: Error, reply: Option<&IdempotentReply>) -> Error {
        let own = self.spec.area.collections.values().filter(|scope| scope.own);
        let error = indexes::explain(error, own);
        let Some(reply) = reply.filter(|_| error.lost_race()) else { return error };
        match self.is_kept(reply).await {
            Ok(true) => Error::KeyTaken,
            _ => error,
        }
    }

    async fn is_kept(&self, reply: &IdempotentReply) -> Result<bool, Error> {
        let (workspace, user) = (reply.workspace, reply.user);
        let now = self.spec.call.now;
        let kept =
            idempotency::find(&self.store, workspace, user, &reply.operation, &reply.key, now);
        Ok(kept.await?.is_some())
    }
}
