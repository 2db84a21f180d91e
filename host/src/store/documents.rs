//! Documents by their ids.

use super::Backend;
use super::connection::Connection;
use super::error::Error;
use super::sql::{Arg, Row, Sql, each_row, one_row};
use crate::domain::document::Document;
use crate::domain::id::WorkspaceId;
use crate::domain::time::Timestamp;

/// Ids asked for in one statement.
const IDS_PER_STATEMENT: usize = 1_000;

/// A collection of one workspace; everything asked of the documents is asked
/// of one of these.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// Whose.
    pub workspace: WorkspaceId,
    /// `area.name`.
    pub collection: &'a str,
}

/// What a writer must know of a document that it does not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// Which.
    pub id: String,
    /// At which version it is.
    pub version: u64,
    /// Since when it exists.
    pub created_at: Timestamp,
}

/// The document of an id.
pub async fn get(
    connection: &mut Connection,
    place: Place<'_>,
    id: &str,
) -> Result<Option<Document>, Error> {
    let backend = connection.backend();
    let mut sql = Sql::new(backend, &format!("SELECT {} FROM documents WHERE ", columns(backend)));
    push_place(&mut sql, place).push(" AND id = ").bind(Arg::Text(id.to_owned()));
    one_row(connection, sql).await?.map(|row| document(&row)).transpose()
}

/// Those of the ids that exist, in any order; [`Error::TooLarge`] where their
/// bodies are larger than the budget.
pub async fn get_many(
    connection: &mut Connection,
    place: Place<'_>,
    ids: &[String],
    mut budget: u64,
) -> Result<Vec<Document>, Error> {
    let backend = connection.backend();
    let mut found = Vec::new();
    for ids in ids.chunks(IDS_PER_STATEMENT) {
        let text = format!("SELECT {} FROM documents WHERE ", columns(backend));
        let mut sql = Sql::new(backend, &text);
        push_place(&mut sql, place).push(" AND id ").bind_any(Arg::Texts(ids.to_vec()));
        each_row(connection, sql, |row| {
            let document = document(&row)?;
            spend(&mut budget, &document)?;
            found.push(document);
            Ok(())
        })
        .await?;
    }
    Ok(found)
}

/// The heads of those of the ids that exist, in any order.
pub async fn heads(
    connection: &mut Connection,
    place: Place<'_>,
    ids: &[String],
) -> Result<Vec<Head>, Error> {
    let backend = connection.backend();
    let mut found = Vec::new();
    for ids in ids.chunks(IDS_PER_STATEMENT) {
        let mut sql = Sql::new(backend, "SELECT id, version, created_at FROM documents WHERE ");
        push_place(&mut sql, place).push(" AND id ").bind_any(Arg::Texts(ids.to_vec()));
        each_row(connection, sql, |row| {
            found.push(Head {
                id: row.text(0)?,
                version: row.integer(1)?.cast_unsigned(),
                created_at: Timestamp(row.integer(2)?),
            });
            Ok(())
        })
        .await?;
    }
    Ok(found)
}

/// What [`document`] reads.
pub(super) fn columns(backend: Backend) -> &'static str {
    match backend {
        Backend::Sqlite => "id, version, created_at, updated_at, body",
        Backend::Postgres => "id, version, created_at, updated_at, body::text",
    }
}

pub(super) fn document(row: &Row) -> Result<Document, Error> {
    Ok(Document {
        id: row.text(0)?,
        version: row.integer(1)?.cast_unsigned(),
        created_at: Timestamp(row.integer(2)?),
        updated_at: Timestamp(row.integer(3)?),
        body: row.text(4)?,
    })
}

/// `workspace_id = … AND collection = '…'`: the collection stands there as a
/// literal, so that the planner sees which partial indexes apply.
pub(super) fn push_place<'s>(sql: &'s mut Sql, place: Place<'_>) -> &'s mut Sql {
    sql.push("workspace_id = ").bind(Arg::Uuid(place.workspace.0));
    sql.push(" AND collection = '").push(place.collection).push("'")
}

pub(super) fn spend(budget: &mut u64, document: &Document) -> Result<(), Error> {
    *budget = budget.checked_sub(document.body.len() as u64).ok_or(Error::TooLarge)?;
    Ok(())
}
