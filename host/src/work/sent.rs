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
        let request = match self.room_for_answer(request.max_response_bytes) {
            Some(max_response_bytes) => Outgoing { max_response_bytes, ..request },
            None => return Err(Fault::Refused(EgressError::TooLarge)),
        };
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
        let counted = self.count_mail(&message.to, mail.limits()).await?;
        let (id, now) = (self.fresh_id(), self.spec.call.now);
        let answer = mail.send(message, id, now).await;
        if matches!(answer, Err(MailError::Unavailable(_))) {
            self.take_mail_back(&counted).await?;
        }
        self.keep_answer(fingerprint, Answer::Mail(answer.clone()));
        answer.map_err(Fault::Refused)
    }

    /// How large an answer may be, where the step wishes so much (0: as much as
    /// it may have); nothing, where it has taken all it may. Answers are kept
    /// for the step's later goes.
    fn room_for_answer(&self, wished: u32) -> Option<u32> {
        let Some(sent) = &self.sent else { return Some(wished) };
        let left = self.spec.limits.max_incoming_bytes.saturating_sub(sent.bytes());
        room(wished, left)
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

    /// Bytes of all answers.
    fn bytes(&self) -> u64 {
        self.0.lock().iter().map(|(_, answer)| answer.bytes()).sum()
    }

    /// Keeps the answer to the next one.
    fn keep(&self, fingerprint: Fingerprint, answer: Answer) {
        self.0.lock().push((fingerprint, answer));
    }
}

impl Answer {
    fn bytes(&self) -> u64 {
        let Self::Request(Ok(answer)) = self else { return 0 };
        let headers = answer.headers.iter().map(|(name, value)| name.len() + value.len());
        (answer.body.len() + headers.sum::<usize>()) as u64
    }
}

/// The bound of an answer of which there may be `left` bytes at most.
fn room(wished: u32, left: u64) -> Option<u32> {
    let left = u32::try_from(left).unwrap_or(u32::MAX);
    match (wished, left) {
        (_, 0) => None,
        (0, left) => Some(left),
        (wished, left) => Some(wished.min(left)),
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
    fn what_is_kept_of_answers_is_bounded() {
        let sent = Sent::default();
        let header = ("etag".to_owned(), "1".to_owned());
        let answer = Incoming { status: 200, headers: vec![header], body: vec![0; 95] };
        sent.keep(request("a"), Answer::Request(Ok(answer)));
        sent.keep(request("b"), Answer::Request(Err(EgressError::TooLarge)));
        assert_eq!(sent.bytes(), 100);
        assert_eq!(sent.answer(0, &request("another")), None);
        assert_eq!(sent.bytes(), 0, "what is forgotten makes room");
        assert_eq!((room(0, 7), room(5, 7), room(9, 7)), (Some(7), Some(5), Some(7)));
        assert_eq!((room(0, 0), room(5, 0), room(0, u64::MAX)), (None, None, Some(u32::MAX)));
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
