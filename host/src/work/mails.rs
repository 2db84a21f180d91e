//! Limits of mail: by recipient over all workspaces, by workspace, each in a
//! day, with a pause between two mails to one recipient. They count the one
//! who causes the mail, and nobody's accounts or workspaces get round them.

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use super::{Fault, UnitOfWork};
use crate::domain::time::Timestamp;
use crate::mail::{Limits, MailError};
use crate::store::mail_counts::{self, MailCount};
use crate::store::{Access, Error};

const DAY_MS: i64 = 86_400_000;

/// What one mail counts against.
pub(super) struct Counted {
    recipient: String,
    workspace: String,
}

impl UnitOfWork {
    /// Counts a mail before it is sent, in a transaction of its own: the end of
    /// the step must not undo it.
    pub(super) async fn count_mail(
        &mut self,
        to: &str,
        limits: &Limits,
    ) -> Result<Counted, Fault<MailError>> {
        if self.held().is_some() {
            let what = "mail is not sent in a step that has queried its own writes; send it in a \
                        step of its own (`continue`)";
            return Err(Fault::Refused(MailError::Refused(what.to_owned())));
        }
        let counted = Counted {
            recipient: self.recipient(to),
            workspace: format!("workspace {}", self.spec.call.workspace),
        };
        let now = self.spec.call.now;
        let mut tx = self.store.begin(Access::WriteLocked).await?;
        // Always in this order, so that two mails cannot wait for each other.
        let known = mail_counts::lock(&mut tx, &counted.recipient, now).await?;
        let next = next_to(&known, limits, now).map_err(Fault::Refused)?;
        mail_counts::put(&mut tx, &counted.recipient, &next).await?;
        let known = mail_counts::lock(&mut tx, &counted.workspace, now).await?;
        let next = next_from(&known, limits, now).map_err(Fault::Refused)?;
        mail_counts::put(&mut tx, &counted.workspace, &next).await?;
        tx.commit().await?;
        Ok(counted)
    }

    /// A mail that the server did not take counts for nothing.
    pub(super) async fn take_mail_back(&self, counted: &Counted) -> Result<(), Error> {
        let mut tx = self.store.begin(Access::WriteLocked).await?;
        mail_counts::take_back(&mut tx, &counted.recipient).await?;
        mail_counts::take_back(&mut tx, &counted.workspace).await?;
        tx.commit().await
    }

    /// Whoever reads an address's mail reads that of `name+anything@` too. Only
    /// a keyed hash is kept.
    fn recipient(&self, to: &str) -> String {
        let to = to.trim().to_lowercase();
        let (name, domain) = to.rsplit_once('@').unwrap_or((&to, ""));
        let name = name.split('+').next().unwrap_or_default();
        let mac = Hmac::<Sha256>::new_from_slice(&self.keys.derive("mail recipients"));
        let mut mac = mac.expect("HMAC takes a key of any length");
        mac.update(format!("{name}@{domain}").as_bytes());
        format!("recipient {}", hex::encode(mac.finalize().into_bytes()))
    }
}

/// One more to a recipient. The day's number is looked at first: another try
/// on the same day does not help.
fn next_to(known: &MailCount, limits: &Limits, now: Timestamp) -> Result<MailCount, MailError> {
    let most = limits.max_per_recipient_per_day;
    let next = next(known, most, now).ok_or_else(|| {
        MailError::Rejected(format!(
            "{most} mails went to this address within a day, the most that do \
             (mail.max_per_recipient_per_day); try again tomorrow"
        ))
    })?;
    let pause = limits.recipient_pause_seconds;
    if known.mails > 0 && now < known.last_at.plus_ms(i64::from(pause) * 1_000) {
        return Err(MailError::Unavailable(format!(
            "another mail went to this address less than {pause} s ago \
             (mail.recipient_pause_seconds); this one is tried again"
        )));
    }
    Ok(next)
}

/// One more from a workspace.
fn next_from(known: &MailCount, limits: &Limits, now: Timestamp) -> Result<MailCount, MailError> {
    let most = limits.max_per_workspace_per_day;
    next(known, most, now).ok_or_else(|| {
        MailError::Rejected(format!(
            "this workspace sent {most} mails within a day, the most that it may \
             (mail.max_per_workspace_per_day); try again tomorrow"
        ))
    })
}

/// The count with one more; `None` if the day's number is used up.
fn next(known: &MailCount, most: u32, now: Timestamp) -> Option<MailCount> {
    if known.mails == 0 || now >= known.since.plus_ms(DAY_MS) {
        return Some(MailCount { mails: 1, since: now, last_at: now });
    }
    let more = MailCount { mails: known.mails + 1, since: known.since, last_at: now };
    (known.mails < i64::from(most)).then_some(more)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_790_000_000_000_000);
    const LIMITS: Limits = Limits {
        max_per_recipient_per_day: 2,
        max_per_workspace_per_day: 1,
        recipient_pause_seconds: 10,
    };

    #[test]
    fn a_recipient_gets_a_day_s_number_with_pauses() {
        let none = MailCount { mails: 0, since: NOW, last_at: Timestamp(0) };
        let first = next_to(&none, &LIMITS, NOW).unwrap();
        let early = next_to(&first, &LIMITS, NOW.plus_ms(9_999)).unwrap_err();
        assert!(matches!(early, MailError::Unavailable(_)), "{early}");
        let second = next_to(&first, &LIMITS, NOW.plus_ms(10_000)).unwrap();
        for ms in [10_001, DAY_MS - 1] {
            let third = next_to(&second, &LIMITS, NOW.plus_ms(ms)).unwrap_err();
            assert!(third.to_string().contains("mail.max_per_recipient_per_day"), "{third}");
        }
        assert_eq!(next_to(&second, &LIMITS, NOW.plus_ms(DAY_MS)).unwrap().mails, 1);
    }

    #[test]
    fn a_workspace_sends_a_day_s_number() {
        let none = MailCount { mails: 0, since: NOW, last_at: Timestamp(0) };
        let first = next_from(&none, &LIMITS, NOW).unwrap();
        let second = next_from(&first, &LIMITS, NOW.plus_ms(1)).unwrap_err();
        assert!(second.to_string().contains("mail.max_per_workspace_per_day"), "{second}");
    }
}
