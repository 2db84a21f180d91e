//! What a job's step has sent to the network already.
//!
//! A step that lost a race is run again, with the same ids and the same
//! moment, and so asks for the same requests in the same order. They are not
//! made again: the answers of the first go are given, and the other side hears
//! a message once.

use parking_lot::Mutex;
use sha2::{Digest, Sha256};

use crate::egress::{EgressError, Incoming, Outgoing};

type Answer = Result<Incoming, EgressError>;

/// The answers to what was sent, in order; shared by all goes at one step.
#[derive(Debug, Default)]
pub struct Sent(Mutex<Vec<(Fingerprint, Answer)>>);

/// Of a request: it may hold a secret, and is not kept.
type Fingerprint = [u8; 32];

impl Sent {
    /// The answer to the request that was sent as the nth, if it was this one.
    /// Where a go takes another turn, the answers from there on are forgotten.
    #[must_use]
    pub fn answer(&self, nth: usize, request: &Outgoing) -> Option<Answer> {
        let mut sent = self.0.lock();
        match sent.get(nth) {
            Some((known, answer)) if *known == fingerprint(request) => Some(answer.clone()),
            _ => {
                sent.truncate(nth);
                None
            }
        }
    }

    /// Keeps the answer to the next request.
    pub fn keep(&self, request: Fingerprint, answer: &Answer) {
        self.0.lock().push((request, answer.clone()));
    }
}

/// Equal for equal requests only.
#[must_use]
pub(crate) fn fingerprint(request: &Outgoing) -> Fingerprint {
    let mut hash = Sha256::new();
    let mut part = |bytes: &[u8]| {
        hash.update((bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    };
    part(request.method.as_bytes());
    part(request.url.as_bytes());
    for (name, value) in &request.headers {
        part(name.as_bytes());
        part(value.as_bytes());
    }
    part(&request.body);
    hash.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(url: &str) -> Outgoing {
        Outgoing {
            method: "POST".to_owned(),
            url: url.to_owned(),
            headers: Vec::new(),
            body: Vec::new(),
            timeout_ms: 0,
            max_response_bytes: 0,
        }
    }

    fn answered(status: u16) -> Answer {
        Ok(Incoming { status, headers: Vec::new(), body: Vec::new() })
    }

    #[test]
    fn a_second_go_gets_the_first_go_s_answers_until_it_takes_another_turn() {
        let sent = Sent::default();
        for (url, status) in [("a", 200), ("b", 201), ("c", 202)] {
            sent.keep(fingerprint(&request(url)), &answered(status));
        }
        assert_eq!(sent.answer(0, &request("a")), Some(answered(200)));
        assert_eq!(sent.answer(1, &request("other")), None);
        assert_eq!(sent.answer(1, &request("b")), None, "forgotten from there on");
    }
}
