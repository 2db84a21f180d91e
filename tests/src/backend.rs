//! The two databases, and how one test body becomes a test case on each.

use sqlx::{Connection as _, Executor as _, PgConnection};

use crate::place;

/// Which database a host keeps its data in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// Embedded, in the data folder.
    Sqlite,
    /// A database of the test's own on the server that `xtask` started.
    Postgres,
}

impl Backend {
    /// Whether this backend can be used; says so on the console if not.
    #[must_use]
    pub fn is_there(self) -> bool {
        let there = self == Self::Sqlite || place::postgres().is_some();
        if !there {
            eprintln!("skipped: ASSURANCE_TEST_POSTGRES names no server (cargo xtask test does)");
        }
        there
    }

    /// Makes a fresh database where one is needed and tells its address. It is
    /// never dropped: the whole server goes when the tests end.
    pub async fn fresh_url(self) -> Option<String> {
        if self == Self::Sqlite {
            return None;
        }
        let server = place::postgres().expect("a PostgreSQL server");
        let name = format!("test_{}", uuid::Uuid::now_v7().simple());
        let mut connection = PgConnection::connect(&server).await.expect("the server answers");
        let statement = sqlx::AssertSqlSafe(format!("CREATE DATABASE {name}"));
        connection.execute(statement).await.expect("a fresh database");
        let (address, _) = server.rsplit_once('/').expect("a URL with a database");
        Some(format!("{address}/{name}"))
    }
}

/// Makes a test case for each database from one body:
/// `both_backends! { async fn sentence_as_a_name(backend) { … } }`.
#[macro_export]
macro_rules! both_backends {
    ($($(#[$meta:meta])* async fn $name:ident($backend:ident) $body:block)*) => {
        $($(#[$meta])* mod $name {
            #[allow(unused_imports, reason = "not every body needs its module's imports")]
            use super::*;

            async fn body($backend: $crate::Backend) $body

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn sqlite() {
                body($crate::Backend::Sqlite).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn postgres() {
                if $crate::Backend::Postgres.is_there() {
                    body($crate::Backend::Postgres).await;
                }
            }
        })*
    };
}
