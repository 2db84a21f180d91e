//! Reads documents by id.

use super::Backend;
use super::connection::Connection;
use super::error::Error;
use super::sql::{Row, Sql, each_row, one_row};
use assurance_core::domain::document::Document;
use assurance_core::domain::id::WorkspaceId;
use assurance_core::domain::time::Timestamp;

/// Maximum number of document ids in one statement.
const IDS_PER_STATEMENT: usize = 1_000;

/// Workspace and full name of a collection, which identify its documents.
#[derive(Clone, Copy, Debug)]
pub struct CollectionKey<'a> {
    /// Id of the workspace.
    pub workspace: WorkspaceId,
    /// Full name of the collection, `area.name`.
    pub collection: &'a str,
}

/// Metadata of a document, for writers that do not need its body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentHead {
    /// Id of the document.
    pub id: String,
    /// Current version of the document.
    pub version: u64,
    /// Time at which the document was created.
    pub created_at: Timestamp,
}

/// Returns the document with this id; `None` if there is none.
pub async fn get(
    connection: &mut Connection,
    place: CollectionKey<'_>,
    id: &str,
) -> Result<Option<Document>, Error> {
    let backend = connection.backend();
    let mut sql = Sql::new(backend, "SELECT ");
    push_from(sql.push(columns(backend)), place).push(" AND id = ").bind(id);
    one_row(connection, sql).await?.map(|row| document(&row)).transpose()
}

/// Returns those documents of `ids` that exist, in any order. Returns
/// [`Error::TooLarge`] if their bodies exceed `budget` bytes.
pub async fn get_many(
    connection: &mut Connection,
    place: CollectionKey<'_>,
    ids: &[String],
    mut budget: u64,
) -> Result<Vec<Document>, Error> {
    let columns = columns(connection.backend());
    let mut found = Vec::new();
    each_of(connection, place, columns, ids, |row| {
        let document = document(&row)?;
        spend(&mut budget, document.body.len())?;
        found.push(document);
        Ok(())
    })
    .await?;
    Ok(found)
}

/// Returns the metadata of those documents of `ids` that exist, in any order.
pub async fn heads(
    connection: &mut Connection,
    place: CollectionKey<'_>,
    ids: &[String],
) -> Result<Vec<DocumentHead>, Error> {
    let mut found = Vec::new();
    each_of(connection, place, "id, version, created_at", ids, |row| {
        found.push(DocumentHead {
            id: row.text(0)?,
            version: row.integer(1)?.cast_unsigned(),
            created_at: Timestamp(row.integer(2)?),
        });
        Ok(())
    })
    .await?;
    Ok(found)
}

/// Passes these columns of the documents of `ids` that exist to `take`.
async fn each_of(
    connection: &mut Connection,
    place: CollectionKey<'_>,
    columns: &str,
    ids: &[String],
    mut take: impl FnMut(Row) -> Result<(), Error> + Send,
) -> Result<(), Error> {
    for ids in ids.chunks(IDS_PER_STATEMENT) {
        each_row(connection, many(connection.backend(), place, columns, ids), &mut take).await?;
    }
    Ok(())
}

/// Returns the statement that selects these columns of the documents of `ids` that exist. On
/// PostgreSQL, one look-up for each id: with the statistics of a new collection, the plan of a
/// condition on all ids reads every document of the workspace.
fn many(backend: Backend, place: CollectionKey<'_>, columns: &str, ids: &[String]) -> Sql {
    let mut sql = Sql::new(backend, "SELECT ");
    match backend {
        Backend::Sqlite => {
            push_from(sql.push(columns), place).push(" AND id ").bind_any(ids.to_vec());
        }
        Backend::Postgres => {
            sql.push("d.* FROM (SELECT DISTINCT wanted FROM ");
            sql.push_unnest([ids.to_vec().into()]);
            sql.push(" AS u(wanted)) AS u CROSS JOIN LATERAL (SELECT ").push(columns);
            push_from(&mut sql, place).push(" AND id = u.wanted LIMIT 1) AS d");
        }
    }
    sql
}

/// Returns the columns of a document, in the order in which [`document`] reads
/// them.
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

/// Appends ` FROM … WHERE …` with the collection's table and the workspace. On
/// PostgreSQL the collection is a literal, so that the planner looks at its
/// partition only.
pub(super) fn push_from<'s>(sql: &'s mut Sql, place: CollectionKey<'_>) -> &'s mut Sql {
    sql.push(" FROM ").push_table(place.collection).push(" WHERE workspace_id = ");
    sql.bind(place.workspace.0);
    match sql.backend {
        Backend::Sqlite => sql,
        Backend::Postgres => sql.push(" AND collection = '").push(place.collection).push("'"),
    }
}

pub(super) fn spend(budget: &mut u64, bytes: usize) -> Result<(), Error> {
    *budget = budget.checked_sub(bytes as u64).ok_or(Error::TooLarge)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collections::ensure;
    use crate::testing::{collection, explained, fresh, put_numbered};

    #[tokio::test]
    async fn only_documents_with_the_ids_are_read_even_before_anything_is_known_of_the_others() {
        let Some(fresh) = fresh(Backend::Postgres).await else { return };
        ensure(&fresh.store, &[collection("a.b", false)]).await.unwrap();
        let mut connection = fresh.store.writer().await.unwrap();
        put_numbered(&mut connection, 5_000).await;
        let place = CollectionKey { workspace: WorkspaceId(uuid::Uuid::nil()), collection: "a.b" };
        let ids: Vec<String> = (0..64).map(|n| (n * 100).to_string()).collect();
        let sql = many(Backend::Postgres, place, columns(Backend::Postgres), &ids);
        let plan = explained(&mut connection, sql).await.join("\n");
        assert!(!plan.contains("Seq Scan") && !plan.contains("Removed by"), "{plan}");
    }
}
