//! Opens the databases and migrates their schemas.

use std::fs::File;
use std::str::FromStr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sqlx::migrate::MigrateError;
use sqlx::postgres::PgConnectOptions;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection as _, PgConnection, SqliteConnection};
use tokio_util::task::AbortOnDropHandle;

use super::blobs::{BlobStoreLocation, Blobs};
use super::connection_shares::ConnectionShares;
use super::error::{self, Error, database_code};
use super::first_connection;
use super::gates::WorkspaceGates;
use super::group_commit::{self, GroupCommit};
use super::jobs::WaitingJobCounts;
use super::pool::{self, Pool, PoolLimits};
use super::stored_bytes::StoredBytesByWorkspace;
use super::{Backend, ConnectionPools, Inner, LaneWaker, Store, WriteFailureTracker};
use super::{checkpoint, documents_move, migrations};

/// Settings for opening the database and the blob store.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Database URL: `sqlite:PATH` or `postgres://USER@HOST/NAME`.
    pub url: String,
    /// Maximum number of database connections of this process.
    pub max_connections: u32,
    /// Maximum time that a call waits for a connection or for the write lock,
    /// in milliseconds.
    pub acquire_timeout_ms: u64,
    /// Time limits that PostgreSQL applies to this process's sessions.
    pub timeouts: PostgresSessionTimeouts,
    /// Folder or bucket of the blob store.
    pub blobs: BlobStoreLocation,
}

/// Limits of PostgreSQL on this process's sessions; 0 means no limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PostgresSessionTimeouts {
    /// Maximum time of one SQL statement, in milliseconds. This process gives a
    /// statement up 5 s later.
    pub statement_ms: u32,
    /// Maximum time that a statement waits for a lock, in milliseconds.
    pub lock_ms: u32,
    /// Maximum idle time inside a transaction, in milliseconds.
    pub idle_in_transaction_ms: u32,
    /// Time after which the server ends a session whose client does not
    /// respond, in milliseconds.
    pub unreachable_ms: u32,
}

impl Default for PostgresSessionTimeouts {
    fn default() -> Self {
        Self {
            statement_ms: 30_000,
            lock_ms: 2_000,
            idle_in_transaction_ms: 60_000,
            unreachable_ms: 20_000,
        }
    }
}

/// Time beyond PostgreSQL's own limit of a statement in which its response
/// arrives.
const RESPONSE_TIME: Duration = Duration::from_secs(5);
/// Age after which a PostgreSQL connection is closed when it is returned to the
/// pool.
const LIFETIME: Duration = Duration::from_secs(30 * 60);
/// Maximum time in milliseconds that a migration's statement waits for a lock.
/// All other work on the table waits behind it.
const MIGRATION_LOCK_MS: u32 = 1_000;
/// Total time for which a migration that cannot get a lock is retried.
const MIGRATION_PATIENCE: Duration = Duration::from_secs(300);
/// First and longest pause between two attempts of a migration; the pause
/// doubles each time.
const MIGRATION_PAUSES: [Duration; 2] = [Duration::from_millis(250), Duration::from_secs(5)];
/// Maximum number of prepared statements that one PostgreSQL connection caches.
const STATEMENTS: usize = 512;
/// Maximum number of prepared statements that one SQLite connection caches.
/// Each takes about 10 KiB of this process's memory; one for 16 calls, more.
const SQLITE_STATEMENTS: usize = 256;
/// Maximum time that SQLite waits for another process's write.
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// Page cache of SQLite's writer: 16 MiB, because a negative number is in KiB.
/// A transaction larger than this cache is written twice.
const WRITER_CACHE: &str = "-16384";
/// Page cache of one SQLite reader: 1 MiB. It is small, because there are many
/// readers and the kernel caches the file too.
const READER_CACHE: &str = "-1024";

/// PostgreSQL session settings.
///
/// All queries have an index, but a plan made while a table was small reads the
/// whole table and is reused until the statistics change; in a serializable
/// transaction, such a scan conflicts with every write. So sequential scans are
/// off. Statements are too short for JIT compilation.
///
/// Notices are not useful to operators: a missing index to drop, or nothing to
/// roll back after a write conflict. PostgreSQL's own log has them.
const SESSION: [(&str, &str); 3] =
    [("enable_seqscan", "off"), ("jit", "off"), ("client_min_messages", "error")];

