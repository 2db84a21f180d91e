//! Limits of mail: per recipient over all workspaces, per workspace, each per
//! day, with a minimum pause between two mails to one recipient. They cannot be
//! avoided by using several accounts or workspaces.

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use super::{HostCallError, UnitOfWork};
use assurance_core::config::MailConfig;
use assurance_core::domain::time::Timestamp;
use assurance_outside::mail::MailError;
use assurance_store::mail_counts::{self, MailCount};
use assurance_store::{Error, TransactionAccess};

const DAY_MS: i64 = 86_400_000;

/// Keys of the two daily counters that one mail is added to: the recipient's
/// and the workspace's.
pub(super) struct MailCounterKeys {
    recipient: String,
    workspace: String,
}

impl UnitOfWork {
    /// Counts a mail against the daily limits before it is sent, in a
    /// transaction of its own, because a rollback of the job step must not undo
    /// the count.
    pub(super) async fn count_mail(
        &mut self,
        to: &str,
        limits: &MailConfig,
    ) -> Result<MailCounterKeys, HostCallError<MailError>> {
        if self.held().is_some() {
            let what = "mail is not sent in a step that has queried its own writes; send it in a \
                        step of its own (`continue`)";
            return Err(HostCallError::Refused(MailError::Refused(what.to_owned())));
        }
        let counted = MailCounterKeys {
            recipient: self.recipient(to),
            workspace: format!("workspace {}", self.spec.call.workspace),
        };
        let now = self.spec.call.now;
        let mut tx = self.store.begin(TransactionAccess::WriteLocked).await?;
        // Always in this order, so that two mails cannot deadlock.
        let known = mail_counts::lock(&mut tx, &counted.recipient, now).await?;
        let next = next_to(&known, limits, now).map_err(HostCallError::Refused)?;
        mail_counts::put(&mut tx, &counted.recipient, &next).await?;
        let known = mail_counts::lock(&mut tx, &counted.workspace, now).await?;
        let next = next_from(&known, limits, now).map_err(HostCallError::Refused)?;
        mail_counts::put(&mut tx, &counted.workspace, &next).await?;
        tx.commit().await?;
        Ok(counted)
    }

    /// Reverts the count of a mail that the server did not accept.
    pub(super) async fn uncount_mail(&self, counted: &MailCounterKeys) -> Result<(), Error> {
        let mut tx = self.store.begin(TransactionAccess::WriteLocked).await?;
        mail_counts::take_back(&mut tx, &counted.recipient).await?;
        mail_counts::take_back(&mut tx, &counted.workspace).await?;
        tx.commit().await
    }

    /// Returns the counter key of a mail address: a keyed hash.
    /// `name+anything@` counts as the same recipient as `name@`.
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

/// Returns a recipient's counter with one more mail, or an error if a limit is
/// reached. Checks the daily limit first, because it lasts longer than the
/// pause. Every limit ends, so none is a rejection.
fn next_to(known: &MailCount, limits: &MailConfig, now: Timestamp) -> Result<MailCount, MailError> {
    let most = limits.max_per_recipient_per_day;
    let next = next(known, most, now).ok_or_else(|| {
        MailError::Unavailable(format!(
            "{most} mails went to this address within a day, which is the limit \
             (mail.max_per_recipient_per_day); this one is tried again"
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

/// Returns a workspace's counter with one more mail, or an error if the daily
/// limit is reached.
fn next_from(
    known: &MailCount,
    limits: &MailConfig,
    now: Timestamp,
) -> Result<MailCount, MailError> {
    let most = limits.max_per_workspace_per_day;
    next(known, most, now).ok_or_else(|| {
        MailError::Unavailable(format!(
            "this workspace sent {most} mails within a day, which is the limit \
             (mail.max_per_workspace_per_day); this one is tried again"
        ))
    })
}

/// Returns a mail counter with one more mail; `None` if the daily limit `most`
/// is reached.
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
    const LIMITS: MailConfig = MailConfig {
        smtp_url: None,
        from: None,
        timeout_ms: 1_000,
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
            assert!(matches!(third, MailError::Unavailable(_)), "{third}");
            assert!(third.to_string().contains("mail.max_per_recipient_per_day"), "{third}");
        }
        assert_eq!(next_to(&second, &LIMITS, NOW.plus_ms(DAY_MS)).unwrap().mails, 1);
    }

    #[test]
    fn a_workspace_sends_a_day_s_number() {
        let none = MailCount { mails: 0, since: NOW, last_at: Timestamp(0) };
        let first = next_from(&none, &LIMITS, NOW).unwrap();
        let second = next_from(&first, &LIMITS, NOW.plus_ms(1)).unwrap_err();
        assert!(matches!(second, MailError::Unavailable(_)), "{second}");
        assert!(second.to_string().contains("mail.max_per_workspace_per_day"), "{second}");
    }
}
