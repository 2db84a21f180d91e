//! Mail to people, by the operator's mail server, or into a folder if none is
//! configured.
//!
//! Invariant: a message's content is never logged, because it may contain a
//! link for its reader only.

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
use assurance_core::config::{Config, SecretString};
use assurance_core::domain::time::Timestamp;

/// Sender of messages in the mail folder if `mail.from` is not set.
const NOBODY: &str = "Workspace Assurance <assurance@localhost>";

/// The operator's settings for mail.
#[derive(Clone, Debug)]
pub struct Settings {
    /// URL of the mail server; `None`: messages are written into the folder.
    pub smtp_url: Option<SecretString>,
    /// Sender of all messages; `None` is allowed only without a mail server.
    pub from: Option<String>,
    /// Maximum time to send one message, in milliseconds.
    pub timeout_ms: u32,
    /// Limits on the number of messages.
    pub limits: MailLimits,
    /// Folder into which messages are written if there is no mail server.
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

/// Limits on the number of mail messages; see the configuration's `[mail]`.
#[derive(Clone, Copy, Debug)]
pub struct MailLimits {
    /// Maximum number of messages to one address per day, from all workspaces
    /// together.
    pub max_per_recipient_per_day: u32,
    /// Maximum number of messages from one workspace per day.
    pub max_per_workspace_per_day: u32,
    /// Minimum time between two messages to one address, in seconds.
    pub recipient_pause_seconds: u32,
}

impl From<&assurance_core::config::MailConfig> for MailLimits {
    fn from(section: &assurance_core::config::MailConfig) -> Self {
        Self {
            max_per_recipient_per_day: section.max_per_recipient_per_day,
            max_per_workspace_per_day: section.max_per_workspace_per_day,
            recipient_pause_seconds: section.recipient_pause_seconds,
        }
    }
}

/// A mail message to one person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Email address of the recipient, without a display name.
    pub to: String,
    /// Subject, 1 to 200 characters on one line.
    pub subject: String,
    /// Plain text body, at most 64 KiB.
    pub text: String,
}

/// Why a message was not sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MailError {
    /// The message is invalid and was not sent; the text names the reason.
    #[error("not a message: {0}")]
    Refused(String),
    /// The mail server refuses the message permanently, with this response.
    #[error("the mail server refused: {0}")]
    Rejected(String),
    /// The mail server does not respond, refuses temporarily, or requires
    /// encryption or other credentials.
    #[error("the mail server is unavailable: {0}")]
    Unavailable(String),
}

/// Sends mail by the mail server or into the folder. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Mailer(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    from: Mailbox,
    way: MailTransport,
    limits: MailLimits,
}

#[derive(Debug)]
enum MailTransport {
    Smtp(Smtp),
    Folder(PathBuf),
}

impl Mailer {
    /// Creates the mail sender without connecting to the server.
    ///
    /// # Errors
    /// The message names the invalid configuration key.
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
            Some(url) => MailTransport::Smtp(Smtp::new(url.reveal(), timeout)?),
            None => MailTransport::Folder(settings.folder),
        };
        Ok(Self(Arc::new(Inner { from, way, limits: settings.limits })))
    }

    /// Returns the limits on the number of messages; callers must count a
    /// message against them before sending.
    #[must_use]
    pub fn limits(&self) -> &MailLimits {
        &self.0.limits
    }

    /// Sends one mail message with this message id and date.
    ///
    /// # Errors
    /// The reason, and whether a retry can succeed.
    pub async fn send(&self, message: Message, id: Uuid, at: Timestamp) -> Result<(), MailError> {
        let message = message::compose(message, &self.0.from, id, at)?;
        match &self.0.way {
            MailTransport::Smtp(server) => server.send(message).await,
            MailTransport::Folder(folder) => folder::keep(folder, &message, id, at).await,
        }
    }
}
