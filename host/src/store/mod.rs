//! Storage: the only module that knows sqlx.
//!
//! One file per noun; a function takes the connection first, so that its
//! caller owns the transaction. Most statements are the same text on both
//! databases and run through `connection::on`.

pub mod apply;
pub mod audit;
pub mod blobs;
pub mod connection;
pub mod deployments;
pub mod documents;
pub mod idempotency;
pub mod indexes;
pub mod jobs;
pub mod memberships;
pub mod mfa;
pub mod nodes;
pub mod operator_tokens;
pub mod query;
pub mod rate_uses;
pub mod search;
pub mod secrets;
pub mod sessions;
pub mod sign_in_failures;
pub mod trials;
pub mod users;
pub mod workspaces;

mod arms;
mod cursor;
mod error;
mod fields;
mod keyset;
mod listed;
mod notices;
mod open;
mod pool;
mod scope;
mod sql;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod wake;

use std::sync::Arc;
use std::time::Duration;

use sqlx::postgres::PgConnectOptions;
use sqlx::{PgConnection, SqliteConnection};
use tokio::sync::{Mutex, OwnedMutexGuard, Semaphore};

use self::connection::{Kind, on};
use self::pool::Pool;
use crate::domain::id::WorkspaceId;

pub use connection::{Connection, Tx};
pub use error::Error;
pub use notices::Notices;
pub use open::Settings;
pub use scope::{CollectionScope, Searched};
pub use wake::Wake;

/// The database and the blob store.
#[derive(Clone, Debug)]
pub struct Store(Arc<Inner>);

/// Which database.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Backend {
    /// Embedded.
    Sqlite,
    /// A server, shared by any number of hosts.
    Postgres,
}

/// What a transaction is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// Reads one snapshot, writes nothing, takes no lock, never loses a race.
    Read,
    /// Serializable, optimistic: reads a snapshot and then writes. May end in
    /// [`Error::RunAgain`]. On SQLite call [`Store::upgrade`] before the first
    /// write.
    Write,
    /// The host's own short writes. SQLite: the write lock from the start;
    /// PostgreSQL: read committed, for statements that lock the rows they need.
    WriteLocked,
}

#[derive(Debug)]
struct Inner {
    databases: Databases,
    blobs: blobs::Blobs,
    timeout: Duration,
    /// One process's calls that lock a workspace queue here first, so that
    /// they wait without holding a connection. Workspaces share by hash.
    gates: Box<[Arc<Semaphore>]>,
    wake: Wake,
}

#[derive(Debug)]
enum Databases {
    Sqlite {
        readers: Pool<SqliteConnection>,
        /// The one connection that writes, and the turn to write: a reader
        /// that becomes a writer holds the turn too. First come, first served.
        writer: Arc<Mutex<SqliteConnection>>,
    },
    Postgres {
        /// Read committed; reads, and the host's own short writes.
        common: Pool<PgConnection>,
        /// Serializable by default, so that even a single statement is.
        serializable: Pool<PgConnection>,
        /// What `ILIKE` needs to know letters beyond ASCII: nothing, or
        /// ` COLLATE "…"`.
        folding: &'static str,
        /// For the one connection that listens.
        options: Box<PgConnectOptions>,
    },
}

impl Store {
    /// Which database it is.
    #[must_use]
    pub fn backend(&self) -> Backend {
        match self.0.databases {
            Databases::Sqlite { .. } => Backend::Sqlite,
            Databases::Postgres { .. } => Backend::Postgres,
        }
    }

