//! Workspaces and their feature flags.

use uuid::Uuid;

use super::connection::{Connection, on};
use super::cursor::{CursorBinding, CursorPosition};
use super::error::Error;
use super::memberships::parse_role;
use assurance_core::domain::id::{UserId, WorkspaceId};
use assurance_core::domain::people::Workspace;
use assurance_core::domain::role::Role;
use assurance_core::domain::time::Timestamp;

type Row = (Uuid, String, String, i64);

/// Adds a workspace. Returns [`Error::AlreadyExists`] if the slug is taken.
pub async fn insert(connection: &mut Connection, workspace: &Workspace) -> Result<(), Error> {
    let added = on!(connection, c => {
        sqlx::query(
            "INSERT INTO workspaces (id, name, slug, created_at) VALUES ($1, $2, $3, $4) \
             ON CONFLICT (slug) DO NOTHING",
        )
        .bind(workspace.id.0)
        .bind(&workspace.name)
        .bind(&workspace.slug)
        .bind(workspace.created_at.0)
        .execute(&mut *c)
        .await?
        .rows_affected()
    });
    if added == 0 { Err(Error::AlreadyExists) } else { Ok(()) }
}

/// Finds a workspace by id.
pub async fn find(
    connection: &mut Connection,
    id: WorkspaceId,
) -> Result<Option<Workspace>, Error> {
    let row: Option<Row> = on!(connection, c => {
        sqlx::query_as("SELECT id, name, slug, created_at FROM workspaces WHERE id = $1")
            .bind(id.0)
            .fetch_optional(&mut *c)
            .await?
    });
    Ok(row.map(read))
}

/// Finds a workspace by its slug.
pub async fn by_slug(connection: &mut Connection, slug: &str) -> Result<Option<Workspace>, Error> {
    let row: Option<Row> = on!(connection, c => {
        sqlx::query_as("SELECT id, name, slug, created_at FROM workspaces WHERE slug = $1")
            .bind(slug)
            .fetch_optional(&mut *c)
            .await?
    });
    Ok(row.map(read))
}

/// Returns one page of a person's workspaces, ordered by slug, and the cursor
/// of the next page. Returns [`Error::InvalidCursor`] for a cursor of another
/// person.
pub async fn page_of_user(
    connection: &mut Connection,
    user: UserId,
    cursor: Option<&str>,
    limit: u32,
    cursor_key: &[u8; 32],
) -> Result<(Vec<(Workspace, Role)>, Option<String>), Error> {
    let binding = CursorBinding {
        key: cursor_key,
        owner: user.0,
        collection: "a person's workspaces",
        conditions: &[],
        order: &[],
    };
    let after = match cursor {
        Some(cursor) => binding.decode(cursor).ok_or(Error::InvalidCursor)?.id,
        None => String::new(),
    };
    let mut found = of_user(connection, user, &after, limit + 1).await?;
    let more = found.len() > limit as usize;
    found.truncate(limit as usize);
    let last = found.last().filter(|_| more);
    let next = last.map(|(last, _)| CursorPosition { values: Vec::new(), id: last.slug.clone() });
    Ok((found, next.map(|position| binding.encode(&position))))
}

async fn of_user(
    connection: &mut Connection,
    user: UserId,
    after_slug: &str,
    limit: u32,
) -> Result<Vec<(Workspace, Role)>, Error> {
    let rows: Vec<(Uuid, String, String, i64, String)> = on!(connection, c => {
        sqlx::query_as(
            "SELECT w.id, w.name, w.slug, w.created_at, m.role FROM memberships m \
             JOIN workspaces w ON w.id = m.workspace_id \
             WHERE m.user_id = $1 AND w.slug > $2 ORDER BY w.slug LIMIT $3",
        )
        .bind(user.0)
        .bind(after_slug)
        .bind(i64::from(limit))
        .fetch_all(&mut *c)
        .await?
    });
    rows.into_iter()
        .map(|row| Ok((read((row.0, row.1, row.2, row.3)), parse_role(&row.4)?)))
        .collect()
}

/// Turns a feature of a workspace on or off.
pub async fn set_flag(
    connection: &mut Connection,
    workspace: WorkspaceId,
    flag: &str,
    enabled: bool,
) -> Result<(), Error> {
    on!(connection, c => sqlx::query(
        "INSERT INTO workspace_flags (workspace_id, flag, enabled) VALUES ($1, $2, $3) \
         ON CONFLICT (workspace_id, flag) DO UPDATE SET enabled = excluded.enabled",
    )
    .bind(workspace.0)
    .bind(flag)
    .bind(enabled)
    .execute(&mut *c)
    .await?.rows_affected());
    Ok(())
}

fn read((id, name, slug, created_at): Row) -> Workspace {
    Workspace { id: WorkspaceId(id), name, slug, created_at: Timestamp(created_at) }
}
