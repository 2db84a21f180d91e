//! A PostgreSQL database for one test, on the server that `cargo xtask test` started.
//!
//! An empty database takes 9 MB, and there are many hundreds of tests. So each database is dropped
//! at the end of its test and not with the server.

use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection};

/// Environment variable with the server's URL.
const VARIABLE: &str = "ASSURANCE_TEST_POSTGRES";

/// A database that is dropped some time after this value.
#[derive(Debug)]
pub struct TestDatabase {
    server: String,
    name: String,
}

impl TestDatabase {
    /// Whether a server was given. Prints a note if not.
    #[must_use]
    pub fn has_server() -> bool {
        let there = server().is_some();
        if !there {
            eprintln!("skipped: {VARIABLE} names no server (cargo xtask test does)");
        }
        there
    }

    /// Creates an empty database. Returns `None` if no server was given.
    ///
    /// # Panics
    ///
    /// The server cannot create a database.
    pub async fn create() -> Option<Self> {
        let server = Self::has_server().then(server).flatten()?;
        let name = format!("test_{}", uuid::Uuid::now_v7().simple());
        execute(&server, format!("CREATE DATABASE {name}")).await.expect("a fresh database");
        Some(Self { server, name })
    }

    /// Returns the URL for clients.
    ///
    /// # Panics
    ///
    /// The server's URL has no database.
    #[must_use]
    pub fn url(&self) -> String {
        let (address, _) = self.server.rsplit_once('/').expect("a URL with a database");
        format!("{address}/{}", self.name)
    }
}

impl Drop for TestDatabase {
    /// Drops the database in a background thread. Databases that it does not reach are deleted with
    /// the server.
    fn drop(&mut self) {
        let server = self.server.clone();
        let statement = format!("DROP DATABASE {} WITH (FORCE)", self.name);
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            // The server may have stopped since, and the database with it.
            let _ = runtime.block_on(execute(&server, statement));
            std::io::Result::Ok(())
        });
    }
}

async fn execute(server: &str, statement: String) -> sqlx::Result<()> {
    let mut connection = PgConnection::connect(server).await?;
    connection.execute(AssertSqlSafe(statement)).await?;
    connection.close().await
}

fn server() -> Option<String> {
    std::env::var(VARIABLE).ok().filter(|url| !url.is_empty())
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use sqlx::{Connection as _, PgConnection};

    use super::TestDatabase;

    #[tokio::test]
    async fn a_database_goes_with_its_test_and_those_who_use_it() {
        let Some(database) = TestDatabase::create().await else { return };
        let url = database.url();
        let _user = PgConnection::connect(&url).await.expect("a connection");
        drop(database);
        let begun = Instant::now();
        while PgConnection::connect(&url).await.is_ok() {
            assert!(begun.elapsed() < Duration::from_secs(60), "it is still there");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}
