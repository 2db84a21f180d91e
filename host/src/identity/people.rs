//! Users, workspaces, memberships and feature flags: made and changed.

use std::net::IpAddr;

use super::password::{HashError, MAX_PASSWORD_BYTES};
use super::sessions::Origin;
use super::{Identity, NewSession, voucher};
use crate::domain::id::{UserId, WorkspaceId};
use crate::domain::people::{User, Workspace};
use crate::domain::role::Role;
use crate::domain::time::Timestamp;
use crate::store::idempotency::{self, IdempotentReply};
use crate::store::{self, Access, Connection, memberships, users, workspaces};

const MAX_EMAIL_BYTES: usize = 254;
const MAX_NAME_CHARS: usize = 120;
const MAX_SLUG_BYTES: usize = 63;

/// A person to be.
#[derive(Clone)]
pub struct NewUser {
    /// In any case, with space around.
    pub email: String,
    /// 1 to 120 characters.
    pub display_name: String,
    /// None: signs in by other means only.
    pub password: Option<String>,
    /// Whether mail to the address is known to arrive.
    pub email_verified: bool,
}

impl std::fmt::Debug for NewUser {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NewUser").field("email", &self.email).finish_non_exhaustive()
    }
}

/// Somebody who makes an account with a voucher.
#[derive(Clone)]
pub struct Registration {
    /// Says which address; see [`vouch`](super::vouch).
    pub voucher: String,
    /// 1 to 120 characters.
    pub display_name: String,
    /// As typed.
    pub password: String,
    /// Where the client is.
    pub ip: Option<IpAddr>,
    /// What the client says it is.
    pub user_agent: Option<String>,
}

impl std::fmt::Debug for Registration {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Registration").field("ip", &self.ip).finish_non_exhaustive()
    }
}

/// Why a person, a workspace or a membership was not made; each says the way
/// out.
#[derive(Debug, thiserror::Error)]
pub enum PeopleError {
    /// Not an address.
    #[error("{0:?} is not an e-mail address like name@example.com")]
    InvalidEmail(String),
    /// Empty, too long, or with control characters.
    #[error("a name has 1 to {MAX_NAME_CHARS} characters on one line")]
    InvalidName,
    /// Too short or too long.
    #[error("a password has {least} characters at least, and {MAX_PASSWORD_BYTES} bytes at most")]
    InvalidPassword {
        /// As configured.
        least: u32,
    },
    /// Not made by this service, altered, or too old.
    #[error("the token is not valid, or has expired")]
    InvalidVoucher,
    /// Someone has it.
    #[error("there is a user with the e-mail {0} already")]
    EmailTaken(String),
    /// Not a slug.
    #[error(
        "{0:?} is not a slug: 1 to {MAX_SLUG_BYTES} lower-case letters, digits and hyphens within"
    )]
    InvalidSlug(String),
    /// Another workspace has it.
    #[error("there is a workspace with the slug {0} already; choose another")]
    SlugTaken(String),
    /// Not a flag.
    #[error("{0:?} is not a feature flag: lower-case letters, digits and underscores")]
    InvalidFlag(String),
    /// Nobody.
    #[error("there is no user with the e-mail {0}; make one with: assurance user create")]
    NoSuchUser(String),
    /// None.
    #[error("there is no workspace {0}; make one with: assurance workspace create")]
    NoSuchWorkspace(String),
    /// The person owns as many as one may.
    #[error("the person owns {0} workspaces already")]
    TooManyWorkspaces(u32),
    /// Too many hashes at a time, or hashing failed.
    #[error("the password could not be hashed: {0}")]
    Hash(String),
    /// The store cannot be asked.
    #[error(transparent)]
    Store(#[from] store::Error),
}

impl From<HashError> for PeopleError {
    fn from(error: HashError) -> Self {
        Self::Hash(error.to_string())
    }
}

