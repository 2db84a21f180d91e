//! Responses that a job's step has already received, from the network or the
//! mail server.
//!
//! A step runs again after a write conflict, with the same ids and the same
//! time, and so sends the same requests in the same order. They are not sent
//! again: the step receives the responses of the first attempt, and the
//! receiver gets each message once.
//!
//! Invariant: no transaction is open while a request is sent, unless the step
//! has written into one.

use futures::StreamExt as _;
use futures::stream::FuturesOrdered;
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::mails::MailCounterKeys;
use super::{HostCallError, UnitOfWork};
use assurance_outside::egress::{Egress, EgressError, EgressRequest, EgressResponse};
use assurance_outside::mail::{MailError, Mailer, Message};
use assurance_store::Error;

/// Maximum number of network requests that one call sends at the same time.
const SENT_TOGETHER: usize = 16;

/// Stored response to a network request, or the stored result of sending a
/// mail.
#[derive(Clone, Debug, PartialEq, Eq)]
enum RequestOrMailResult {
    Request(Result<EgressResponse, EgressError>),
    Mail(Result<(), MailError>),
}

/// Responses to the network requests and mails of a job step, in order; shared
/// by all attempts of the step.
#[derive(Debug, Default)]
pub struct EgressResponseCache(Mutex<Vec<(RequestOrMailFingerprint, RequestOrMailResult)>>);

/// Hash of a network request or mail. Its content is not stored, because it may
/// contain a secret.
type RequestOrMailFingerprint = [u8; 32];

impl UnitOfWork {
    /// Sends requests to the network, up to 16 at the same time. Those that an
    /// earlier attempt of the job step has sent get the responses of that
    /// attempt. Returns the responses, or the reasons why there are none, in
    /// the order of the requests.
    ///
    /// # Errors
    /// A write conflict before the requests were sent.
    pub async fn send(
        &mut self,
        egress: &Egress,
        requests: Vec<EgressRequest>,
    ) -> Result<Vec<Result<EgressResponse, EgressError>>, Error> {
        self.release_connection().await?;
        let mut answers = Vec::with_capacity(requests.len());
        let mut requests = requests.into_iter().map(|one| (of_request(&one), one)).peekable();
        while let Some((fingerprint, _)) = requests.peek()
            && let Some(RequestOrMailResult::Request(answer)) = self.earlier_answer(fingerprint)
        {
            answers.push(answer);
            requests.next();
        }
        // The first request without an earlier answer was counted already.
        self.sends += requests.len().saturating_sub(1);
        self.send_new(egress, requests, &mut answers).await;
        Ok(answers)
    }

    /// Sends network requests that no earlier attempt of the job step has sent,
    /// and stores the responses. What is left of the limit of response bytes is
    /// divided among the requests that are sent at the same time.
    async fn send_new(
        &mut self,
        egress: &Egress,
        mut requests: impl ExactSizeIterator<Item = (RequestOrMailFingerprint, EgressRequest)>,
        answers: &mut Vec<Result<EgressResponse, EgressError>>,
    ) {
        let mut left = self.response_bytes_left();
        let mut sending = FuturesOrdered::new();
        loop {
            while sending.len() < SENT_TOGETHER
                && let Some((fingerprint, request)) = requests.next()
            {
                let together = (SENT_TOGETHER - sending.len()).min(requests.len() + 1);
                let limit = room(request.max_response_bytes, left / together as u64);
                left -= u64::from(limit.unwrap_or_default());
                sending.push_back(async move {
                    (fingerprint, limit, send_within(egress, request, limit).await)
                });
            }
            let Some((fingerprint, limit, answer)) = sending.next().await else { return };
            let kept = RequestOrMailResult::Request(answer.clone());
            left = (left + u64::from(limit.unwrap_or_default())).saturating_sub(kept.bytes());
            self.keep_answer(fingerprint, kept);
            answers.push(answer);
        }
    }

    /// Sends a mail, once for all attempts of the job step.
    ///
    /// # Errors
    /// The reason why the mail is not sent, or a write conflict before it was
    /// sent.
    pub async fn send_mail(
        &mut self,
        mail: &Mailer,
        message: Message,
    ) -> Result<(), HostCallError<MailError>> {
        self.release_connection().await?;
        // An attempt that gets an earlier answer takes an id, too, so that its later ids are those
        // of the attempt that sent the mail.
        let id = self.fresh_id();
        let fingerprint = of_mail(&message);
        if let Some(RequestOrMailResult::Mail(answer)) = self.earlier_answer(&fingerprint) {
            return answer.map_err(HostCallError::Refused);
        }
        let answer = match self.count_mail(&message.to, mail.limits()).await {
            Ok(counted) => self.send_counted(mail, message, id, &counted).await?,
            Err(HostCallError::Refused(refused)) => Err(refused),
            Err(abort) => return Err(abort),
        };
        self.keep_answer(fingerprint, RequestOrMailResult::Mail(answer.clone()));
        answer.map_err(HostCallError::Refused)
    }

    /// Sends a mail that was counted, and reverts the count if the mail server is unavailable.
    async fn send_counted(
        &self,
        mail: &Mailer,
        message: Message,
        id: Uuid,
        counted: &MailCounterKeys,
    ) -> Result<Result<(), MailError>, Error> {
        let answer = mail.send(message, id, self.spec.call.now).await;
        if matches!(answer, Err(MailError::Unavailable(_))) {
            self.uncount_mail(counted).await?;
        }
        Ok(answer)
    }

