//! Opening the databases, and bringing their schema up to date.

use std::str::FromStr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sqlx::migrate::MigrateError;
use sqlx::postgres::PgConnectOptions;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection as _, PgConnection, SqliteConnection};

use super::blobs::{Blobs, Place};
use super::error::Error;
use super::gates::Gates;
use super::pool::{self, Pool, PoolLimits};
use super::shares::Shares;
use super::stored_bytes::StoredBytes;
use super::{Backend, Databases, Inner, Store, jobs};

/// Where the store is, and how much of it this process takes.
#[derive(Clone, Debug)]
pub struct Settings {
    /// `sqlite:PATH` or `postgres://USER@HOST/NAME`.
    pub url: String,
    /// All of this process's connections together.
    pub max_connections: u32,
    /// How long a call waits for a connection, or for its turn to write.
    pub acquire_timeout_ms: u64,
    /// PostgreSQL's own bounds on what this process asks of it.
    pub timeouts: Timeouts,
    /// Where blobs are.
    pub blobs: Place,
}

/// PostgreSQL's own bounds, set for each session. 0: no bound.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timeouts {
    /// How long one statement may take, in milliseconds.
    pub statement_ms: u32,
    /// How long a statement may wait for a lock, in milliseconds.
    pub lock_ms: u32,
    /// How long a transaction may stay open between statements, in milliseconds.
    pub idle_in_transaction_ms: u32,
    /// How long the server keeps a session whose client does not answer, in
    /// milliseconds.
    pub unreachable_ms: u32,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            statement_ms: 30_000,
            lock_ms: 2_000,
            idle_in_transaction_ms: 60_000,
            unreachable_ms: 20_000,
        }
    }
}

/// Older than this, a connection to PostgreSQL is not kept.
const LIFETIME: Duration = Duration::from_secs(30 * 60);
/// How long a migration's statement waits for a lock. Behind it, all other work
/// on the table waits too.
const MIGRATION_LOCK_MS: u32 = 1_000;
/// How long a migration is tried again, and how long it pauses first and at
/// most between.
const MIGRATION_PATIENCE: Duration = Duration::from_secs(300);
const MIGRATION_PAUSES: [Duration; 2] = [Duration::from_millis(250), Duration::from_secs(5)];
/// Statements a connection to PostgreSQL keeps prepared.
const STATEMENTS: usize = 512;
/// The same for SQLite, where they are kept in this process: some 10 KiB each.
const SQLITE_STATEMENTS: usize = 256;
/// How long SQLite waits for another process's write.
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// Pages that SQLite keeps (a negative number is of KiB). A transaction that
/// writes more than it keeps writes it twice; a reader finds what it has not
/// kept in the kernel's own cache, and there are many readers.
const WRITER_CACHE: &str = "-16384";
const READER_CACHE: &str = "-1024";

/// How PostgreSQL plans. Whatever is asked has an index, but a plan that was
/// made while a table was small reads all of it, and is kept until the table's
/// statistics are; a serializable transaction that does so loses to every write
/// to the table. Statements are too short to be worth compiling.
///
/// What it remarks beside its answers stands in its own log: that there was no
/// index to drop, or, after a commit that lost a race, nothing to roll back, is
/// nothing that an operator could mend.
const SESSION: [(&str, &str); 3] =
    [("enable_seqscan", "off"), ("jit", "off"), ("client_min_messages", "error")];

pub(super) static SQLITE: sqlx::migrate::Migrator = sqlx::migrate!("../migrations/sqlite");
static POSTGRES: sqlx::migrate::Migrator = sqlx::migrate!("../migrations/postgres");

/// The migrations that this release brings.
pub(super) fn migrator(backend: Backend) -> &'static sqlx::migrate::Migrator {
    match backend {
        Backend::Sqlite => &SQLITE,
        Backend::Postgres => &POSTGRES,
    }
}

impl Store {
    /// Connects, and brings the schema up to date; safe where several
    /// processes start at once.
    pub async fn open(settings: &Settings) -> Result<Self, Error> {
        let timeout = Duration::from_millis(settings.acquire_timeout_ms);
        let databases = if settings.url.starts_with("sqlite:") {
            open_sqlite(settings, timeout).await?
        } else if settings.url.starts_with("postgres://")
            || settings.url.starts_with("postgresql://")
        {
            open_postgres(settings, timeout).await?
        } else {
            return Err(Error::Url(settings.url.clone()));
        };
        let blobs = Blobs::open(&settings.blobs)?;
        pool::describe_metrics();
        let gates = Gates::default();
        let (reading, writing) = shares(&databases, settings.max_connections);
        let (wake, outcomes) = (super::Wake::default(), super::WriteOutcomes::default());
        let waiting = jobs::Waiting::default();
        let stored_bytes = StoredBytes::default();
        let inner = Inner {
            databases,
            blobs,
            timeout,
            gates,
            reading,
            writing,
            wake,
            outcomes,
            waiting,
            stored_bytes,
        };
        Ok(Self(Arc::new(inner)))
    }
}