impl Identity {
    /// Makes a person.
    ///
    /// # Errors
    /// Says what is wrong with the wish.
    pub async fn create_user(&self, wish: NewUser) -> Result<User, PeopleError> {
        let (user, hash) = self.checked_user(wish).await?;
        let mut writer = self.0.store.writer().await?;
        insert(&mut writer, &user, hash.as_deref(), self.0.clock.now()).await?;
        Ok(user)
    }

    /// Makes the account that a voucher is for, and signs its person in.
    ///
    /// # Errors
    /// [`PeopleError::InvalidVoucher`], or says what is wrong with the wish.
    pub async fn register(&self, wish: Registration) -> Result<NewSession, PeopleError> {
        let now = self.0.clock.now();
        let email = voucher::address(&self.0.keys, &wish.voucher, now);
        let (user, hash) = self
            .checked_user(NewUser {
                email: email.ok_or(PeopleError::InvalidVoucher)?,
                display_name: wish.display_name,
                password: Some(wish.password),
                email_verified: true,
            })
            .await?;
        let origin = Origin::new(wish.ip, wish.user_agent);
        let mut tx = self.0.store.begin(Access::WriteLocked).await?;
        insert(&mut tx, &user, hash.as_deref(), now).await?;
        let (session, _) = self.open_session(&mut tx, user, origin).await?;
        tx.commit().await?;
        tracing::info!(
            target: "security",
            event = "account_created",
            user.id = %session.principal.user.id,
            client.address = session.principal.session.ip,
            "account created with a voucher"
        );
        Ok(session)
    }

    async fn checked_user(&self, wish: NewUser) -> Result<(User, Option<String>), PeopleError> {
        let email = normalise_email(&wish.email);
        if !is_email(&email) {
            return Err(PeopleError::InvalidEmail(wish.email));
        }
        let display_name = checked_name(&wish.display_name)?;
        let hash = match &wish.password {
            Some(password) => Some(self.hash_new(password).await?),
            None => None,
        };
        let email_verified = wish.email_verified;
        Ok((User { id: UserId::new(), email, display_name, email_verified }, hash))
    }

    /// Replaces a person's password, ends all their sessions, and forgets
    /// failures to sign in.
    ///
    /// # Errors
    /// Says what is wrong with the wish.
    pub async fn set_password(&self, user: UserId, password: &str) -> Result<(), PeopleError> {
        let hash = self.hash_new(password).await?;
        let mut tx = self.0.store.begin(Access::WriteLocked).await?;
        users::set_password(&mut tx, user, &hash).await?;
        if let Some(user) = users::find(&mut tx, user).await? {
            self.forget_failures(&mut tx, &user.email).await?;
        }
        let ended = store::sessions::delete_all(&mut tx, user).await?;
        tx.commit().await?;
        self.forget_sessions(&ended);
        Ok(())
    }

    /// Finds a person.
    ///
    /// # Errors
    /// [`PeopleError::NoSuchUser`], or where the store cannot be asked.
    pub async fn user_by_email(&self, email: &str) -> Result<User, PeopleError> {
        let email = normalise_email(email);
        let mut reader = self.0.store.reader().await?;
        let found = users::by_email(&mut reader, &email).await?;
        reader.release();
        found.map(|(user, _)| user).ok_or(PeopleError::NoSuchUser(email))
    }

    /// Makes a workspace and, where one is named, its owner; without a slug,
    /// one is made of the name, or else of the id.
    ///
    /// # Errors
    /// Says what is wrong with the wish.
    pub async fn create_workspace(
        &self,
        owner: Option<UserId>,
        name: &str,
        slug: Option<&str>,
    ) -> Result<Workspace, PeopleError> {
        self.create_workspace_once((owner, None), name, slug, |_| None).await
    }

