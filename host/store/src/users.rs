//! People and their password hashes.

use uuid::Uuid;

use super::connection::{Connection, execute, fetch_optional};
use super::error::{Error, changed_or};
use assurance_core::domain::id::UserId;
use assurance_core::domain::people::User;
use assurance_core::domain::time::Timestamp;

/// Adds a person. Returns [`Error::AlreadyExists`] if the email address is
/// taken.
pub async fn insert(
    connection: &mut Connection,
    user: &User,
    password_hash: Option<&str>,
    now: Timestamp,
) -> Result<(), Error> {
    let added = execute!(
        connection,
        "INSERT INTO users (id, email, display_name, email_verified, password_hash, created_at) \
         VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (email) DO NOTHING",
        user.id.0,
        &user.email,
        &user.display_name,
        user.email_verified,
        password_hash,
        now.0
    );
    changed_or(added, Error::AlreadyExists)
}

/// Finds a person by normalized email address, with the password hash. For a
/// disabled account, the hash is `None`, so that no password is accepted.
pub async fn by_email(
    connection: &mut Connection,
    email: &str,
) -> Result<Option<(User, Option<String>)>, Error> {
    let sql = "SELECT id, email, display_name, email_verified, \
               CASE WHEN disabled_at IS NULL THEN password_hash END FROM users WHERE email = $1";
    let row: Option<(Uuid, String, String, bool, Option<String>)> =
        fetch_optional!(connection, sql, email);
    Ok(row.map(|(id, email, display_name, email_verified, hash)| {
        (User { id: UserId(id), email, display_name, email_verified }, hash)
    }))
}

/// Finds a person by id, disabled or not.
pub async fn find(connection: &mut Connection, id: UserId) -> Result<Option<User>, Error> {
    let sql = "SELECT email, display_name, email_verified FROM users WHERE id = $1";
    let row: Option<(String, String, bool)> = fetch_optional!(connection, sql, id.0);
    Ok(row.map(|(email, display_name, email_verified)| User {
        id,
        email,
        display_name,
        email_verified,
    }))
}

/// Replaces a person's password hash. Returns [`Error::NotFound`] if the person
/// does not exist.
pub async fn set_password(
    connection: &mut Connection,
    user: UserId,
    password_hash: &str,
) -> Result<(), Error> {
    let sql = "UPDATE users SET password_hash = $2 WHERE id = $1";
    changed_or(execute!(connection, sql, user.0, password_hash), Error::NotFound)
}

/// Locks a person against being disabled until the transaction ends. Returns
/// [`Error::NotFound`] if the person does not exist or is disabled.
pub async fn hold(connection: &mut Connection, user: UserId) -> Result<(), Error> {
    let sql = "UPDATE users SET id = id WHERE id = $1 AND disabled_at IS NULL";
    changed_or(execute!(connection, sql, user.0), Error::NotFound)
}

/// Locks a person's password until the transaction ends, and stores a renewed
/// hash of the same password. Returns [`Error::RunAgain`] if another password
/// was stored meanwhile, or the account is disabled.
pub async fn hold_password(
    connection: &mut Connection,
    user: UserId,
    checked: &str,
    renewed: &str,
) -> Result<(), Error> {
    let sql = "UPDATE users SET password_hash = $3 \
               WHERE id = $1 AND password_hash = $2 AND disabled_at IS NULL";
    changed_or(execute!(connection, sql, user.0, checked, renewed), Error::RunAgain)
}

/// Records a sign-in of a person. Other sign-ins of the person wait until the
/// transaction ends, so that each sees the previous sessions. Returns
/// [`Error::NotFound`] if the person does not exist or is disabled.
pub async fn note_sign_in(
    connection: &mut Connection,
    user: UserId,
    now: Timestamp,
) -> Result<(), Error> {
    let sql = "UPDATE users SET last_sign_in_at = $2 WHERE id = $1 AND disabled_at IS NULL";
    changed_or(execute!(connection, sql, user.0, now.0), Error::NotFound)
}

/// Disables a person's account from a time on, or enables it (`None`). Waits
/// for running sign-ins of the person. Returns [`Error::NotFound`] if the
/// person does not exist.
pub async fn set_disabled(
    connection: &mut Connection,
    user: UserId,
    since: Option<Timestamp>,
) -> Result<(), Error> {
    let sql = "UPDATE users SET disabled_at = $2 WHERE id = $1";
    changed_or(execute!(connection, sql, user.0, since.map(|since| since.0)), Error::NotFound)
}
