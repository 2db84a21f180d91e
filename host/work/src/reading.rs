//! Opens the call's snapshot or transaction at the first read that needs one.

use super::UnitOfWork;
use assurance_store::{Backend, Connection, ConnectionHolder, Error, TransactionAccess, Tx};

/// How a call's reads are isolated so far, with the open transaction or
/// snapshot.
#[derive(Debug)]
pub(super) enum ReadTransactionState {
    /// The call has not read anything yet.
    NotYet,
    /// The call's only statement ran without a transaction; a second one would
    /// see another state.
    Once,
    /// A read snapshot is open, and all reads see the same state. The call's
    /// writes are not part of it; the commit verifies that the documents it
    /// read are unchanged.
    Snapshot(Tx),
    /// A transaction with the call's reads and writes is open, and the database
    /// isolates all of them together.
    In(Tx),
    /// A read was interrupted. The unit of work refuses further reads and the
    /// commit.
    Broken,
}

/// Kind of a read; it decides whether the read needs a transaction to be valid
/// at the commit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ReadKind {
    /// A read of documents by id; the commit can verify that they are unchanged.
    Documents,
    /// A read of blobs by name. On SQLite, a transaction conflicts with every
    /// commit of others since its first read, and a call that reads a blob may
    /// compute for long; there, the commit verifies that the blobs are
    /// unchanged.
    Blobs,
    /// A read of a secret that the host uses for the call. A later change of
    /// the secret does not make the result wrong.
    SecretInUse,
    /// Any other read; only a transaction can ensure that its result is still
    /// valid at the commit.
    Other,
}

/// Database connection for one read, borrowed from the unit of work and
/// returned by [`UnitOfWork::done`]. If it is not returned, the unit is broken.
#[derive(Debug)]
pub(super) enum ReadConnection {
    Alone(Connection),
    Snapshot(Tx),
    In(Tx),
}

impl ReadConnection {
    pub(super) fn connection(&mut self) -> &mut Connection {
        match self {
            Self::Alone(connection) => connection,
            Self::Snapshot(tx) | Self::In(tx) => tx,
        }
    }
}

impl UnitOfWork {
    /// Runs a read of one statement on the unit of work's connection. An error
    /// breaks the unit.
    pub(super) async fn read<T>(
        &mut self,
        what: ReadKind,
        work: impl AsyncFnOnce(&mut Connection) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let mut lease = self.lease(what, 1).await?;
        let found = work(lease.connection()).await?;
        self.done(lease);
        Ok(found)
    }

    /// Runs a read that must not begin a transaction: on the connection that
    /// the call holds, because a call never takes a second one; otherwise on a
    /// separate connection.
    pub(super) async fn read_apart<T>(
        &mut self,
        work: impl AsyncFnOnce(&mut Connection) -> Result<T, Error>,
    ) -> Result<T, Error> {
        match self.held() {
            Some(held) => work(held).await,
            None => self.store.read(work).await,
        }
    }

    /// Borrows the unit of work's connection for a read of this number of
    /// statements. Returns [`Error::RunAgain`] if the read needs a stronger
    /// isolation than the unit has.
    pub(super) async fn lease(
        &mut self,
        what: ReadKind,
        statements: usize,
    ) -> Result<ReadConnection, Error> {
        // A unit that is never committed needs no transaction for its reads.
        let must_answer = self.spec.writes && self.needs_transaction(what) && !self.is_replaying();
        match std::mem::replace(&mut self.reading, ReadTransactionState::Broken) {
            ReadTransactionState::In(tx) => Ok(ReadConnection::In(tx)),
            ReadTransactionState::Snapshot(tx) if !must_answer => Ok(ReadConnection::Snapshot(tx)),
            ReadTransactionState::NotYet => self.first_lease(what, statements).await,
            ReadTransactionState::Snapshot(_) | ReadTransactionState::Once => {
                self.note_isolation_profile(must_answer);
                Err(Error::RunAgain)
            }
            ReadTransactionState::Broken => Err(Error::RunAgain),
        }
    }