    /// The same, for an owner who may have so many at most, and keeps an answer
    /// with it.
    ///
    /// # Errors
    /// As [`Identity::create_workspace`]; [`PeopleError::TooManyWorkspaces`]; or
    /// where the answer's key has one.
    pub async fn create_workspace_once(
        &self,
        (owner, most): (Option<UserId>, Option<u32>),
        name: &str,
        slug: Option<&str>,
        kept: impl FnOnce(&Workspace) -> Option<IdempotentReply>,
    ) -> Result<Workspace, PeopleError> {
        let name = checked_name(name)?;
        let (id, now) = (WorkspaceId::new(), self.0.clock.now());
        let slug = slug.map_or_else(|| own_slug(&name, id), str::to_owned);
        if !is_slug(&slug) {
            return Err(PeopleError::InvalidSlug(slug));
        }
        let workspace = Workspace { id, name, slug, created_at: now };
        let mut tx = self.0.store.begin(Access::WriteLocked).await?;
        if let (Some(owner), Some(most)) = (owner, most) {
            let owned = memberships::count_owned(&mut tx, owner).await?;
            if owned >= i64::from(most) {
                return Err(PeopleError::TooManyWorkspaces(most));
            }
        }
        match workspaces::insert(&mut tx, &workspace).await {
            Err(store::Error::AlreadyExists) => return Err(PeopleError::SlugTaken(workspace.slug)),
            other => other?,
        }
        if let Some(owner) = owner {
            memberships::put(&mut tx, workspace.id, owner, Role::Owner, now).await?;
        }
        if let Some(reply) = kept(&workspace) {
            idempotency::keep(&mut tx, reply, now).await?;
        }
        tx.commit().await?;
        Ok(workspace)
    }

    /// Finds a workspace by its id or its slug.
    ///
    /// # Errors
    /// [`PeopleError::NoSuchWorkspace`], or where the store cannot be asked.
    pub async fn workspace(&self, id_or_slug: &str) -> Result<Workspace, PeopleError> {
        let mut reader = self.0.store.reader().await?;
        let found = match id_or_slug.parse::<WorkspaceId>() {
            Ok(id) => workspaces::find(&mut reader, id).await?,
            Err(_) => workspaces::by_slug(&mut reader, id_or_slug).await?,
        };
        reader.release();
        found.ok_or_else(|| PeopleError::NoSuchWorkspace(id_or_slug.to_owned()))
    }

    /// One page of a person's workspaces, by slug, and the next page's cursor.
    ///
    /// # Errors
    /// [`store::Error::InvalidCursor`] for a cursor that this person was not
    /// given; or where the store cannot be asked.
    pub async fn workspaces_of(
        &self,
        user: UserId,
        cursor: Option<&str>,
        limit: u32,
    ) -> Result<(Vec<(Workspace, Role)>, Option<String>), store::Error> {
        let key = self.0.keys.derive("query cursor");
        let mut reader = self.0.store.reader().await?;
        let page = workspaces::page_of_user(&mut reader, user, cursor, limit, &key).await?;
        reader.release();
        Ok(page)
    }

    /// Makes a person a member, or changes a member's role.
    ///
    /// # Errors
    /// Where the store cannot be asked.
    pub async fn put_member(
        &self,
        workspace: WorkspaceId,
        user: UserId,
        role: Role,
    ) -> Result<(), store::Error> {
        let mut writer = self.0.store.writer().await?;
        memberships::put(&mut writer, workspace, user, role, self.0.clock.now()).await?;
        writer.release();
        self.0.memberships.invalidate(&(user, workspace));
        Ok(())
    }

    /// Turns a feature of a workspace on or off.
    ///
    /// # Errors
    /// [`PeopleError::InvalidFlag`], or where the store cannot be asked.
    pub async fn set_flag(
        &self,
        workspace: WorkspaceId,
        flag: &str,
        enabled: bool,
    ) -> Result<(), PeopleError> {
        let letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        if flag.is_empty() || flag.len() > MAX_SLUG_BYTES || !flag.bytes().all(letter) {
            return Err(PeopleError::InvalidFlag(flag.to_owned()));
        }
        let mut writer = self.0.store.writer().await?;
        workspaces::set_flag(&mut writer, workspace, flag, enabled).await?;
        writer.release();
        self.0.memberships.invalidate_where(|(_, of)| *of == workspace);
        Ok(())
    }