    /// What `ILIKE` needs to know letters beyond ASCII.
    pub(crate) fn folding(&self) -> &'static str {
        match self.0.databases {
            Databases::Sqlite { .. } => "",
            Databases::Postgres { folding, .. } => folding,
        }
    }

    /// The blob store.
    #[must_use]
    pub fn blobs(&self) -> &blobs::Blobs {
        &self.0.blobs
    }

    /// To be rung for a lane after a commit that enqueued for it.
    #[must_use]
    pub fn wake(&self) -> &Wake {
        &self.0.wake
    }

    /// Asks the database whether it is there.
    pub async fn ping(&self) -> Result<(), Error> {
        let mut connection = self.reader().await?;
        on!(connection, c => { sqlx::query("SELECT 1").execute(&mut *c).await?; });
        connection.release();
        Ok(())
    }

    /// Refuses new work and closes what is idle.
    pub async fn close(&self) {
        match &self.0.databases {
            Databases::Sqlite { readers, .. } => readers.close().await,
            Databases::Postgres { common, serializable, .. } => {
                common.close().await;
                serializable.close().await;
            }
        }
    }

    /// A connection for single statements that only read.
    pub async fn reader(&self) -> Result<Connection, Error> {
        Ok(Connection(match &self.0.databases {
            Databases::Sqlite { readers, .. } => Kind::Reader(readers.acquire().await?, None),
            Databases::Postgres { common, .. } => Kind::Postgres(common.acquire().await?),
        }))
    }

    /// A connection for single statements that write.
    pub async fn writer(&self) -> Result<Connection, Error> {
        Ok(Connection(match &self.0.databases {
            Databases::Sqlite { .. } => Kind::Writer(self.turn_to_write().await?),
            Databases::Postgres { common, .. } => Kind::Postgres(common.acquire().await?),
        }))
    }

    /// The same; nothing where SQLite's turn to write is somebody else's.
    pub async fn writer_if_free(&self) -> Result<Option<Connection>, Error> {
        match &self.0.databases {
            Databases::Sqlite { writer, .. } => {
                let turn = Arc::clone(writer).try_lock_owned().ok();
                Ok(turn.map(|turn| Connection(Kind::Writer(turn))))
            }
            Databases::Postgres { .. } => self.writer().await.map(Some),
        }
    }

    /// Opens a transaction.
    pub async fn begin(&self, access: Access) -> Result<Tx, Error> {
        let (connection, statement) = match (&self.0.databases, access) {
            (Databases::Sqlite { .. }, Access::Read | Access::Write) => {
                (self.reader().await?, "BEGIN")
            }
            (Databases::Sqlite { .. }, Access::WriteLocked) => {
                (self.writer().await?, "BEGIN IMMEDIATE")
            }
            (Databases::Postgres { .. }, Access::Read) => {
                (self.reader().await?, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            }
            (Databases::Postgres { .. }, Access::Write) => (self.serializable().await?, "BEGIN"),
            (Databases::Postgres { .. }, Access::WriteLocked) => (self.writer().await?, "BEGIN"),
        };
        Tx::begin(connection, statement).await
    }

    /// Opens a serializable transaction that no other call of the workspace
    /// can make lose: others of this kind wait before they start, optimistic
    /// ones before they write.
    pub async fn begin_locked(&self, workspace: WorkspaceId) -> Result<Tx, Error> {
        let Databases::Postgres { .. } = &self.0.databases else {
            return self.begin(Access::WriteLocked).await;
        };
        let gates = &self.0.gates;
        let gate = Arc::clone(&gates[workspace.0.as_u128() as usize % gates.len()]);
        let turn = self.wait(gate.acquire_owned()).await?;
        let turn = turn.map_err(|_| Error::Unavailable(sqlx::Error::PoolClosed))?;
        // Taken before the lock: those who wait for it hold one of these too.
        let connection = self.serializable().await?;
        // The lock is held by a transaction of its own: taken by the
        // serializable one, it would be granted after that one's snapshot.
        let mut gate = self.begin(Access::WriteLocked).await?;
        on!(gate, c => {
            sqlx::query("SELECT pg_advisory_xact_lock($1)")
                .bind(gate_key(workspace))
                .execute(&mut *c)
                .await?;
        });
        Ok(Tx::begin(connection, "BEGIN").await?.behind(gate, turn))
    }

    /// Makes an [`Access::Write`] transaction ready to write: on SQLite it
    /// waits for the turn, elsewhere there is nothing to do.
    pub async fn upgrade(&self, tx: &mut Tx) -> Result<(), Error> {
        if let Kind::Reader(_, turn @ None) = &mut tx.0 {
            *turn = Some(self.turn_to_write().await?);
        }
        Ok(())
    }

    /// A connection on which each statement is a serializable transaction.
    pub(crate) async fn serializable(&self) -> Result<Connection, Error> {
        match &self.0.databases {
            Databases::Sqlite { .. } => self.writer().await,
            Databases::Postgres { serializable, .. } => {
                Ok(Connection(Kind::Postgres(serializable.acquire().await?)))
            }
        }
    }

    async fn turn_to_write(&self) -> Result<OwnedMutexGuard<SqliteConnection>, Error> {
        let Databases::Sqlite { writer, .. } = &self.0.databases else {
            return Err(Error::Unavailable(sqlx::Error::PoolClosed));
        };
        self.wait(Arc::clone(writer).lock_owned()).await
    }

    /// Waits no longer than a call waits for a connection: a server that is
    /// out of reach may never say so.
    pub async fn in_time<T>(
        &self,
        work: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        self.wait(work).await?
    }

    async fn wait<T>(&self, wait: impl Future<Output = T>) -> Result<T, Error> {
        tokio::time::timeout(self.0.timeout, wait)
            .await
            .map_err(|_| Error::Unavailable(sqlx::Error::PoolTimedOut))
    }
}

/// The advisory lock of a workspace.
fn gate_key(workspace: WorkspaceId) -> i64 {
    let (high, low) = workspace.0.as_u64_pair();
    (high ^ low).cast_signed()
}
