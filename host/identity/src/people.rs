//! Creating and changing users, workspaces, memberships and feature flags.

use std::net::IpAddr;

use super::members::{self, RemoveMemberError};
use super::password::{HashError, MAX_PASSWORD_BYTES};
use super::sessions::SessionOrigin;
use super::{IdentityService, NewSession, email_token};
use assurance_core::domain::id::{UserId, WorkspaceId};
use assurance_core::domain::people::{User, Workspace};
use assurance_core::domain::role::Role;
use assurance_core::domain::time::Timestamp;
use assurance_store::idempotency::{self, StoredReply};
use assurance_store::{
    self as store, Connection, TransactionAccess, memberships, users, workspaces,
};

const MAX_EMAIL_BYTES: usize = 254;
const MAX_NAME_CHARS: usize = 120;
const MAX_SLUG_BYTES: usize = 63;

/// Data of a user to create.
#[derive(Clone)]
pub struct NewUser {
    /// Email address; normalized by the service.
    pub email: String,
    /// Display name, 1 to 120 characters.
    pub display_name: String,
    /// Password; `None` for an account that cannot sign in with one.
    pub password: Option<String>,
    /// Whether it is verified that the address belongs to the person.
    pub email_verified: bool,
}

/// Request for a new account whose email address a voucher proves.
#[derive(Clone)]
pub struct RegistrationRequest {
    /// Voucher that proves the email address; see [`vouch`](super::vouch).
    pub voucher: String,
    /// Display name, 1 to 120 characters.
    pub display_name: String,
    /// Password as typed.
    pub password: String,
    /// IP address of the registering client; stored with the new session.
    pub ip: Option<IpAddr>,
    /// `User-Agent` of the registering client; stored with the new session.
    pub user_agent: Option<String>,
}

/// Reason why a user, workspace or membership was not changed; each message
/// includes the fix.
#[derive(Debug, thiserror::Error)]
pub enum PeopleError {
    /// The email address is invalid.
    #[error("{0:?} is not an e-mail address like name@example.com")]
    InvalidEmail(String),
    /// The name is empty or too long, or has control characters or those that change the
    /// direction of text.
    #[error(
        "a name has 1 to {MAX_NAME_CHARS} characters on one line, and none that changes the \
         direction of the text"
    )]
    InvalidName,
    /// The password is too short or too long.
    #[error("a password has {least} characters at least, and {MAX_PASSWORD_BYTES} bytes at most")]
    InvalidPassword {
        /// Minimum length from the configuration, in characters.
        least: u32,
    },
    /// The voucher is from another service, was altered, or has expired.
    #[error("the token is not valid, or has expired")]
    InvalidVoucher,
    /// Another account has the email address.
    #[error("a user with the email address {0} exists")]
    EmailTaken(String),
    /// The workspace's slug is invalid.
    #[error(
        "{0:?} is not a slug: 1 to {MAX_SLUG_BYTES} lower-case letters, digits and hyphens within"
    )]
    InvalidSlug(String),
    /// Another workspace has the slug.
    #[error("a workspace with the slug {0} exists; choose another")]
    SlugTaken(String),
    /// The feature flag's name is invalid.
    #[error("{0:?} is not a feature flag: lower-case letters, digits and underscores")]
    InvalidFlag(String),
    /// No user has this email address.
    #[error("there is no user with the e-mail {0}; make one with: assurance user create")]
    NoSuchUser(String),
    /// An operator has disabled the account.
    #[error("the account of {0} is disabled; enable it with: assurance user enable")]
    Disabled(String),
    /// No workspace has this id or slug.
    #[error("there is no workspace {0}; make one with: assurance workspace create")]
    NoSuchWorkspace(String),
    /// The person owns the maximum number of workspaces.
    #[error("the person owns {0} workspaces already")]
    TooManyWorkspaces(u32),
    /// The role of the workspace's last owner who can sign in cannot be lowered.
    #[error("{}", RemoveMemberError::LastOwner)]
    LastOwner,
    /// Hashing failed, or too many hashes are waiting.
    #[error("the password could not be hashed: {0}")]
    Hash(String),
    /// An error of the store, such as an unavailable database.
    #[error(transparent)]
    Store(#[from] store::Error),
}

impl From<HashError> for PeopleError {
    fn from(error: HashError) -> Self {
        Self::Hash(error.to_string())
    }
}

