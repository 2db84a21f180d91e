//! A consistent copy of the embedded database, taken while others write to it.

use std::path::Path;

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _, SqliteConnection};

use super::blobs::StoredBlob;
use super::error::Error;
use super::open::{BUSY_TIMEOUT, SQLITE};

/// An embedded database on a connection of its own. Its schema stays as it is:
/// the release that serves it may be another.
#[derive(Debug)]
pub struct Embedded(SqliteConnection);

impl Embedded {
    /// Opens a database that is there.
    pub async fn open(file: &Path) -> Result<Self, Error> {
        let options = SqliteConnectOptions::new()
            .filename(file)
            .create_if_missing(false)
            .busy_timeout(BUSY_TIMEOUT)
            .disable_statement_logging();
        Ok(Self(SqliteConnection::connect_with(&options).await?))
    }

    /// Writes all that is committed now into a new file. Others go on writing.
    pub async fn copy_into(&mut self, file: &Path) -> Result<(), Error> {
        let file = file.to_string_lossy().into_owned();
        sqlx::query("VACUUM INTO $1").bind(file).execute(&mut self.0).await?;
        Ok(())
    }

    /// Everything in the blob store that a row names, each object once.
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

    /// The number of the newest migration that it has.
    pub async fn schema(&mut self) -> Result<i64, Error> {
        let newest = "SELECT COALESCE(MAX(version), 0) FROM _sqlx_migrations";
        Ok(sqlx::query_scalar(newest).fetch_one(&mut self.0).await?)
    }

    /// What SQLite finds wrong with the file; `None`: nothing.
    pub async fn damage(&mut self) -> Result<Option<String>, Error> {
        let found: String =
            sqlx::query_scalar("PRAGMA quick_check(1)").fetch_one(&mut self.0).await?;
        Ok((found != "ok").then_some(found))
    }

    /// Closes the file.
    pub async fn close(self) -> Result<(), Error> {
        Ok(self.0.close().await?)
    }
}

/// The number of the newest migration of an embedded database that this
/// release knows.
#[must_use]
pub fn newest_schema() -> i64 {
    SQLITE.iter().map(|migration| migration.version).max().unwrap_or(0)
}