    /// Returns the number of bytes that further network responses of the job
    /// step may have. Responses are kept for later attempts of the step.
    fn response_bytes_left(&self) -> u64 {
        let Some(sent) = &self.sent else { return u64::MAX };
        self.spec.limits.max_incoming_bytes.saturating_sub(sent.bytes())
    }

    fn earlier_answer(
        &mut self,
        fingerprint: &RequestOrMailFingerprint,
    ) -> Option<RequestOrMailResult> {
        let sent = self.sent.as_ref()?;
        let nth = self.sends;
        self.sends += 1;
        sent.answer(nth, fingerprint)
    }

    fn keep_answer(&self, fingerprint: RequestOrMailFingerprint, answer: RequestOrMailResult) {
        if let Some(sent) = &self.sent {
            sent.keep(fingerprint, answer);
        }
    }
}

impl EgressResponseCache {
    /// Returns the stored response to the nth request if the request is the
    /// same as then. If an attempt sends a different request, later responses
    /// are discarded.
    fn answer(
        &self,
        nth: usize,
        fingerprint: &RequestOrMailFingerprint,
    ) -> Option<RequestOrMailResult> {
        let mut sent = self.0.lock();
        match sent.get(nth) {
            Some((known, answer)) if known == fingerprint => Some(answer.clone()),
            _ => {
                sent.truncate(nth);
                None
            }
        }
    }

    /// Returns the number of bytes of all stored responses.
    fn bytes(&self) -> u64 {
        self.0.lock().iter().map(|(_, answer)| answer.bytes()).sum()
    }

    /// Stores the response to the next request of the job step.
    fn keep(&self, fingerprint: RequestOrMailFingerprint, answer: RequestOrMailResult) {
        self.0.lock().push((fingerprint, answer));
    }
}

impl RequestOrMailResult {
    fn bytes(&self) -> u64 {
        let Self::Request(Ok(answer)) = self else { return 0 };
        let headers = answer.headers.iter().map(|(name, value)| name.len() + value.len());
        (answer.body.len() + headers.sum::<usize>()) as u64
    }
}

/// Sends a network request whose response may have at most `limit` bytes;
/// `None` as limit means that the job step has used up its limit, so the
/// request is refused.
async fn send_within(
    egress: &Egress,
    request: EgressRequest,
    limit: Option<u32>,
) -> Result<EgressResponse, EgressError> {
    let max_response_bytes = limit.ok_or(EgressError::TooLarge)?;
    egress.send(EgressRequest { max_response_bytes, ..request }).await
}

/// Returns the limit of a response in bytes if the job step may receive `left`
/// more bytes; `None` if it may receive none. 0 for `requested` means as many
/// as possible.
fn room(requested: u32, left: u64) -> Option<u32> {
    let left = u32::try_from(left).unwrap_or(u32::MAX);
    match (requested, left) {
        (_, 0) => None,
        (0, left) => Some(left),
        (requested, left) => Some(requested.min(left)),
    }
}

/// Returns the hash of a network request; equal only for equal requests.
fn of_request(request: &EgressRequest) -> RequestOrMailFingerprint {
    let mut parts = vec![b"request".as_slice(), request.method.as_bytes(), request.url.as_bytes()];
    for (name, value) in &request.headers {
        parts.extend([name.as_bytes(), value.as_bytes()]);
    }
    parts.push(&request.body);
    of_parts(&parts)
}

/// Returns the hash of a mail message; equal only for equal messages.
fn of_mail(message: &Message) -> RequestOrMailFingerprint {
    let Message { to, subject, text } = message;
    of_parts(&[b"mail", to.as_bytes(), subject.as_bytes(), text.as_bytes()])
}

fn of_parts(parts: &[&[u8]]) -> RequestOrMailFingerprint {
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
    use crate::tests::request_to;

    fn request(url: &str) -> RequestOrMailFingerprint {
        of_request(&request_to(url))
    }

    fn answered(status: u16) -> RequestOrMailResult {
        RequestOrMailResult::Request(Ok(EgressResponse {
            status,
            headers: Vec::new(),
            body: Vec::new(),
        }))
    }

    #[test]
    fn a_second_go_gets_the_first_go_s_answers_until_it_takes_another_turn() {
        let sent = EgressResponseCache::default();
        for (url, status) in [("a", 200), ("b", 201), ("c", 202)] {
            sent.keep(request(url), answered(status));
        }
        assert_eq!(sent.answer(0, &request("a")), Some(answered(200)));
        assert_eq!(sent.answer(1, &request("other")), None);
        assert_eq!(sent.answer(1, &request("b")), None, "forgotten from there on");
    }

    #[test]
    fn what_is_kept_of_answers_is_bounded() {
        let sent = EgressResponseCache::default();
        let header = ("etag".to_owned(), "1".to_owned());
        let answer = EgressResponse { status: 200, headers: vec![header], body: vec![0; 95] };
        sent.keep(request("a"), RequestOrMailResult::Request(Ok(answer)));
        sent.keep(request("b"), RequestOrMailResult::Request(Err(EgressError::TooLarge)));
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
