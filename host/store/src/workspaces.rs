//! Workspaces and their feature flags.

use uuid::Uuid;

use super::connection::{Connection, execute, fetch_all, fetch_optional};
use super::cursor::CursorBinding;
use super::error::{Error, changed_or};
use super::memberships::parse_role;
use assurance_core::domain::id::{UserId, WorkspaceId};
use assurance_core::domain::people::Workspace;
use assurance_core::domain::role::Role;
use assurance_core::domain::time::Timestamp;

type Row = (Uuid, String, String, i64);

/// Adds a workspace. Returns [`Error::AlreadyExists`] if the slug is taken.
pub async fn insert(connection: &mut Connection, workspace: &Workspace) -> Result<(), Error> {
    let added = execute!(
        connection,
        "INSERT INTO workspaces (id, name, slug, created_at) VALUES ($1, $2, $3, $4) \
         ON CONFLICT (slug) DO NOTHING",
        workspace.id.0,
        &workspace.name,
        &workspace.slug,
        workspace.created_at.0
    );
    changed_or(added, Error::AlreadyExists)
}

/// Finds a workspace by id; `None` if there is none.
pub async fn find(
    connection: &mut Connection,
    id: WorkspaceId,
) -> Result<Option<Workspace>, Error> {
    let sql = "SELECT id, name, slug, created_at FROM workspaces WHERE id = $1";
    let row: Option<Row> = fetch_optional!(connection, sql, id.0);
    Ok(row.map(read))
}

/// Finds a workspace by its slug.
pub async fn by_slug(connection: &mut Connection, slug: &str) -> Result<Option<Workspace>, Error> {
    let sql = "SELECT id, name, slug, created_at FROM workspaces WHERE slug = $1";
    let row: Option<Row> = fetch_optional!(connection, sql, slug);
    Ok(row.map(read))
}

/// Returns one page of the workspaces that a person is a member of, ordered by
/// slug, and the cursor of the next page. Returns [`Error::InvalidCursor`] for
/// a cursor of another person.
pub async fn page_of_user(
    connection: &mut Connection,
    user: UserId,
    cursor: Option<&str>,
    limit: u32,
    cursor_key: &[u8; 32],
) -> Result<(Vec<(Workspace, Role)>, Option<String>), Error> {
    let binding = CursorBinding::of_list(cursor_key, user.0, "a person's workspaces");
    let after: String = binding.after(cursor)?.unwrap_or_default();
    let sql = "SELECT w.id, w.name, w.slug, w.created_at, m.role FROM memberships m \
               JOIN workspaces w ON w.id = m.workspace_id \
               WHERE m.user_id = $1 AND w.slug > $2 ORDER BY w.slug LIMIT $3";
    let rows: Vec<(Uuid, String, String, i64, String)> =
        fetch_all!(connection, sql, user.0, &after, i64::from(limit) + 1);
    let found: Vec<(Workspace, Role)> = rows
        .into_iter()
        .map(|row| Ok((read((row.0, row.1, row.2, row.3)), parse_role(&row.4)?)))
        .collect::<Result<_, Error>>()?;
    Ok(binding.page(found, limit, |(workspace, _)| workspace.slug.clone()))
}

/// Turns a feature flag of a workspace on or off.
pub async fn set_flag(
    connection: &mut Connection,
    workspace: WorkspaceId,
    flag: &str,
    enabled: bool,
) -> Result<(), Error> {
    let sql = "INSERT INTO workspace_flags (workspace_id, flag, enabled) VALUES ($1, $2, $3) \
               ON CONFLICT (workspace_id, flag) DO UPDATE SET enabled = excluded.enabled";
    execute!(connection, sql, workspace.0, flag, enabled);
    Ok(())
}

fn read((id, name, slug, created_at): Row) -> Workspace {
    Workspace { id: WorkspaceId(id), name, slug, created_at: Timestamp(created_at) }
}
