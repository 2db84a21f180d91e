//! The two databases, and a macro that creates a test case for each.

use clap::ValueEnum;
use test_database::TestDatabase;

/// Database of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Backend {
    /// Embedded in the data folder.
    Sqlite,
    /// A separate database on the server that `xtask` started.
    Postgres,
}

impl Backend {
    /// Whether this backend is available. Prints a note if not.
    #[must_use]
    pub fn is_there(self) -> bool {
        self == Self::Sqlite || TestDatabase::has_server()
    }
}

/// Creates a test case for each database from one body: `both_backends! { async fn
/// sentence_as_a_name(backend) { … } }`.
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