impl Store {
    /// Connects to the database and migrates its schema; safe if several
    /// processes start at once. Waits up to a minute for a PostgreSQL server
    /// that does not accept connections yet.
    pub async fn open(settings: &Settings) -> Result<Self, Error> {
        Self::open_with(settings, MigrationPolicy::All).await
    }

    /// Connects to the database and creates the schema if it is empty. Does not
    /// migrate the database of an older release, because that release may be
    /// serving it. Does not wait for a server that accepts no connections.
    ///
    /// # Errors
    /// [`Error::OlderSchema`] for the database of an older release.
    pub async fn open_without_upgrade(settings: &Settings) -> Result<Self, Error> {
        Self::open_with(settings, MigrationPolicy::Empty).await
    }

    /// Checks the form of a database URL as opening the database does, without
    /// connecting. The scheme must be SQLite's or PostgreSQL's.
    ///
    /// # Errors
    /// The driver's reason, which names no user and no password.
    pub fn check_url(url: &str) -> Result<(), String> {
        let parsed = if url.starts_with("sqlite:") {
            SqliteConnectOptions::from_str(url).map(drop)
        } else {
            PgConnectOptions::from_str(url).map(drop)
        };
        parsed.map_err(|error| innermost_cause(&error))
    }

    async fn open_with(settings: &Settings, scope: MigrationPolicy) -> Result<Self, Error> {
        let timeout = Duration::from_millis(settings.acquire_timeout_ms);
        let databases = if settings.url.starts_with("sqlite:") {
            open_sqlite(settings, timeout, scope).await?
        } else if settings.url.starts_with("postgres://")
            || settings.url.starts_with("postgresql://")
        {
            open_postgres(settings, timeout, scope).await?
        } else {
            return Err(Error::Url);
        };
        let blobs = Blobs::open(&settings.blobs)?;
        pool::describe_metrics();
        checkpoint::describe_metrics();
        group_commit::describe_metrics();
        error::describe_metrics();
        let (reading, writing) = shares(&databases, settings.max_connections);
        Ok(Self(Arc::new(Inner {
            databases,
            blobs,
            timeout,
            gates: WorkspaceGates::default(),
            group_commit: GroupCommit::new(),
            reading,
            writing,
            wake: LaneWaker::default(),
            outcomes: WriteFailureTracker::default(),
            waiting: WaitingJobCounts::default(),
            stored_bytes: StoredBytesByWorkspace::default(),
        })))
    }
}

fn innermost_cause(error: &(dyn std::error::Error + 'static)) -> String {
    error.source().map_or_else(|| error.to_string(), innermost_cause)
}

/// Creates the permits to hold connections while an area's code runs: first
/// those for reading connections, then those for writing ones.
fn shares(databases: &ConnectionPools, connections: u32) -> (ConnectionShares, ConnectionShares) {
    match databases {
        // The second are for calls that wait for the writer.
        ConnectionPools::Sqlite { .. } => {
            let readers = connections.saturating_sub(1);
            (ConnectionShares::of(readers), ConnectionShares::of(readers))
        }
        ConnectionPools::Postgres { .. } => {
            let serializable = connections.div_ceil(2);
            (ConnectionShares::of(connections - serializable), ConnectionShares::of(serializable))
        }
    }
}

/// Which databases are migrated when they are opened.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MigrationPolicy {
    /// Every database is migrated.
    All,
    /// Only an empty database is migrated; that of an older release is refused.
    Empty,
}

async fn open_sqlite(
    settings: &Settings,
    timeout: Duration,
    scope: MigrationPolicy,
) -> Result<ConnectionPools, Error> {
    let options = SqliteConnectOptions::from_str(&settings.url)
        .map_err(|_| Error::Url)?
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .busy_timeout(BUSY_TIMEOUT)
        .statement_cache_capacity(SQLITE_STATEMENTS)
        .pragma("temp_store", "memory")
        .pragma("wal_autocheckpoint", checkpoint::WRITER_PAGES)
        .pragma("cache_size", WRITER_CACHE)
        .disable_statement_logging();
    let lock = lock_file(&options).await.map_err(|error| Error::Unavailable(error.into()))?;
    let mut first = SqliteConnection::connect_with(&options).await?;
    if scope == MigrationPolicy::Empty {
        refuse_older(Backend::Sqlite, applied_sqlite(&mut first).await?)?;
    }
    migrations::of(Backend::Sqlite).run(&mut first).await.map_err(Error::Migration)?;
    documents_move::sqlite::run(&mut first).await?;
    let limits = |connections| PoolLimits { connections, timeout, lifetime: None, statement: None };
    let writer: Pool<SqliteConnection> = Pool::new(options.clone(), limits(1));
    // Opened before the first connection is closed, so that the database stays
    // open.
    writer.acquire().await?.release();
    let _ = first.close().await;
    drop(lock);
    let options = options.pragma("cache_size", READER_CACHE);
    let readers = Pool::new(options, limits(settings.max_connections.saturating_sub(1)));
    let checkpoints =
        AbortOnDropHandle::new(tokio::spawn(checkpoint::run(readers.clone(), writer.clone())));
    Ok(ConnectionPools::Sqlite { readers, writer, _checkpoints: checkpoints })
}

