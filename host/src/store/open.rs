//! Opening the databases, and bringing their schema up to date.

use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use sqlx::postgres::PgConnectOptions;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use sqlx::{ConnectOptions, Connection as _, PgConnection, SqliteConnection};
use tokio::sync::{Mutex, Semaphore};

use super::blobs::{Blobs, Place};
use super::error::Error;
use super::pool::Pool;
use super::{Databases, Inner, Store};

/// Where the store is, and how much of it this process takes.
#[derive(Clone, Debug)]
pub struct Settings {
    /// `sqlite:PATH` or `postgres://USER@HOST/NAME`.
    pub url: String,
    /// All of this process's connections together.
    pub max_connections: u32,
    /// How long a call waits for a connection, or for its turn to write.
    pub acquire_timeout_ms: u64,
    /// Where blobs are.
    pub blobs: Place,
}

/// Statements a connection keeps prepared.
const STATEMENTS: usize = 512;
/// How long SQLite waits for another process's write.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// Pages that SQLite keeps (a negative number is of KiB). A transaction that
/// writes more than it keeps writes it twice; a reader finds what it has not
/// kept in the kernel's own cache, and there are many readers.
const WRITER_CACHE: &str = "-16384";
const READER_CACHE: &str = "-4096";
/// How many queues the calls that lock a workspace share.
const GATES: usize = 64;

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

static SQLITE: sqlx::migrate::Migrator = sqlx::migrate!("../migrations/sqlite");
static POSTGRES: sqlx::migrate::Migrator = sqlx::migrate!("../migrations/postgres");

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
        let gates = (0..GATES).map(|_| Arc::new(Semaphore::new(1))).collect();
        let wake = super::Wake::default();
        Ok(Self(Arc::new(Inner { databases, blobs, timeout, gates, wake })))
    }
}

async fn open_sqlite(settings: &Settings, timeout: Duration) -> Result<Databases, Error> {
    let options = SqliteConnectOptions::from_str(&settings.url)
        .map_err(|_| Error::Url(settings.url.clone()))?
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .busy_timeout(BUSY_TIMEOUT)
        .statement_cache_capacity(STATEMENTS)
        .pragma("temp_store", "memory")
        .pragma("cache_size", WRITER_CACHE)
        .disable_statement_logging();
    let mut writer = SqliteConnection::connect_with(&options).await?;
    migrate_sqlite(&mut writer, &options).await?;
    let options = options.pragma("cache_size", READER_CACHE);
    let readers = Pool::new(options, settings.max_connections.saturating_sub(1), timeout);
    Ok(Databases::Sqlite { readers, writer: Arc::new(Mutex::new(writer)) })
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
        .statement_cache_capacity(STATEMENTS)
        .disable_statement_logging();
    let mut first = tokio::time::timeout(
        timeout.max(Duration::from_secs(5)),
        PgConnection::connect_with(&options),
    )
    .await
    .map_err(|_| Error::Unavailable(sqlx::Error::PoolTimedOut))??;
    POSTGRES.run(&mut first).await.map_err(Error::Migration)?;
    let folding = find_folding(&mut first).await?;
    // Closing is a courtesy.
    let _ = first.close().await;
    let serializable = settings.max_connections.div_ceil(2);
    let common = settings.max_connections.saturating_sub(serializable);
    let strict = options.clone().options([("default_transaction_isolation", "serializable")]);
    Ok(Databases::Postgres {
        common: Pool::new(options.clone(), common, timeout),
        serializable: Pool::new(strict, serializable, timeout),
        folding,
        options: Box::new(options),
    })
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
