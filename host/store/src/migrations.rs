//! The embedded migrations of both databases.

use std::borrow::Cow;
use std::sync::LazyLock;

use sqlx::SqlSafeStr as _;
use sqlx::migrate::{Migration, MigrationType, Migrator};

use super::Backend;

/// Name (for example `0001_documents`) and text of each file in `migrations/`.
mod files {
    include!(concat!(env!("OUT_DIR"), "/migrations.rs"));
}

static SQLITE: LazyLock<Migrator> = LazyLock::new(|| migrator(files::SQLITE));
static POSTGRES: LazyLock<Migrator> = LazyLock::new(|| migrator(files::POSTGRES));

/// Returns all migrations of a database, in the order of their numbers.
pub(super) fn of(backend: Backend) -> &'static Migrator {
    match backend {
        Backend::Sqlite => &SQLITE,
        Backend::Postgres => &POSTGRES,
    }
}

/// Returns the number of the newest migration of this release.
pub(super) fn newest(backend: Backend) -> i64 {
    of(backend).iter().map(|migration| migration.version).max().unwrap_or_default()
}

/// Returns the migrations up to a number, of an older release.
#[cfg(test)]
pub(super) fn until(backend: Backend, number: i64) -> Migrator {
    let older = of(backend).iter().filter(|migration| migration.version <= number).cloned();
    Migrator::with_migrations(older.collect())
}

fn migrator(files: &'static [(&str, &str)]) -> Migrator {
    Migrator::with_migrations(files.iter().map(|(name, sql)| migration(name, sql)).collect())
}

/// Builds a migration from its file name and text.
///
/// # Panics
/// The name has no number; a test loads every migration.
fn migration(name: &'static str, sql: &'static str) -> Migration {
    let (number, title) = name.split_once('_').unwrap_or((name, ""));
    let version = number.parse().expect("migrations/NUMBER_TITLE.sql");
    let title = Cow::Owned(title.replace('_', " "));
    Migration::new(version, title, MigrationType::Simple, sql.into_sql_str(), false)
}