/// Locks the file next to the database that a process holds while it opens and
/// migrates it. SQLite does not wait for another process that turns a new file
/// into one with a write-ahead log, and sqlx does not lock SQLite during
/// migrations.
async fn lock_file(options: &SqliteConnectOptions) -> std::io::Result<File> {
    let path = options.get_filename().with_extension("migrating");
    let locked = tokio::task::spawn_blocking(move || {
        let file = File::create(path)?;
        file.lock()?;
        Ok(file)
    });
    locked.await?
}

/// Query of the newest applied migration; NULL if there is none.
const NEWEST_APPLIED: &str = "SELECT max(version) FROM _sqlx_migrations";

async fn applied_sqlite(connection: &mut SqliteConnection) -> Result<Option<i64>, Error> {
    let table = "SELECT count(*) FROM sqlite_master WHERE name = '_sqlx_migrations'";
    let tables: i64 = sqlx::query_scalar(table).fetch_one(&mut *connection).await?;
    if tables == 0 {
        return Ok(None);
    }
    Ok(sqlx::query_scalar(NEWEST_APPLIED).fetch_one(connection).await?)
}

async fn applied_postgres(connection: &mut PgConnection) -> Result<Option<i64>, Error> {
    let table = "SELECT to_regclass('_sqlx_migrations') IS NOT NULL";
    let has_table: bool = sqlx::query_scalar(table).fetch_one(&mut *connection).await?;
    if !has_table {
        return Ok(None);
    }
    Ok(sqlx::query_scalar(NEWEST_APPLIED).fetch_one(connection).await?)
}

/// Returns an error if the newest applied migration of a database is older than
/// this release's.
fn refuse_older(backend: Backend, applied: Option<i64>) -> Result<(), Error> {
    let needed = migrations::newest(backend);
    match applied {
        Some(applied) if applied < needed => Err(Error::OlderSchema { needed, applied }),
        _ => Ok(()),
    }
}

async fn open_postgres(
    settings: &Settings,
    timeout: Duration,
    scope: MigrationPolicy,
) -> Result<ConnectionPools, Error> {
    let options = PgConnectOptions::from_str(&settings.url)
        .map_err(|_| Error::Url)?
        .application_name("assurance")
        .options(SESSION)
        .options(settings.timeouts.session())
        .statement_cache_capacity(STATEMENTS)
        .disable_statement_logging();
    let attempt_timeout = timeout.max(Duration::from_secs(5));
    let mut first = match scope {
        MigrationPolicy::All => {
            first_connection::connect_when_ready(&options, attempt_timeout).await?
        }
        MigrationPolicy::Empty => first_connection::connect(&options, attempt_timeout).await?,
    };
    if scope == MigrationPolicy::Empty {
        refuse_older(Backend::Postgres, applied_postgres(&mut first).await?)?;
    }
    migrate_postgres(&mut first).await?;
    let folding = find_folding(&mut first).await?;
    // An error while closing needs no handling.
    let _ = first.close().await;
    let strict = options.clone().options([("default_transaction_isolation", "serializable")]);
    check_settings(&strict).await?;
    let serializable = settings.max_connections.div_ceil(2);
    let common = settings.max_connections.saturating_sub(serializable);
    let statement = settings.timeouts.with_response();
    let limits =
        |connections| PoolLimits { connections, timeout, lifetime: Some(LIFETIME), statement };
    Ok(ConnectionPools::Postgres {
        common: Pool::new(options.clone(), limits(common)),
        serializable: Pool::new(strict, limits(serializable)),
        folding,
        options: Box::new(options),
    })
}