/// The shares of those that hold connections to read, and to write.
fn shares(databases: &Databases, connections: u32) -> (Shares, Shares) {
    match databases {
        // A call that writes begins as a reader.
        Databases::Sqlite { .. } => {
            let readers = connections.saturating_sub(1);
            (Shares::of(readers), Shares::of(readers))
        }
        Databases::Postgres { .. } => {
            let serializable = connections.div_ceil(2);
            (Shares::of(connections - serializable), Shares::of(serializable))
        }
    }
}

async fn open_sqlite(settings: &Settings, timeout: Duration) -> Result<Databases, Error> {
    let options = SqliteConnectOptions::from_str(&settings.url)
        .map_err(|_| Error::Url(settings.url.clone()))?
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .busy_timeout(BUSY_TIMEOUT)
        .statement_cache_capacity(SQLITE_STATEMENTS)
        .pragma("temp_store", "memory")
        .pragma("cache_size", WRITER_CACHE)
        .disable_statement_logging();
    let mut first = SqliteConnection::connect_with(&options).await?;
    migrate_sqlite(&mut first, &options).await?;
    let limits = |connections| PoolLimits { connections, timeout, lifetime: None };
    let writer: Pool<SqliteConnection> = Pool::new(options.clone(), limits(1));
    // Opened before the first is closed, so that the database stays open.
    writer.acquire().await?.release();
    let _ = first.close().await;
    let options = options.pragma("cache_size", READER_CACHE);
    let readers = Pool::new(options, limits(settings.max_connections.saturating_sub(1)));
    Ok(Databases::Sqlite { readers, writer })
}

/// sqlx does not lock SQLite while it migrates; a file beside the database
/// keeps a second process waiting.
async fn migrate_sqlite(
    connection: &mut SqliteConnection,
    options: &SqliteConnectOptions,
) -> Result<(), Error> {
    let path = options.get_filename().with_extension("migrating");
    let locked = tokio::task::spawn_blocking(move || {
        let file = std::fs::File::create(path)?;
        file.lock()?;
        Ok::<_, std::io::Error>(file)
    });
    let lock = locked
        .await
        .map_err(|error| Error::Unavailable(sqlx::Error::Io(std::io::Error::other(error))))?
        .map_err(|error| Error::Unavailable(sqlx::Error::Io(error)))?;
    let result = SQLITE.run(connection).await.map_err(Error::Migration);
    drop(lock);
    result
}

async fn open_postgres(settings: &Settings, timeout: Duration) -> Result<Databases, Error> {
    let options = PgConnectOptions::from_str(&settings.url)
        .map_err(|_| Error::Url(settings.url.clone()))?
        .application_name("assurance")
        .options(SESSION)
        .options(settings.timeouts.session())
        .statement_cache_capacity(STATEMENTS)
        .disable_statement_logging();
    let mut first = tokio::time::timeout(
        timeout.max(Duration::from_secs(5)),
        PgConnection::connect_with(&options),
    )
    .await
    .map_err(|_| Error::Unavailable(sqlx::Error::PoolTimedOut))??;
    migrate_postgres(&mut first).await?;
    let folding = find_folding(&mut first).await?;
    // Closing is a courtesy.
    let _ = first.close().await;
    let serializable = settings.max_connections.div_ceil(2);
    let common = settings.max_connections.saturating_sub(serializable);
    let strict = options.clone().options([("default_transaction_isolation", "serializable")]);
    let limits = |connections| PoolLimits { connections, timeout, lifetime: Some(LIFETIME) };
    Ok(Databases::Postgres {
        common: Pool::new(options.clone(), limits(common)),
        serializable: Pool::new(strict, limits(serializable)),
        folding,
        options: Box::new(options),
    })
}

impl Timeouts {
    /// As PostgreSQL's parameters. The last ones end a session whose client has
    /// gone without a word, with all that it locks.
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

/// Migrates while other nodes serve: a statement waits for its locks only for a
/// moment, during which others queue behind it, and is tried again later.
async fn migrate_postgres(connection: &mut PgConnection) -> Result<(), Error> {
    let bounds = format!("SET lock_timeout = {MIGRATION_LOCK_MS}; SET statement_timeout = 0");
    sqlx::raw_sql(AssertSqlSafe(bounds)).execute(&mut *connection).await?;
    let begun = Instant::now();
    let [mut pause, longest] = MIGRATION_PAUSES;
    loop {
        let error = match POSTGRES.run(&mut *connection).await {
            Ok(()) => return Ok(()),
            Err(error) => error,
        };
        if !lost_lock(&error) || begun.elapsed() > MIGRATION_PATIENCE {
            return Err(Error::Migration(error));
        }
        tracing::warn!(%error, "a migration waits for a lock; trying again");
        // What the failed migration left open, and sqlx's lock on migrations.
        sqlx::raw_sql("ROLLBACK; SELECT pg_advisory_unlock_all()")
            .execute(&mut *connection)
            .await?;
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(longest);
    }
}

/// Whether a migration could not get a lock in time, or was the victim of a
/// deadlock.
fn lost_lock(error: &MigrateError) -> bool {
    let (MigrateError::Execute(cause) | MigrateError::ExecuteMigration(cause, _)) = error else {
        return false;
    };
    let code = cause.as_database_error().and_then(sqlx::error::DatabaseError::code);
    matches!(code.as_deref(), Some("55P03" | "40P01"))
}

/// The first collation that knows `É` and `é` for one letter; a database made
/// with the `C` locale knows ASCII only.
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
