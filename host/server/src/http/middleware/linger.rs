//! Discards the rest of a body after a request was refused. Closing a socket with unread bytes
//! resets the connection, and the client would not receive the 401 or 413.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, HttpBody};
use axum::http::{HeaderMap, header};
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Frame, SizeHint};

/// Maximum time for which the rest of a request body is discarded. Clients that read the response
/// only after sending everything still receive it.
const MOST_TIME: Duration = Duration::from_secs(30);
/// Maximum number of discarded bytes of a request body: more than the default limit of an upload.
const MOST_BYTES: usize = 128 << 20;
/// Maximum wait for the next piece of a request body whose rest is discarded.
const MOST_SILENCE: Duration = Duration::from_secs(5);

/// A request body whose rest is discarded in the background when it is dropped.
struct DrainingRequestBody {
    /// `None` after the end of the body.
    body: Option<Body>,
    /// Whether the client has sent nothing yet, because it waits for `100 Continue`. The server
    /// sends that when the body is read for the first time.
    awaits_continue: bool,
}

/// Wraps a request body, so that its rest is discarded when it is dropped.
pub(super) fn linger(headers: &HeaderMap, body: Body) -> Body {
    if body.is_end_stream() {
        return body;
    }
    let awaits_continue = headers.contains_key(header::EXPECT);
    Body::new(DrainingRequestBody { body: Some(body), awaits_continue })
}

impl HttpBody for DrainingRequestBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        self.awaits_continue = false;
        let Some(body) = &mut self.body else { return Poll::Ready(None) };
        let polled = Pin::new(body).poll_frame(context);
        if let Poll::Ready(None | Some(Err(_))) = polled {
            self.body = None;
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(HttpBody::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or_else(|| SizeHint::with_exact(0), HttpBody::size_hint)
    }
}

impl Drop for DrainingRequestBody {
    fn drop(&mut self) {
        let rest = self.body.take().filter(|rest| !self.awaits_continue && !rest.is_end_stream());
        if let Some(rest) = rest {
            tokio::spawn(tokio::time::timeout(MOST_TIME, read_on(rest)));
        }
    }
}

async fn read_on(mut body: Body) {
    let mut left = MOST_BYTES;
    while let Ok(Some(Ok(frame))) = tokio::time::timeout(MOST_SILENCE, body.frame()).await {
        let length = frame.data_ref().map_or(0, Bytes::len);
        match left.checked_sub(length) {
            Some(rest) => left = rest,
            None => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use axum::http::HeaderValue;
    use futures::StreamExt as _;

    use super::*;

    #[tokio::test]
    async fn a_body_that_is_expected_is_read_on_once_its_reading_has_begun() {
        let expect = (header::EXPECT, HeaderValue::from_static("100-continue"));
        let headers = HeaderMap::from_iter([expect]);
        for (begun, pieces) in [(false, 0), (true, 3)] {
            let read = Arc::new(AtomicUsize::new(0));
            let counter = Arc::clone(&read);
            let sent = futures::stream::repeat_with(move || {
                counter.fetch_add(1, Ordering::Relaxed);
                Ok::<_, Infallible>(Bytes::from_static(b"x"))
            });
            let mut body = linger(&headers, Body::from_stream(sent.take(3)));
            if begun {
                body.frame().await.unwrap().unwrap();
            }
            drop(body);
            for _ in 0..10 {
                tokio::task::yield_now().await;
            }
            assert_eq!(read.load(Ordering::Relaxed), pieces, "begun: {begun}");
        }
    }

    #[tokio::test]
    async fn a_body_without_end_is_not_read_on_without_end() {
        const PIECE: &[u8] = &[0; 1 << 20];
        let read = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&read);
        let endless = futures::stream::repeat_with(move || {
            counter.fetch_add(PIECE.len(), Ordering::Relaxed);
            Ok::<_, Infallible>(Bytes::from_static(PIECE))
        });
        let patience = Duration::from_secs(10);
        let reading = tokio::spawn(tokio::time::timeout(
            patience,
            read_on(Body::from_stream(endless.take(4 * MOST_BYTES / PIECE.len()))),
        ));
        reading.await.unwrap().expect("an end in time");
        let read = read.load(Ordering::Relaxed);
        assert!(read <= MOST_BYTES + PIECE.len(), "{read} bytes were read");
    }
}
