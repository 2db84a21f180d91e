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
use assurance_core::config::{Config, MailConfig};
use assurance_core::domain::time::Timestamp;

/// Sender of messages in the mail folder if `mail.from` is not set.
const NOBODY: &str = "Workspace Assurance <assurance@localhost>";

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
pub struct Mailer(Arc<MailerState>);

#[derive(Debug)]
struct MailerState {
    from: Mailbox,
    way: MailTransport,
    config: MailConfig,
}

#[derive(Debug)]
enum MailTransport {
    Smtp(Smtp),
    Folder(PathBuf),
}

impl Mailer {
    /// Creates the mail sender from the section `mail` without connecting to
    /// the server. Without a server, messages are written into the folder
    /// `mail` of the data folder.
    ///
    /// # Errors
    /// The message names the invalid configuration key.
    pub fn new(config: &Config) -> anyhow::Result<Self> {
        let mail = &config.mail;
        let from = mail.from.as_deref().unwrap_or(NOBODY);
        let from = from.parse().map_err(|error| {
            anyhow::anyhow!(
                "configuration key mail.from: {from:?} is no address like \
                 Assurance <assurance@example.com>: {error}"
            )
        })?;
        let timeout = Duration::from_millis(u64::from(mail.timeout_ms));
        let way = match &mail.smtp_url {
            Some(url) => MailTransport::Smtp(Smtp::new(url.reveal(), timeout)?),
            None => MailTransport::Folder(config.data_dir.join("mail")),
        };
        Ok(Self(Arc::new(MailerState { from, way, config: mail.clone() })))
    }

    /// Returns the configuration with the limits on the number of messages;
    /// callers must count a message against them before sending.
    #[must_use]
    pub fn limits(&self) -> &MailConfig {
        &self.0.config
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
