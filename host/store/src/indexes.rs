//! Indexes that areas declare: expression indexes on the tables of their
//! collections.
//!
//! An index's name contains its collection and a hash of its definition. The
//! same declaration therefore has the same name in every process and after
//! every restart.

use std::collections::BTreeSet;

use sha2::{Digest, Sha256};

use super::collections::{run, table};
use super::connection::{Connection, scalars};
use super::error::Error;
use super::scope::{AccessibleCollection, SubstringIndexSpec};
use super::{Backend, documents_move};
use assurance_core::domain::manifest::{FieldKind, IndexSpec};

/// Maximum number of fields in one index.
const MAX_FIELDS: usize = 8;

/// Checks that the names of a collection and its fields are safe in SQL. The
/// error is a message for the area's author.
pub fn check(scope: &AccessibleCollection) -> Result<(), String> {
    let word = |text: &str| {
        text.starts_with(|c: char| c.is_ascii_lowercase())
            && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
    };
    let name = &scope.full_name;
    let parts: Vec<&str> = name.split('.').collect();
    if parts.len() != 2 || !parts.iter().all(|part| word(part)) || name.len() > 128 {
        return Err(format!("{name:?} is not a valid collection name"));
    }
    check_members(scope).map_err(|problem| format!("{name}: {problem}"))
}

/// Checks the declared fields and indexes of a collection.
fn check_members(scope: &AccessibleCollection) -> Result<(), String> {
    let member = |text: &str| {
        text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && text.len() <= 64
            && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    };
    if let Some(name) = scope.fields.keys().find(|name| !member(name)) {
        return Err(format!("{name:?} is not a valid field name"));
    }
    let is_text = |name: &String| scope.fields.get(name) == Some(&FieldKind::Text);
    for SubstringIndexSpec { text, by, unless } in &scope.searched {
        if let Some(name) = [text, by].into_iter().chain(unless).find(|name| !is_text(name)) {
            return Err(format!("search of {name:?}, which is not a declared text field"));
        }
    }
    for index in &scope.indexes {
        if index.fields.is_empty() || index.fields.len() > MAX_FIELDS {
            return Err(format!("an index has 1 to {MAX_FIELDS} fields"));
        }
        if index.fields.iter().collect::<BTreeSet<_>>().len() < index.fields.len() {
            return Err("an index has each field once".into());
        }
        if let Some(name) = index.fields.iter().find(|name| !scope.fields.contains_key(*name)) {
            return Err(format!("index of undeclared field {name:?}"));
        }
    }
    Ok(())
}

/// An index that a collection declares and the database does not have.
#[derive(Clone, Copy, Debug)]
pub(super) struct MissingIndex<'a> {
    pub(super) scope: &'a AccessibleCollection,
    pub(super) index: &'a IndexSpec,
    pub(super) place: IndexedTable,
}

/// Table on which an index that an area declares is created.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum IndexedTable {
    /// The collection's own table.
    Collection,
    /// The table of all collections in a PostgreSQL database of an older
    /// release, until its documents are moved.
    Documents,
}

/// Returns the declared indexes that do not exist, or are not valid.
pub(super) async fn missing<'a>(
    connection: &mut Connection,
    collections: &'a [AccessibleCollection],
) -> Result<Vec<MissingIndex<'a>>, Error> {
    let ready = ready(connection).await?;
    let mut places = vec![IndexedTable::Collection];
    if documents_move::progress(connection).await?.is_some() {
        places.push(IndexedTable::Documents);
    }
    let declared = collections
        .iter()
        .flat_map(|scope| scope.indexes.iter().map(move |index| (scope, index)))
        .flat_map(|(scope, index)| {
            places.iter().map(move |place| MissingIndex { scope, index, place: *place })
        });
    let is_missing =
        |one: &MissingIndex<'_>| !ready.contains(&index_name(one.scope, one.index, one.place));
    Ok(declared.filter(is_missing).collect())
}

/// Converts the error of a violated unique constraint for the caller: the row's
/// id exists, or a declared unique index of one of these collections has the
/// values. Returns other errors unchanged.
pub fn explain<'a>(
    error: Error,
    scopes: impl IntoIterator<Item = &'a AccessibleCollection>,
) -> Error {
    let Some(constraint) = error.broken_constraint() else { return error };
    if constraint == "documents_pkey" {
        return Error::AlreadyExists;
    }
    for scope in scopes {
        if constraint == format!("{}_pkey", table(&scope.full_name)) {
            return Error::AlreadyExists;
        }
        let broken = |index: &&IndexSpec| {
            let places = [IndexedTable::Collection, IndexedTable::Documents];
            index.unique && places.iter().any(|on| index_name(scope, index, *on) == constraint)
        };
        if let Some(index) = scope.indexes.iter().find(broken) {
            let (collection, fields) = (scope.full_name.clone(), index.fields.clone());
            return Error::UniqueConflict { collection, fields };
        }
    }
    error
}

