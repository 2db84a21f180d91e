//! What a job's step has sent out already, to the network or by mail.
//!
//! A step that lost a race is run again, with the same ids and the same
//! moment, and so asks for the same in the same order. It is not sent again:
//! the answers of the first go are given, and the other side hears a message
//! once.
//!
//! Invariant: no transaction is open while something is on its way, unless the
//! step has written into one.

use parking_lot::Mutex;
use sha2::{Digest, Sha256};

use super::{Fault, UnitOfWork};
use crate::egress::{Egress, EgressError, Incoming, Outgoing};
use crate::mail::{Mail, MailError, Message};

/// What came of something that was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Answer {
    Request(Result<Incoming, EgressError>),
    Mail(Result<(), MailError>),
}

/// The answers to what was sent, in order; shared by all goes at one step.
#[derive(Debug, Default)]
pub struct Sent(Mutex<Vec<(Fingerprint, Answer)>>);

/// Of what was sent: it may hold a secret, and is not kept.
type Fingerprint = [u8; 32];

impl UnitOfWork {
    /// Sends a request to the network, unless an earlier go at the same step
    /// has: then its answer is this one's too.
    ///
    /// # Errors
    /// Why there is no answer; or the step lost a race before it was sent.
    pub async fn send(
        &mut self,
        egress: &Egress,
        request: Outgoing,
    ) -> Result<Incoming, Fault<EgressError>> {
        self.let_go().await?;
        let fingerprint = of_request(&request);
        if let Some(Answer::Request(answer)) = self.earlier_answer(&fingerprint) {
            return answer.map_err(Fault::Refused);
        }
        let answer = egress.send(request).await;
        self.keep_answer(fingerprint, Answer::Request(answer.clone()));
        answer.map_err(Fault::Refused)
    }

    /// Sends mail, once for all goes at the same step.
    ///
    /// # Errors
    /// Why it is not sent; or the step lost a race before it was.
    pub async fn send_mail(
        &mut self,
        mail: &Mail,
        message: Message,
    ) -> Result<(), Fault<MailError>> {
        self.let_go().await?;
        let fingerprint = of_mail(&message);
        if let Some(Answer::Mail(answer)) = self.earlier_answer(&fingerprint) {
            return answer.map_err(Fault::Refused);
        }
        let (id, now) = (self.fresh_id(), self.spec.call.now);
        let answer = mail.send(message, id, now).await;
        self.keep_answer(fingerprint, Answer::Mail(answer.clone()));
        answer.map_err(Fault::Refused)
    }

    fn earlier_answer(&mut self, fingerprint: &Fingerprint) -> Option<Answer> {
        let sent = self.sent.as_ref()?;
        let nth = self.sends;
        self.sends += 1;
        sent.answer(nth, fingerprint)
    }

    fn keep_answer(&self, fingerprint: Fingerprint, answer: Answer) {
        if let Some(sent) = &self.sent {
            sent.keep(fingerprint, answer);
        }
    }
}

impl Sent {
    /// The answer to what was sent as the nth, if it was this. Where a go takes
    /// another turn, the answers from there on are forgotten.
    fn answer(&self, nth: usize, fingerprint: &Fingerprint) -> Option<Answer> {
        let mut sent = self.0.lock();
        match sent.get(nth) {
            Some((known, answer)) if known == fingerprint => Some(answer.clone()),
            _ => {
                sent.truncate(nth);
                None
            }
        }
    }

    /// Keeps the answer to the next one.
    fn keep(&self, fingerprint: Fingerprint, answer: Answer) {
        self.0.lock().push((fingerprint, answer));
    }
}

/// Equal for equal requests only.
fn of_request(request: &Outgoing) -> Fingerprint {
    let mut parts = vec![b"request".as_slice(), request.method.as_bytes(), request.url.as_bytes()];
    for (name, value) in &request.headers {
        parts.extend([name.as_bytes(), value.as_bytes()]);
    }
    parts.push(&request.body);
    of_parts(&parts)
}

/// Equal for equal messages only.
fn of_mail(message: &Message) -> Fingerprint {
    let Message { to, subject, text } = message;
    of_parts(&[b"mail", to.as_bytes(), subject.as_bytes(), text.as_bytes()])
}

fn of_parts(parts: &[&[u8]]) -> Fingerprint {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hash.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(url: &str) -> Fingerprint {
        of_request(&Outgoing {
            method: "POST".to_owned(),
            url: url.to_owned(),
            headers: Vec::new(),
            body: Vec::new(),
            timeout_ms: 0,
            max_response_bytes: 0,
        })
    }

    fn answered(status: u16) -> Answer {
        Answer::Request(Ok(Incoming { status, headers: Vec::new(), body: Vec::new() }))
    }

    #[test]
    fn a_second_go_gets_the_first_go_s_answers_until_it_takes_another_turn() {
        let sent = Sent::default();
        for (url, status) in [("a", 200), ("b", 201), ("c", 202)] {
            sent.keep(request(url), answered(status));
        }
        assert_eq!(sent.answer(0, &request("a")), Some(answered(200)));
        assert_eq!(sent.answer(1, &request("other")), None);
        assert_eq!(sent.answer(1, &request("b")), None, "forgotten from there on");
    }

    #[test]
    fn mail_and_requests_are_told_apart() {
        let message = |text: &str| Message {
            to: "ada@example.org".to_owned(),
            subject: "Hello".to_owned(),
            text: text.to_owned(),
        };
        assert_eq!(of_mail(&message("a")), of_mail(&message("a")));
        assert_ne!(of_mail(&message("a")), of_mail(&message("b")));
        assert_ne!(of_mail(&message("")), request(""));
    }
}
