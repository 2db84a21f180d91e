//! Mail to people: through the operator's mail server, or into a folder where
//! none is configured.
//!
//! Invariant: what a message says is in the message alone, never in the log:
//! it may hold a link that only its reader should have.

mod folder;
mod message;
mod smtp;

#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use lettre::message::Mailbox;
use uuid::Uuid;

use self::smtp::Smtp;
use crate::config::{Config, Secret};
use crate::domain::time::Timestamp;

/// Whom messages are from where nobody is configured: those in the folder.
const NOBODY: &str = "Workspace Assurance <assurance@localhost>";

/// What an operator decides about mail.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The mail server; nothing: messages go into the folder.
    pub smtp_url: Option<Secret>,
    /// Whom messages are from.
    pub from: Option<String>,
    /// How long one message may take, in milliseconds.
    pub timeout_ms: u32,
    /// How many messages are sent.
    pub limits: Limits,
    /// Where messages go that go nowhere else.
    pub folder: PathBuf,
}

impl From<&Config> for Settings {
    fn from(config: &Config) -> Self {
        Self {
            smtp_url: config.mail.smtp_url.clone(),
            from: config.mail.from.clone(),
            timeout_ms: config.mail.timeout_ms,
            limits: (&config.mail).into(),
            folder: config.data_dir.join("mail"),
        }
    }
}

/// How many messages are sent; see the configuration's `[mail]`.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// To one address, from all workspaces together.
    pub max_per_recipient_per_day: u32,
    /// From one workspace.
    pub max_per_workspace_per_day: u32,
    /// Between two messages to one address.
    pub recipient_pause_seconds: u32,
}

impl From<&crate::config::Mail> for Limits {
    fn from(section: &crate::config::Mail) -> Self {
        Self {
            max_per_recipient_per_day: section.max_per_recipient_per_day,
            max_per_workspace_per_day: section.max_per_workspace_per_day,
            recipient_pause_seconds: section.recipient_pause_seconds,
        }
    }
}

/// A message to one person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// One address, without a name.
    pub to: String,
    /// On one line.
    pub subject: String,
    /// Plain.
    pub text: String,
}

/// Why a message was not sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MailError {
    /// Not a message that can be sent; the text says what is wrong.
    #[error("not a message: {0}")]
    Refused(String),
    /// The mail server will never take it; its answer.
    #[error("the mail server refused: {0}")]
    Rejected(String),
    /// The mail server does not answer, or asks to try again later.
    #[error("the mail server is away: {0}")]
    Unavailable(String),
}

/// The way mail goes. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Mail(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    from: Mailbox,
    way: Way,
    limits: Limits,
}

#[derive(Debug)]
enum Way {
    Smtp(Smtp),
    Folder(PathBuf),
}

impl Mail {
    /// Prepares the way; connects to nothing yet.
    ///
    /// # Errors
    /// Names the key of the configuration that is wrong.
    pub fn new(settings: Settings) -> anyhow::Result<Self> {
        let from = settings.from.as_deref().unwrap_or(NOBODY);
        let from = from.parse().map_err(|error| {
            anyhow::anyhow!(
                "configuration key mail.from: {from:?} is no address like \
                 Assurance <assurance@example.com>: {error}"
            )
        })?;
        let timeout = Duration::from_millis(u64::from(settings.timeout_ms));
        let way = match &settings.smtp_url {
            Some(url) => Way::Smtp(Smtp::new(url.reveal(), timeout)?),
            None => Way::Folder(settings.folder),
        };
        Ok(Self(Arc::new(Inner { from, way, limits: settings.limits })))
    }

    /// How many messages are sent; whoever sends one counts it before.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.0.limits
    }

    /// Sends one message, named by this id and written at this moment.
    ///
    /// # Errors
    /// Says why it is not sent, and whether it is worth another try.
    pub async fn send(&self, message: Message, id: Uuid, at: Timestamp) -> Result<(), MailError> {
        let message = message::compose(message, &self.0.from, id, at)?;
        match &self.0.way {
            Way::Smtp(server) => server.send(message).await,
            Way::Folder(folder) => folder::keep(folder, &message, id, at).await,
        }
    }
}
