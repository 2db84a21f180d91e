//! Sends e-mail; available in jobs only.

use crate::context::JobCtx;
pub use crate::wit::assurance::area::mail::{Error as MailError, Message};

impl JobCtx {
    /// Sends an e-mail and waits until the mail server accepts it. A job that fails afterwards
    /// sends the e-mail again when it is retried.
    ///
    /// # Errors
    /// The message is invalid, the mail server rejects it, or the server is unavailable; only the
    /// last is worth a retry.
    pub fn send_mail(&self, message: &Message) -> Result<(), MailError> {
        self.host.mail_send(message)
    }
}
