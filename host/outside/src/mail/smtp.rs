//! Sends mail to the operator's mail server (RFC 5321).

use std::time::Duration;

use lettre::transport::smtp::Error;
use lettre::{AsyncSmtpTransport, AsyncTransport as _, Message, Tokio1Executor};

use super::MailError;

/// Client of the operator's mail server; each message uses a connection of its
/// own.
#[derive(Debug)]
pub(super) struct Smtp {
    transport: AsyncSmtpTransport<Tokio1Executor>,
    timeout: Duration,
}

impl Smtp {
    pub(super) fn new(url: &str, timeout: Duration) -> anyhow::Result<Self> {
        crate::egress::install_tls_provider();
        let builder = AsyncSmtpTransport::<Tokio1Executor>::from_url(url).map_err(|_| {
            // The error omits the reason, which might quote the URL with its
            // password.
            anyhow::anyhow!(
                "configuration key mail.smtp_url: write it as smtps://USER:PASSWORD@HOST, \
                 smtp://USER:PASSWORD@HOST?tls=required or smtp://HOST"
            )
        })?;
        Ok(Self { transport: builder.timeout(Some(timeout)).build(), timeout })
    }

    /// Sends one mail message within the timeout. The library's own timeout is
    /// for each step of the protocol; this one is for all steps together.
    pub(super) async fn send(&self, message: Message) -> Result<(), MailError> {
        match tokio::time::timeout(self.timeout, self.transport.send(message)).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => Err(blame(&error)),
            Err(_) => Err(MailError::Unavailable("no response in time".to_owned())),
        }
    }
}

fn blame(error: &Error) -> MailError {
    let reason = match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    };
    if error.is_permanent() && !is_about_access(error) {
        MailError::Rejected(reason)
    } else {
        MailError::Unavailable(reason)
    }
}

/// Returns whether the server requires encryption or other credentials: 53z (RFC 3207, section 4,
/// and RFC 4954, section 6). It has not judged the message, and the operator can fix it.
fn is_about_access(error: &Error) -> bool {
    error.status().is_some_and(|code| (530..540).contains(&u16::from(code)))
}