impl IdentityService {
    /// Creates a user account, with or without a password.
    ///
    /// # Errors
    /// An error that names the refused member of the request.
    pub async fn create_user(&self, new_user: NewUser) -> Result<User, PeopleError> {
        let (user, hash) = self.checked_user(new_user).await?;
        let mut writer = self.0.store.writer().await?;
        insert(&mut writer, &user, hash.as_deref(), self.0.clock.now()).await?;
        Ok(user)
    }

    /// Creates the account for a voucher, and signs its person in.
    ///
    /// # Errors
    /// [`PeopleError::InvalidVoucher`], or an error that names the refused
    /// member of the request.
    pub async fn register(
        &self,
        registration: RegistrationRequest,
    ) -> Result<NewSession, PeopleError> {
        let now = self.0.clock.now();
        let email = email_token::address(&self.0.keys, &registration.voucher, now);
        let (user, hash) = self
            .checked_user(NewUser {
                email: email.ok_or(PeopleError::InvalidVoucher)?,
                display_name: registration.display_name,
                password: Some(registration.password),
                email_verified: true,
            })
            .await?;
        let origin = SessionOrigin::new(registration.ip, registration.user_agent);
        let mut tx = self.0.store.begin(TransactionAccess::WriteLocked).await?;
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

    async fn checked_user(&self, new_user: NewUser) -> Result<(User, Option<String>), PeopleError> {
        let email = normalize_email(&new_user.email);
        if !is_email(&email) {
            return Err(PeopleError::InvalidEmail(new_user.email));
        }
        let display_name = checked_name(&new_user.display_name)?;
        let hash = match &new_user.password {
            Some(password) => Some(self.hash_new(password).await?),
            None => None,
        };
        let email_verified = new_user.email_verified;
        Ok((User { id: UserId::new(), email, display_name, email_verified }, hash))
    }

    /// Replaces a person's password, ends all sessions, and deletes the count
    /// of failed sign-ins.
    ///
    /// # Errors
    /// An error that names the refused member of the request.
    pub async fn set_password(&self, user: UserId, password: &str) -> Result<(), PeopleError> {
        let hash = self.hash_new(password).await?;
        let mut tx = self.0.store.begin(TransactionAccess::WriteLocked).await?;
        users::set_password(&mut tx, user, &hash).await?;
        if let Some(user) = users::find(&mut tx, user).await? {
            self.forget_failures(&mut tx, &user.email).await?;
        }
        let ended = store::sessions::delete_all(&mut tx, user).await?;
        tx.commit().await?;
        self.forget_sessions(&ended);
        Ok(())
    }

    /// Finds a person by email address.
    ///
    /// # Errors
    /// [`PeopleError::NoSuchUser`], or the database is unavailable.
    pub async fn user_by_email(&self, email: &str) -> Result<User, PeopleError> {
        let email = normalize_email(email);
        let found = self.0.store.read(async |c| users::by_email(c, &email).await).await?;
        found.map(|(user, _)| user).ok_or(PeopleError::NoSuchUser(email))
    }

    /// Creates a workspace and, if `owner` is set, its owner's membership.
    /// Without a slug, one is derived from the name or the id.
    ///
    /// # Errors
    /// An error that names the refused member of the request.
    pub async fn create_workspace(
        &self,
        owner: Option<UserId>,
        name: &str,
        slug: Option<&str>,
    ) -> Result<Workspace, PeopleError> {
        self.create_workspace_once((owner, None), name, slug, |_| None).await
    }

    /// Like [`IdentityService::create_workspace`], with a maximum number of workspaces
    /// that the owner may have, and a response to store for the idempotency
    /// key.
    ///
    /// # Errors
    /// The errors of [`IdentityService::create_workspace`];
    /// [`PeopleError::TooManyWorkspaces`]; or the key already has a response.
    pub async fn create_workspace_once(
        &self,
        (owner, most): (Option<UserId>, Option<u32>),
        name: &str,
        slug: Option<&str>,
        kept: impl FnOnce(&Workspace) -> Option<StoredReply>,
    ) -> Result<Workspace, PeopleError> {
        let name = checked_name(name)?;
        let (id, now) = (WorkspaceId::new(), self.0.clock.now());
        let slug = slug.map_or_else(|| own_slug(&name, id), str::to_owned);
        if !is_slug(&slug) {
            return Err(PeopleError::InvalidSlug(slug));
        }
        let workspace = Workspace { id, name, slug, created_at: now };
        let mut tx = self.0.store.begin(TransactionAccess::WriteLocked).await?;
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

    /// Finds a workspace by its id or slug.
    ///
    /// # Errors
    /// [`PeopleError::NoSuchWorkspace`], or the database is unavailable.
    pub async fn workspace(&self, id_or_slug: &str) -> Result<Workspace, PeopleError> {
        let found = self.0.store.read(async |c| match id_or_slug.parse::<WorkspaceId>() {
            Ok(id) => workspaces::find(c, id).await,
            Err(_) => workspaces::by_slug(c, id_or_slug).await,
        });
        found.await?.ok_or_else(|| PeopleError::NoSuchWorkspace(id_or_slug.to_owned()))
    }

    /// Returns one page of a person's workspaces, ordered by slug, and the next
    /// page's cursor.
    ///
    /// # Errors
    /// [`store::Error::InvalidCursor`] for a cursor of another person, or the
    /// database is unavailable.
    pub async fn workspaces_of(
        &self,
        user: UserId,
        cursor: Option<&str>,
        limit: u32,
    ) -> Result<(Vec<(Workspace, Role)>, Option<String>), store::Error> {
        let key = self.0.keys.derive("query cursor");
        let store = &self.0.store;
        store.read(async |c| workspaces::page_of_user(c, user, cursor, limit, &key).await).await
    }

    /// Adds a member, or changes the role of one.
    ///
    /// # Errors
    /// [`PeopleError::LastOwner`], or the database is unavailable.
    pub async fn put_member(
        &self,
        workspace: WorkspaceId,
        user: UserId,
        role: Role,
    ) -> Result<(), PeopleError> {
        let mut tx = self.0.store.begin(TransactionAccess::WriteLocked).await?;
        let before = memberships::lock_role(&mut tx, workspace, user).await?;
        if role < Role::Owner && members::is_last_owner(&mut tx, workspace, user, before).await? {
            return Err(PeopleError::LastOwner);
        }
        memberships::put(&mut tx, workspace, user, role, self.0.clock.now()).await?;
        tx.commit().await?;
        self.0.memberships.invalidate(&(user, workspace));
        Ok(())
    }

    /// Turns a feature of a workspace on or off.
    ///
    /// # Errors
    /// [`PeopleError::InvalidFlag`], or the database is unavailable.
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
        let store = &self.0.store;
        store.write(async |c| workspaces::set_flag(c, workspace, flag, enabled).await).await?;
        self.0.memberships.invalidate_where(|(_, of), _| *of == workspace);
        Ok(())
    }

    /// Checks the length of a new password.
    ///
    /// # Errors
    /// [`PeopleError::InvalidPassword`].
    pub(super) fn check_new(&self, password: &str) -> Result<(), PeopleError> {
        let least = self.0.settings.passwords.min_length;
        if password.chars().count() < least as usize || password.len() > MAX_PASSWORD_BYTES {
            return Err(PeopleError::InvalidPassword { least });
        }
        Ok(())
    }

    pub(super) async fn hash_new(&self, password: &str) -> Result<String, PeopleError> {
        self.check_new(password)?;
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

/// Returns an email address in the form in which it is stored and looked up:
/// trimmed and in lower case.
#[must_use]
pub fn normalize_email(email: &str) -> String {
    email.trim().to_lowercase()
}

/// Returns whether a normalized email address is valid.
#[must_use]
pub fn is_email(email: &str) -> bool {
    let Some((local, domain)) = email.rsplit_once('@') else { return false };
    let plain = |part: &str| {
        !part.is_empty() && !part.chars().any(|c| c.is_whitespace() || c.is_control() || c == '@')
    };
    email.len() <= MAX_EMAIL_BYTES && plain(local) && plain(domain)
}

pub(super) fn checked_name(name: &str) -> Result<String, PeopleError> {
    let name = name.trim();
    let fits = (1..=MAX_NAME_CHARS).contains(&name.chars().count());
    if fits && !name.chars().any(|c| c.is_control() || is_bidi_control(c)) {
        Ok(name.to_owned())
    } else {
        Err(PeopleError::InvalidName)
    }
}

/// Returns whether a character changes the direction of the text after it (Unicode Standard Annex
/// 9, section 2). In a name it could change how the rest of a mail or page reads.
fn is_bidi_control(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Derives a slug from a name.
fn slug_of(name: &str) -> String {
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

/// Returns the slug of a workspace without a given one: derived from the name,
/// or from the id if the name has no usable letter.
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
            assert!(is_email(&normalize_email(good)), "{good}");
        }
        for bad in
            ["", "@", "a@", "@b", "a b@c", "a@b@c", "a\n@b", &format!("{}@b", "a".repeat(260))]
        {
            assert!(!is_email(bad), "{bad}");
        }
        assert_eq!(normalize_email("  Ada@Example.COM "), "ada@example.com");
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
