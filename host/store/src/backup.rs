//! Consistent copies of the embedded database, made while other processes write
//! to it.

use std::path::Path;

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _, SqliteConnection};

use super::blobs::StoredBlob;
use super::error::Error;
use super::open::BUSY_TIMEOUT;
use super::{Backend, migrations};

/// A connection to an embedded SQLite database or a copy of it, opened for a
/// backup. Opening it does not migrate the database, because another release may
/// be serving it.
#[derive(Debug)]
pub struct SqliteBackupConnection(SqliteConnection);

impl SqliteBackupConnection {
    /// Opens an existing embedded database, without migrating it.
    pub async fn open(file: &Path) -> Result<Self, Error> {
        let options = SqliteConnectOptions::new()
            .filename(file)
            .create_if_missing(false)
            .busy_timeout(BUSY_TIMEOUT)
            .disable_statement_logging();
        Ok(Self(SqliteConnection::connect_with(&options).await?))
    }

    /// Writes a copy of all committed data of the embedded database into a new
    /// file. Other writers are not blocked.
    pub async fn copy_into(&mut self, file: &Path) -> Result<(), Error> {
        let file = file.to_string_lossy().into_owned();
        sqlx::query("VACUUM INTO $1").bind(file).execute(&mut self.0).await?;
        Ok(())
    }

    /// Returns all blob store objects that database rows refer to, each once.
    pub async fn named_objects(&mut self) -> Result<Vec<StoredBlob>, Error> {
        let rows: Vec<(String, i64, String)> = sqlx::query_as(
            "SELECT object, size, sha256 FROM blobs \
             UNION SELECT object, size, digest FROM area_versions ORDER BY 1",
        )
        .fetch_all(&mut self.0)
        .await?;
        let blob = |(object, size, sha256): (_, i64, _)| StoredBlob {
            object,
            size: size.cast_unsigned(),
            sha256,
        };
        Ok(rows.into_iter().map(blob).collect())
    }

    /// Returns the number of the newest applied migration.
    pub async fn schema(&mut self) -> Result<i64, Error> {
        let newest = "SELECT COALESCE(MAX(version), 0) FROM _sqlx_migrations";
        Ok(sqlx::query_scalar(newest).fetch_one(&mut self.0).await?)
    }

    /// Runs SQLite's integrity check and returns its findings; `None` if there
    /// are none.
    pub async fn damage(&mut self) -> Result<Option<String>, Error> {
        let found: String =
            sqlx::query_scalar("PRAGMA quick_check(1)").fetch_one(&mut self.0).await?;
        Ok((found != "ok").then_some(found))
    }

    /// Closes the connection and the database file.
    pub async fn close(self) -> Result<(), Error> {
        Ok(self.0.close().await?)
    }
}

/// Returns the number of the newest migration of an embedded database in this
/// release.
#[must_use]
pub fn newest_schema() -> i64 {
    migrations::newest(Backend::Sqlite)
}
