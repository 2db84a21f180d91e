//! Mail to people; only in jobs.

use crate::context::JobCtx;
pub use crate::wit::assurance::area::mail::{Error as MailError, Message};

impl JobCtx {
    /// Sends a message, and waits until the mail server has taken it. A job
    /// that fails afterwards sends it again.
    ///
    /// # Errors
    /// Says whether it is worth another try.
    pub fn send_mail(&self, message: &Message) -> Result<(), MailError> {
        self.host.mail_send(message)
    }
}