fn index_name(scope: &AccessibleCollection, index: &IndexSpec, place: IndexedTable) -> String {
    let collection = hex::encode(Sha256::digest(&scope.full_name));
    let kinds: Vec<_> = index.fields.iter().map(|name| (name, scope.fields.get(name))).collect();
    let definition = hex::encode(Sha256::digest(format!("{kinds:?}")));
    let kind = if index.unique { 'u' } else { 'i' };
    let prefix = match place {
        IndexedTable::Collection => "index",
        IndexedTable::Documents => "doc",
    };
    format!("{prefix}_{}_{}_{kind}", &collection[..12], &definition[..16])
}

async fn ready(connection: &mut Connection) -> Result<BTreeSet<String>, Error> {
    let sql = match connection.backend() {
        Backend::Sqlite => {
            "SELECT name FROM sqlite_schema \
             WHERE type = 'index' AND name LIKE 'index\\_%' ESCAPE '\\'"
        }
        Backend::Postgres => {
            "SELECT relname::text FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid \
             WHERE indisvalid AND relname ~ '^(index|doc)_' \
             AND relnamespace = current_schema()::regnamespace"
        }
    };
    let names: Vec<String> = scalars!(connection, sql);
    Ok(names.into_iter().collect())
}

/// Creates an index whose declaration [`check`] has validated.
pub(super) async fn create(
    connection: &mut Connection,
    MissingIndex { scope, index, place }: MissingIndex<'_>,
) -> Result<(), Error> {
    let backend = connection.backend();
    let name = index_name(scope, index, place);
    if backend == Backend::Postgres {
        // An interrupted build leaves an invalid index, which blocks the name.
        run(connection, format!("DROP INDEX CONCURRENTLY IF EXISTS {name}")).await?;
    }
    let result = run(connection, create_sql(backend, scope, index, place)).await;
    if let Err(error) = result {
        if backend == Backend::Postgres {
            run(connection, format!("DROP INDEX CONCURRENTLY IF EXISTS {name}")).await?;
        }
        // While SQLite creates an index, its error does not contain the index's
        // name.
        return Err(match error.broken_constraint() {
            Some(_) => Error::UniqueConflict {
                collection: scope.full_name.clone(),
                fields: index.fields.clone(),
            },
            None => error,
        });
    }
    Ok(())
}

fn create_sql(
    backend: Backend,
    scope: &AccessibleCollection,
    index: &IndexSpec,
    place: IndexedTable,
) -> String {
    let unique = if index.unique { "UNIQUE " } else { "" };
    let how = match backend {
        Backend::Sqlite => "INDEX IF NOT EXISTS",
        Backend::Postgres => "INDEX CONCURRENTLY",
    };
    let mut columns = vec!["workspace_id".to_owned()];
    for field in &index.fields {
        // `check` has verified that each field is declared.
        if let Ok(field) = scope.field(field) {
            let nulls = if backend == Backend::Postgres { " NULLS FIRST" } else { "" };
            columns.push(format!("{}{nulls}", field.sql(backend)));
        }
    }
    if !index.unique {
        // Ties are broken by id, so the index ends with it.
        columns.push("id".to_owned());
    }
    let (name, columns) = (index_name(scope, index, place), columns.join(", "));
    let collection = &scope.full_name;
    match place {
        IndexedTable::Collection => {
            format!("CREATE {unique}{how} {name} ON \"{}\" ({columns})", table(collection))
        }
        IndexedTable::Documents => format!(
            "CREATE {unique}{how} {name} ON documents ({columns}) WHERE collection = '{collection}'"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::collection as scope;

    #[test]
    fn what_is_no_declaration_never_reaches_the_database() {
        let field = |name: &str| AccessibleCollection {
            fields: [(name.to_owned(), FieldKind::Text)].into(),
            indexes: vec![],
            ..scope("a.b", false)
        };
        assert_eq!(check(&scope("a.b_2", false)), Ok(()));
        assert_eq!(check(&field("nameOf_2")), Ok(()));
        for name in ["a", "a.b.c", "a.b'", "A.b", ".b", "a.", "a.2", "a-b.c"] {
            assert!(check(&scope(name, false)).is_err(), "{name}");
        }
        for name in ["", "2", "a'b", "a.b", "a b", "é", "$a"] {
            assert!(check(&field(name)).is_err(), "{name}");
        }
        let undeclared = AccessibleCollection { fields: [].into(), ..scope("a.b", false) };
        assert!(check(&undeclared).is_err());
        let twice = IndexSpec { fields: vec!["name".into(), "name".into()], unique: false };
        assert!(
            check(&AccessibleCollection { indexes: vec![twice], ..scope("a.b", false) }).is_err()
        );
    }
}