    async fn hash_new(&self, password: &str) -> Result<String, PeopleError> {
        let least = self.0.settings.passwords.min_length;
        if password.chars().count() < least as usize || password.len() > MAX_PASSWORD_BYTES {
            return Err(PeopleError::InvalidPassword { least });
        }
        Ok(self.0.passwords.hash(password).await?)
    }
}

async fn insert(
    connection: &mut Connection,
    user: &User,
    password_hash: Option<&str>,
    now: Timestamp,
) -> Result<(), PeopleError> {
    match users::insert(connection, user, password_hash, now).await {
        Err(store::Error::AlreadyExists) => Err(PeopleError::EmailTaken(user.email.clone())),
        other => Ok(other?),
    }
}

/// How an address is stored and looked up.
#[must_use]
pub fn normalise_email(email: &str) -> String {
    email.trim().to_lowercase()
}

/// Whether a normalised address is one.
#[must_use]
pub fn is_email(email: &str) -> bool {
    let Some((local, domain)) = email.rsplit_once('@') else { return false };
    let plain = |part: &str| {
        !part.is_empty() && !part.chars().any(|c| c.is_whitespace() || c.is_control() || c == '@')
    };
    email.len() <= MAX_EMAIL_BYTES && plain(local) && plain(domain)
}

fn checked_name(name: &str) -> Result<String, PeopleError> {
    let name = name.trim();
    let fits = (1..=MAX_NAME_CHARS).contains(&name.chars().count());
    if fits && !name.chars().any(char::is_control) {
        Ok(name.to_owned())
    } else {
        Err(PeopleError::InvalidName)
    }
}

/// A slug made of a name.
#[must_use]
pub fn slug_of(name: &str) -> String {
    let mut slug = String::new();
    for letter in name.to_lowercase().chars() {
        if letter.is_ascii_alphanumeric() {
            slug.push(letter);
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
        if slug.len() == MAX_SLUG_BYTES {
            break;
        }
    }
    slug.trim_end_matches('-').to_owned()
}

/// The slug of a workspace whose maker names none: of its id, where the name
/// has no letter that a slug can have.
fn own_slug(name: &str, id: WorkspaceId) -> String {
    match slug_of(name) {
        // The end of a UUIDv7 is random.
        none if none.is_empty() => format!("workspace-{}", &id.0.simple().to_string()[20..]),
        slug => slug,
    }
}

fn is_slug(slug: &str) -> bool {
    let letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=MAX_SLUG_BYTES).contains(&slug.len())
        && slug.bytes().all(letter)
        && !slug.starts_with('-')
        && !slug.ends_with('-')
}

#[cfg(test)]
mod form_tests {
    use super::*;

    #[test]
    fn addresses_are_told_from_other_text() {
        for good in ["a@b", "ada.lovelace+x@example.com", "ü@exämple.org"] {
            assert!(is_email(&normalise_email(good)), "{good}");
        }
        for bad in
            ["", "@", "a@", "@b", "a b@c", "a@b@c", "a\n@b", &format!("{}@b", "a".repeat(260))]
        {
            assert!(!is_email(bad), "{bad}");
        }
        assert_eq!(normalise_email("  Ada@Example.COM "), "ada@example.com");
    }

    #[test]
    fn a_slug_is_made_of_a_name() {
        assert_eq!(slug_of("  Acme — Assurance, Ltd. "), "acme-assurance-ltd");
        assert!(is_slug(&slug_of(&"long name ".repeat(20))));
        let id = WorkspaceId::new();
        let of_id = own_slug("日本", id);
        assert!(is_slug(&of_id) && id.0.simple().to_string().ends_with(&of_id[10..]), "{of_id}");
        assert_eq!(own_slug("Acme", id), "acme");
        for bad in ["", "-a", "a-", "A", "a_b"] {
            assert!(!is_slug(bad), "{bad}");
        }
    }
}
