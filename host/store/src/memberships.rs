//! Memberships of people in workspaces.

use std::collections::BTreeSet;
use std::sync::Arc;

use uuid::Uuid;

use super::connection::{Connection, execute, fetch_all, fetch_optional, optional_scalar, scalar};
use super::cursor::CursorBinding;
use super::error::{Error, parsed};
use assurance_core::domain::id::{UserId, WorkspaceId};
use assurance_core::domain::people::{Member, Membership};
use assurance_core::domain::role::Role;
use assurance_core::domain::time::Timestamp;

type MemberRow = (Uuid, String, String, String);

/// Adds a member to a workspace, or changes the role of an existing one.
pub async fn put(
    connection: &mut Connection,
    workspace: WorkspaceId,
    user: UserId,
    role: Role,
    now: Timestamp,
) -> Result<(), Error> {
    let sql = "INSERT INTO memberships (workspace_id, user_id, role, created_at) \
               VALUES ($1, $2, $3, $4) \
               ON CONFLICT (workspace_id, user_id) DO UPDATE SET role = excluded.role";
    execute!(connection, sql, workspace.0, user.0, role.as_str(), now.0);
    Ok(())
}

/// Adds a member to a workspace; an existing member keeps a higher role.
pub async fn add(
    connection: &mut Connection,
    workspace: WorkspaceId,
    user: UserId,
    role: Role,
    now: Timestamp,
) -> Result<(), Error> {
    let sql = "INSERT INTO memberships (workspace_id, user_id, role, created_at) \
               VALUES ($1, $2, $3, $4) \
               ON CONFLICT (workspace_id, user_id) DO UPDATE SET role = excluded.role \
               WHERE CASE excluded.role WHEN 'owner' THEN 3 WHEN 'admin' THEN 2 \
               WHEN 'member' THEN 1 ELSE 0 END > CASE memberships.role WHEN 'owner' THEN 3 \
               WHEN 'admin' THEN 2 WHEN 'member' THEN 1 ELSE 0 END";
    execute!(connection, sql, workspace.0, user.0, role.as_str(), now.0);
    Ok(())
}

/// Returns a person's role and features in a workspace with one query. `None`
/// if the person is not a member or is disabled.
pub async fn find(
    connection: &mut Connection,
    workspace: WorkspaceId,
    user: UserId,
) -> Result<Option<Membership>, Error> {
    let sql = "SELECT m.role, f.flag FROM memberships m \
               JOIN users u ON u.id = m.user_id AND u.disabled_at IS NULL \
               LEFT JOIN workspace_flags f \
               ON f.workspace_id = m.workspace_id AND f.enabled = FALSE \
               WHERE m.workspace_id = $1 AND m.user_id = $2";
    let rows: Vec<(String, Option<String>)> = fetch_all!(connection, sql, workspace.0, user.0);
    let Some((role, _)) = rows.first() else { return Ok(None) };
    let role = parse_role(role)?;
    let off: BTreeSet<String> = rows.into_iter().filter_map(|(_, flag)| flag).collect();
    Ok(Some(Membership { role, features_off: Arc::new(off) }))
}

/// Returns the number of workspaces that a person owns. Other transactions that
/// count for the same person wait until this one ends.
pub async fn count_owned(connection: &mut Connection, user: UserId) -> Result<i64, Error> {
    execute!(connection, "UPDATE users SET id = id WHERE id = $1", user.0);
    let sql = "SELECT COUNT(*) FROM memberships WHERE user_id = $1 AND role = 'owner'";
    Ok(scalar!(connection, sql, user.0))
}

/// Returns one member of a workspace. `None` if the person is not a member or
/// is disabled.
pub async fn member(
    connection: &mut Connection,
    workspace: WorkspaceId,
    user: UserId,
) -> Result<Option<Member>, Error> {
    let sql = "SELECT u.id, u.email, u.display_name, m.role FROM memberships m \
               JOIN users u ON u.id = m.user_id AND u.disabled_at IS NULL \
               WHERE m.workspace_id = $1 AND m.user_id = $2";
    let row: Option<MemberRow> = fetch_optional!(connection, sql, workspace.0, user.0);
    row.map(read).transpose()
}