/// Checks that PostgreSQL receives the settings that this process gives a
/// connection; a connection pooler in between may drop them.
async fn check_settings(strict: &PgConnectOptions) -> Result<(), Error> {
    let mut connection = PgConnection::connect_with(strict).await?;
    let isolation: String = sqlx::query_scalar("SHOW default_transaction_isolation")
        .persistent(false)
        .fetch_one(&mut connection)
        .await?;
    // An error while closing needs no handling.
    let _ = connection.close().await;
    if isolation == "serializable" { Ok(()) } else { Err(Error::SettingsDropped) }
}

impl PostgresSessionTimeouts {
    /// Returns the maximum time of a statement with its response; `None` if
    /// PostgreSQL does not limit the time of statements.
    fn with_response(self) -> Option<Duration> {
        let statement = Duration::from_millis(self.statement_ms.into());
        (self.statement_ms > 0).then_some(statement + RESPONSE_TIME)
    }

    /// Returns these limits as PostgreSQL session parameters. The last three
    /// end a session whose client disappeared, and release its locks.
    fn session(self) -> [(&'static str, String); 6] {
        let keepalive_s = (self.unreachable_ms / 4_000).max(u32::from(self.unreachable_ms > 0));
        [
            ("statement_timeout", self.statement_ms.to_string()),
            ("lock_timeout", self.lock_ms.to_string()),
            ("idle_in_transaction_session_timeout", self.idle_in_transaction_ms.to_string()),
            ("tcp_user_timeout", self.unreachable_ms.to_string()),
            ("tcp_keepalives_idle", keepalive_s.to_string()),
            ("tcp_keepalives_interval", keepalive_s.to_string()),
        ]
    }
}

/// Migrates PostgreSQL's schema while other nodes serve. A statement waits for
/// a lock for at most one second, because other work queues behind it; then the
/// migration is retried.
async fn migrate_postgres(connection: &mut PgConnection) -> Result<(), Error> {
    let bounds = format!("SET lock_timeout = {MIGRATION_LOCK_MS}; SET statement_timeout = 0");
    sqlx::raw_sql(AssertSqlSafe(bounds)).execute(&mut *connection).await?;
    let begun = Instant::now();
    let [mut pause, longest] = MIGRATION_PAUSES;
    loop {
        let error = match migrations::of(Backend::Postgres).run(&mut *connection).await {
            Ok(()) => return Ok(()),
            Err(error) => error,
        };
        if !lost_lock(&error) || begun.elapsed() > MIGRATION_PATIENCE {
            return Err(Error::Migration(error));
        }
        tracing::warn!(%error, "migration could not get a lock; retrying");
        // Ends the failed migration's transaction and releases sqlx's migration
        // lock.
        sqlx::raw_sql("ROLLBACK; SELECT pg_advisory_unlock_all()")
            .execute(&mut *connection)
            .await?;
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(longest);
    }
}

/// Returns whether a migration failed by a lock timeout or a deadlock.
fn lost_lock(error: &MigrateError) -> bool {
    let (MigrateError::Execute(cause) | MigrateError::ExecuteMigration(cause, _)) = error else {
        return false;
    };
    matches!(database_code(cause).as_deref(), Some("55P03" | "40P01"))
}

/// Returns the `COLLATE` suffix with which `ILIKE` finds `É` for `é`; empty if
/// the database needs none or has no such collation. A database created with
/// the `C` locale folds ASCII only.
async fn find_folding(connection: &mut PgConnection) -> Result<&'static str, Error> {
    let known: Vec<String> = sqlx::query_scalar(
        "SELECT collname::text FROM pg_collation \
         WHERE collname IN ('und-x-icu', 'C.utf8', 'en_US.utf8') \
         AND collencoding IN (-1, pg_char_to_encoding(getdatabaseencoding()))",
    )
    .fetch_all(&mut *connection)
    .await?;
    let ours: bool = sqlx::query_scalar("SELECT 'É' ILIKE 'é'").fetch_one(connection).await?;
    Ok(match known {
        _ if ours => "",
        known if known.iter().any(|name| name == "und-x-icu") => " COLLATE \"und-x-icu\"",
        known if known.iter().any(|name| name == "C.utf8") => " COLLATE \"C.utf8\"",
        known if known.iter().any(|name| name == "en_US.utf8") => " COLLATE \"en_US.utf8\"",
        _ => "",
    })
}
