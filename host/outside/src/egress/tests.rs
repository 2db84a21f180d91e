//! Tests of sending to a receiver on a loopback port.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::*;
use assurance_core::config::EgressConfig;
use assurance_core::turns::{LONGEST_TURN, longest_turn};

/// Sends these bytes on every connection, then keeps it open for 5 seconds.
async fn receiver(answer: Vec<u8>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let answer = answer.clone();
            tokio::spawn(async move {
                let _ = stream.read(&mut [0; 4_096]).await;
                let _ = stream.write_all(&answer).await;
                tokio::time::sleep(Duration::from_secs(5)).await;
            });
        }
    });
    address
}

fn egress(allow_loopback: bool) -> Egress {
    Egress::new(EgressConfig { allow_loopback, ..EgressConfig::default() }).unwrap()
}

fn to(url: &str) -> EgressRequest {
    EgressRequest {
        method: "POST".into(),
        url: url.into(),
        headers: vec![("x-test".into(), "1".into())],
        body: b"{}".to_vec(),
        timeout_ms: 500,
        max_response_bytes: 100,
    }
}

#[tokio::test]
async fn an_answer_is_read_whole() {
    let answer = b"HTTP/1.1 202 Accepted\r\nX-A: b\r\ncontent-length: 2\r\n\r\nok";
    let address = receiver(answer.to_vec()).await;
    let incoming = egress(true).send(to(&format!("http://{address}/"))).await.unwrap();
    assert_eq!((incoming.status, incoming.body.as_slice()), (202, b"ok".as_slice()));
    assert!(incoming.headers.contains(&("x-a".to_owned(), "b".to_owned())));
}

#[tokio::test]
async fn without_the_switch_loopback_is_refused() {
    let address = receiver(Vec::new()).await;
    for url in [format!("http://{address}/"), format!("https://{address}/")] {
        let refused = egress(false).send(to(&url)).await.unwrap_err();
        assert!(matches!(refused, EgressError::Refused(_)), "{url}: {refused:?}");
    }
}

#[tokio::test]
async fn a_redirect_is_an_answer_and_not_followed() {
    let answer =
        b"HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n";
    let address = receiver(answer.to_vec()).await;
    let incoming = egress(true).send(to(&format!("http://{address}/"))).await.unwrap();
    assert_eq!(incoming.status, 302);
}

#[tokio::test]
async fn an_answer_beyond_the_bound_is_not_read() {
    let told = b"HTTP/1.1 200 OK\r\ncontent-length: 101\r\n\r\n".to_vec();
    let mut untold = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
    for _ in 0..20 {
        untold.extend(b"a\r\n0123456789\r\n");
    }
    for answer in [told, untold] {
        let address = receiver(answer).await;
        let refused = egress(true).send(to(&format!("http://{address}/"))).await.unwrap_err();
        assert_eq!(refused, EgressError::TooLarge);
    }
}

#[tokio::test]
async fn a_response_to_head_may_announce_any_length() {
    let address = receiver(b"HTTP/1.1 200 OK\r\ncontent-length: 101\r\n\r\n".to_vec()).await;
    let url = format!("http://{address}/");
    let outgoing = EgressRequest { method: "HEAD".into(), body: Vec::new(), ..to(&url) };
    let incoming = egress(true).send(outgoing).await.unwrap();
    assert_eq!((incoming.status, incoming.body.len()), (200, 0));
    assert!(incoming.headers.contains(&("content-length".to_owned(), "101".to_owned())));
}

/// Sends the same bytes for as long as they are read, and counts them.
async fn endless(head: &'static [u8], then: &'static [u8]) -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let sent = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&sent);
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let _ = stream.read(&mut [0; 4_096]).await;
        let _ = stream.write_all(head).await;
        while stream.write_all(&then.repeat(100)).await.is_ok() {
            counter.fetch_add(100 * then.len(), Ordering::Relaxed);
        }
    });
    (address, sent)
}

#[test]
fn interim_responses_and_chunks_without_end_are_too_large() {
    let ok: &[u8] = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n";
    for (head, then) in [
        (b"".as_slice(), b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n".as_slice()),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        (ok, b"1\r\nx\r\n"),
    ] {
        let exchange = async {
            let (address, sent) = endless(head, then).await;
            let outgoing =
                EgressRequest { timeout_ms: 60_000, ..to(&format!("http://{address}/")) };
            (egress(true).send(outgoing).await, sent.load(Ordering::Relaxed))
        };
        let ((ended, sent), longest) = longest_turn(exchange);
        let then = String::from_utf8_lossy(then);
        assert_eq!(ended, Err(EgressError::TooLarge), "{then}");
        // The operating system buffers some of the bytes.
        assert!(sent < 16 << 20, "{then}: {sent} bytes were taken");
        assert!(longest < LONGEST_TURN, "{then}: {longest:?}");
    }
}

#[tokio::test]
async fn a_receiver_that_does_not_answer_in_time_is_left() {
    let head = receiver(Vec::new()).await;
    let body = receiver(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n01".to_vec()).await;
    for address in [head, body] {
        let late = egress(true).send(to(&format!("http://{address}/"))).await.unwrap_err();
        assert_eq!(late, EgressError::Timeout);
    }
}

#[tokio::test]
async fn nobody_there_and_no_such_name_are_told_apart() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let refused = egress(true).send(to(&format!("http://{address}/"))).await.unwrap_err();
    assert!(matches!(refused, EgressError::Connection(_)), "{refused:?}");
    let unresolved = egress(true).send(to("https://nowhere.invalid/")).await.unwrap_err();
    assert_eq!(unresolved, EgressError::Unresolved);
}

#[tokio::test]
async fn headers_of_the_connection_and_odd_methods_are_refused() {
    for (name, value) in [("Host", "a"), ("Transfer-Encoding", "x"), ("a b", "c"), ("x", "a\nb")] {
        let headers = vec![(name.to_owned(), value.to_owned())];
        let outgoing = EgressRequest { headers, ..to("https://example.com/") };
        let refused = egress(false).send(outgoing).await.unwrap_err();
        assert!(matches!(refused, EgressError::Refused(_)), "{name}: {refused:?}");
    }
    let outgoing = EgressRequest { method: "CONNECT".into(), ..to("https://example.com/") };
    assert!(matches!(egress(false).send(outgoing).await, Err(EgressError::Refused(_))));
}

#[test]
fn a_certificate_file_without_certificates_is_refused_by_name() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let ca_file = Some(file.path().to_owned());
    let settings = EgressConfig { ca_file, ..EgressConfig::default() };
    let told = Egress::new(settings).unwrap_err().to_string();
    assert!(told.contains("egress.ca_file") && told.contains("PEM"), "{told}");
}