    /// Returns whether only a transaction can ensure that the result of a read is
    /// still valid at the commit.
    fn needs_transaction(&self, what: ReadKind) -> bool {
        match what {
            ReadKind::Documents | ReadKind::SecretInUse => false,
            ReadKind::Blobs => self.store.backend() == Backend::Postgres,
            ReadKind::Other => true,
        }
    }

    /// Returns a borrowed connection, whose statements succeeded, to the unit
    /// of work.
    pub(super) fn done(&mut self, lease: ReadConnection) {
        self.reading = match lease {
            ReadConnection::In(tx) => ReadTransactionState::In(tx),
            ReadConnection::Snapshot(tx) => ReadTransactionState::Snapshot(tx),
            ReadConnection::Alone(connection) => {
                connection.release();
                ReadTransactionState::Once
            }
        };
    }

    /// Ends the call's snapshot or transaction before it waits for another
    /// service, because connections are few and the service may be slow. Later
    /// reads begin a new one. Documents read by id are still verified at the
    /// commit. Other reads were valid when the request was sent; this commit
    /// makes the database confirm it.
    ///
    /// If the call has already sent writes to the database, they would be
    /// committed early. In this case the transaction stays open.
    pub(super) async fn release_connection(&mut self) -> Result<(), Error> {
        if self.flushed || matches!(self.reading, ReadTransactionState::Broken) {
            return Ok(());
        }
        match std::mem::replace(&mut self.reading, ReadTransactionState::Broken) {
            ReadTransactionState::In(tx) | ReadTransactionState::Snapshot(tx) => {
                tx.commit().await?;
            }
            ReadTransactionState::NotYet
            | ReadTransactionState::Once
            | ReadTransactionState::Broken => {}
        }
        self.turn.give_back();
        self.reading = ReadTransactionState::NotYet;
        self.released_connection = true;
        Ok(())
    }

    /// Begins the transaction that this call's reads and writes belong to.
    pub(super) async fn begin(&self) -> Result<Tx, Error> {
        let profile = self.spec.isolation_profile.as_ref();
        if self.spec.locked || profile.is_some_and(|profile| profile.is_contended()) {
            let tx = self.store.begin_locked(self.holder()).await?;
            self.turn.take();
            return Ok(tx);
        }
        self.store.begin_held(TransactionAccess::Write, self.holder()).await
    }

    /// Returns the area, workspace and kind of call (request or job) that a
    /// held database connection counts for.
    pub(super) fn holder(&self) -> ConnectionHolder {
        ConnectionHolder {
            area: self.spec.area.area.clone(),
            workspace: self.spec.call.workspace,
            in_job: self.spec.in_job,
        }
    }

    /// Returns the connection that the call already holds, for a read that must
    /// not begin a transaction; `None` if it holds none. A call never takes a
    /// second connection.
    pub(super) fn held(&mut self) -> Option<&mut Connection> {
        match &mut self.reading {
            ReadTransactionState::In(tx) | ReadTransactionState::Snapshot(tx) => Some(tx),
            ReadTransactionState::NotYet
            | ReadTransactionState::Once
            | ReadTransactionState::Broken => None,
        }
    }

    /// Records that the call read more than the isolation profile of its route
    /// allows; `asked` is true if the read needs a transaction.
    pub(super) fn note_isolation_profile(&self, asked: bool) {
        if let Some(profile) = &self.spec.isolation_profile {
            profile.note_second_read();
            if asked {
                profile.note_query();
            }
        }
    }

    async fn first_lease(
        &self,
        what: ReadKind,
        statements: usize,
    ) -> Result<ReadConnection, Error> {
        let profile = self.spec.isolation_profile.as_ref().filter(|_| !self.spec.locked);
        let light = match profile {
            _ if !self.spec.writes || self.is_replaying() => true,
            Some(profile) => !self.needs_transaction(what) && !profile.needs_transaction(),
            None => false,
        };
        if !light {
            return Ok(ReadConnection::In(self.begin().await?));
        }
        if statements == 1 && profile.is_some_and(|profile| !profile.needs_snapshot()) {
            return Ok(ReadConnection::Alone(self.store.reader().await?));
        }
        let tx = self.store.begin_held(TransactionAccess::Read, self.holder()).await?;
        Ok(ReadConnection::Snapshot(tx))
    }
}