/// Returns all members of a workspace who are not disabled, ordered by email.
pub async fn members(
    connection: &mut Connection,
    workspace: WorkspaceId,
) -> Result<Vec<Member>, Error> {
    let sql = "SELECT u.id, u.email, u.display_name, m.role FROM memberships m \
               JOIN users u ON u.id = m.user_id AND u.disabled_at IS NULL \
               WHERE m.workspace_id = $1 ORDER BY u.email";
    let rows: Vec<MemberRow> = fetch_all!(connection, sql, workspace.0);
    rows.into_iter().map(read).collect()
}

/// Returns one page of a workspace's members with their time of joining,
/// ordered by email, and the cursor of the next page. Includes disabled people.
/// Returns [`Error::InvalidCursor`] for a cursor of another list.
pub async fn page(
    connection: &mut Connection,
    workspace: WorkspaceId,
    cursor: Option<&str>,
    limit: u32,
    cursor_key: &[u8; 32],
) -> Result<(Vec<(Member, Timestamp)>, Option<String>), Error> {
    let binding = CursorBinding::of_list(cursor_key, workspace.0, "a workspace's members");
    let after: String = binding.after(cursor)?.unwrap_or_default();
    let sql = "SELECT u.id, u.email, u.display_name, m.role, m.created_at FROM memberships m \
               JOIN users u ON u.id = m.user_id \
               WHERE m.workspace_id = $1 AND u.email > $2 ORDER BY u.email LIMIT $3";
    let rows: Vec<(Uuid, String, String, String, i64)> =
        fetch_all!(connection, sql, workspace.0, &after, i64::from(limit) + 1);
    let found: Vec<(Member, Timestamp)> = rows
        .into_iter()
        .map(|row| Ok((read((row.0, row.1, row.2, row.3))?, Timestamp(row.4))))
        .collect::<Result<_, Error>>()?;
    Ok(binding.page(found, limit, |(member, _)| member.email.clone()))
}

/// Returns the role of a member, who may be disabled; `None` if the person is
/// not a member. No other transaction can remove members of the workspace or
/// lower their roles until this one ends.
pub async fn lock_role(
    connection: &mut Connection,
    workspace: WorkspaceId,
    user: UserId,
) -> Result<Option<Role>, Error> {
    execute!(connection, "UPDATE workspaces SET id = id WHERE id = $1", workspace.0);
    let sql = "SELECT role FROM memberships WHERE workspace_id = $1 AND user_id = $2";
    let role: Option<String> = optional_scalar!(connection, sql, workspace.0, user.0);
    role.as_deref().map(parse_role).transpose()
}

/// Returns whether the workspace has an owner other than this person who is not
/// disabled.
pub async fn has_other_owner(
    connection: &mut Connection,
    workspace: WorkspaceId,
    user: UserId,
) -> Result<bool, Error> {
    let sql = "SELECT COUNT(*) FROM memberships m \
               JOIN users u ON u.id = m.user_id AND u.disabled_at IS NULL \
               WHERE m.workspace_id = $1 AND m.user_id <> $2 AND m.role = 'owner'";
    let others: i64 = scalar!(connection, sql, workspace.0, user.0);
    Ok(others > 0)
}

/// Removes a member from a workspace; does nothing if the person is not one.
pub async fn remove(
    connection: &mut Connection,
    workspace: WorkspaceId,
    user: UserId,
) -> Result<(), Error> {
    let sql = "DELETE FROM memberships WHERE workspace_id = $1 AND user_id = $2";
    execute!(connection, sql, workspace.0, user.0);
    Ok(())
}

fn read((user, email, display_name, role): MemberRow) -> Result<Member, Error> {
    Ok(Member { user: UserId(user), email, display_name, role: parse_role(&role)? })
}

/// Parses a role. A role written by a newer release is an error; it is not
/// treated as viewer.
pub(super) fn parse_role(text: &str) -> Result<Role, Error> {
    parsed("memberships.role", text)
}
