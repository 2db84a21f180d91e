//! Builds mail messages (RFC 5322).

use std::time::{Duration, UNIX_EPOCH};

use lettre::message::Mailbox;
use lettre::message::header::{ContentType, MIME_VERSION_1_0};
use lettre::{Address, Message as Composed};
use uuid::Uuid;

use super::{MailError, Message};
use assurance_core::domain::time::Timestamp;

/// Maximum length of a mail's subject, in characters.
const MAX_SUBJECT: usize = 200;
/// Maximum size of a mail's plain text body, in bytes.
const MAX_TEXT: usize = 65_536;

pub(super) fn compose(
    message: Message,
    from: &Mailbox,
    id: Uuid,
    at: Timestamp,
) -> Result<Composed, MailError> {
    let to: Address = message
        .to
        .parse()
        .map_err(|error| MailError::Refused(format!("`to` is not an address: {error}")))?;
    check(&message)?;
    let domain = from.email.domain();
    let micros = u64::try_from(at.0).unwrap_or_default();
    Composed::builder()
        .from(from.clone())
        .to(Mailbox::new(None, to))
        .subject(message.subject)
        .date(UNIX_EPOCH + Duration::from_micros(micros))
        .message_id(Some(format!("<{id}@{domain}>")))
        // RFC 2045, section 4: without it, the body's encoding means nothing.
        .header(MIME_VERSION_1_0)
        .header(ContentType::TEXT_PLAIN)
        .body(message.text)
        .map_err(|error| MailError::Refused(error.to_string()))
}

fn check(message: &Message) -> Result<(), MailError> {
    let subject = &message.subject;
    if !(1..=MAX_SUBJECT).contains(&subject.chars().count()) || subject.contains(char::is_control) {
        let what = format!("a subject has 1 to {MAX_SUBJECT} characters on one line");
        return Err(MailError::Refused(what));
    }
    if message.text.len() > MAX_TEXT {
        return Err(MailError::Refused(format!("a text has at most {MAX_TEXT} bytes")));
    }
    Ok(())
}
