//! Open connections of a listener: counts them by address and finds the one that has been idle
//! longest.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

/// All open connections of one listener.
#[derive(Debug)]
pub(super) struct Connections {
    opened: Instant,
    open: Mutex<OpenConnections>,
}

#[derive(Debug, Default)]
struct OpenConnections {
    next_id: u64,
    of_source: HashMap<IpAddr, u32>,
    all: HashMap<u64, Arc<ConnectionRecord>>,
}

/// State of one open connection, shared by the connection's guard and its requests.
#[derive(Debug)]
struct ConnectionRecord {
    /// Cancelled when the connection must close after its requests in flight.
    close: CancellationToken,
    /// Whether a request was received on the connection.
    begun: AtomicBool,
    /// Number of requests whose response is not sent completely.
    in_flight: AtomicU32,
    /// Number of requests in flight whose response waits for the client to receive it.
    sending: AtomicU32,
    /// Time at which the last request in flight ended, in milliseconds since the listener opened.
    idle_since: AtomicU64,
}

/// Whether a connection is idle, waits for its client, or is busy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConnectionActivity {
    /// No request is in flight; contains the time since the last one ended.
    Idle(Duration),
    /// Every request in flight waits for the client to receive its response.
    Sending,
    /// A request is being received or executed.
    Serving,
}

/// Entry of a connection among the listener's open connections. Dropping it removes the entry.
#[derive(Debug)]
pub(super) struct ConnectionGuard {
    id: u64,
    source: Option<IpAddr>,
    requests: InFlightRequestCounter,
}

/// Counts the requests in flight of a connection.
#[derive(Clone, Debug)]
pub(super) struct InFlightRequestCounter {
    connections: Arc<Connections>,
    connection: Arc<ConnectionRecord>,
}

/// A request in flight, until dropped.
#[derive(Debug)]
pub(super) struct RequestInFlight(InFlightRequestCounter);

/// A response body that keeps its request in flight until it is sent.
struct TrackedResponseBody {
    body: Body,
    /// Whether a piece was returned and the next one was not requested yet.
    sending: bool,
    in_flight: RequestInFlight,
}

impl Connections {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self { opened: Instant::now(), open: Mutex::default() })
    }

    /// Adds a connection; `stop` closes it. Returns `None` if its address has the maximum number of
    /// connections. Connections of trusted proxies are not limited.
    pub(super) fn enter(
        self: &Arc<Self>,
        peer: IpAddr,
        most: Option<u32>,
        stop: &CancellationToken,
    ) -> Option<ConnectionGuard> {
        let source = most.map(|_| source(peer));
        let mut open = self.open.lock();
        if let (Some(source), Some(most)) = (source, most) {
            let count = open.of_source.entry(source).or_default();
            if *count >= most {
                return None;
            }
            *count += 1;
        }
        let connection = Arc::new(ConnectionRecord {
            close: stop.child_token(),
            begun: AtomicBool::new(false),
            in_flight: AtomicU32::new(0),
            sending: AtomicU32::new(0),
            idle_since: AtomicU64::new(self.now()),
        });
        let id = open.next_id;
        open.next_id += 1;
        open.all.insert(id, Arc::clone(&connection));
        let requests = InFlightRequestCounter { connections: Arc::clone(self), connection };
        Some(ConnectionGuard { id, source, requests })
    }

    /// Closes the connection that has been idle longest. Returns false if none is idle.
    pub(super) fn close_longest_idle(&self) -> bool {
        let open = self.open.lock();
        let idle = open.all.values().filter(|connection| connection.is_idle());
        let longest = idle.min_by_key(|one| one.idle_since.load(Ordering::Relaxed));
        longest.inspect(|connection| connection.close.cancel()).is_some()
    }

    fn now(&self) -> u64 {
        u64::try_from(self.opened.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

impl ConnectionRecord {
    fn is_idle(&self) -> bool {
        self.in_flight.load(Ordering::Relaxed) == 0 && !self.close.is_cancelled()
    }
}

impl ConnectionGuard {
    /// Returns the token that is cancelled when the connection must close.
    pub(super) fn close(&self) -> CancellationToken {
        self.requests.connection.close.clone()
    }

    /// Returns whether a request was received on the connection.
    pub(super) fn has_begun(&self) -> bool {
        self.requests.connection.begun.load(Ordering::Relaxed)
    }

    /// Marks the connection as busy until the returned value is dropped, so that it is not closed
    /// as idle.
    pub(super) fn hold(&self) -> RequestInFlight {
        self.requests.hold()
    }

    /// Returns the state of the connection.
    pub(super) fn activity(&self) -> ConnectionActivity {
        let InFlightRequestCounter { connections, connection } = &self.requests;
        let in_flight = connection.in_flight.load(Ordering::Relaxed);
        if in_flight == 0 {
            let since = connection.idle_since.load(Ordering::Relaxed);
            let idle_ms = connections.now().saturating_sub(since);
            return ConnectionActivity::Idle(Duration::from_millis(idle_ms));
        }
        let sending = connection.sending.load(Ordering::Relaxed);
        if sending < in_flight { ConnectionActivity::Serving } else { ConnectionActivity::Sending }
    }

    /// Returns the counter of the connection's requests.
    pub(super) fn requests(&self) -> InFlightRequestCounter {
        self.requests.clone()
    }
}

impl InFlightRequestCounter {
    /// Counts a received request as in flight.
    pub(super) fn begin(&self) -> RequestInFlight {
        self.connection.begun.store(true, Ordering::Relaxed);
        self.hold()
    }

    fn hold(&self) -> RequestInFlight {
        self.connection.in_flight.fetch_add(1, Ordering::Relaxed);
        RequestInFlight(self.clone())
    }
}

impl RequestInFlight {
    /// Returns a body that ends the request when it is sent or dropped.
    pub(super) fn until_sent(self, body: Body) -> Body {
        Body::new(TrackedResponseBody { body, sending: false, in_flight: self })
    }
}

impl Drop for RequestInFlight {
    fn drop(&mut self) {
        let InFlightRequestCounter { connections, connection } = &self.0;
        connection.idle_since.store(connections.now(), Ordering::Relaxed);
        connection.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

impl TrackedResponseBody {
    fn set_sending(&mut self, sending: bool) {
        let count = &self.in_flight.0.connection.sending;
        match (self.sending, sending) {
            (false, true) => count.fetch_add(1, Ordering::Relaxed),
            (true, false) => count.fetch_sub(1, Ordering::Relaxed),
            _ => return,
        };
        self.sending = sending;
    }
}

impl Drop for TrackedResponseBody {
    fn drop(&mut self) {
        self.set_sending(false);
    }
}

impl HttpBody for TrackedResponseBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        self.set_sending(false);
        let polled = Pin::new(&mut self.body).poll_frame(context);
        self.set_sending(matches!(polled, Poll::Ready(Some(Ok(_)))));
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Returns the key by which an address is counted. For IPv6 it is the /64 network, because one
/// client usually has all addresses of it.
fn source(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => {
            IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)))
        }
    }
}

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        let mut open = self.requests.connections.open.lock();
        open.all.remove(&self.id);
        if let Some(source) = self.source
            && let Some(count) = open.of_source.get_mut(&source)
        {
            *count -= 1;
            if *count == 0 {
                open.of_source.remove(&source);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn enter(all: &Arc<Connections>, peer: &str, most: Option<u32>) -> Option<ConnectionGuard> {
        all.enter(peer.parse().unwrap(), most, &CancellationToken::new())
    }

    #[test]
    fn an_address_has_as_many_connections_as_it_may_and_a_network_of_ipv6_is_one() {
        let all = Connections::new();
        let first = enter(&all, "192.0.2.1", Some(2)).unwrap();
        let _second = enter(&all, "::ffff:192.0.2.1", Some(2)).unwrap();
        assert!(enter(&all, "192.0.2.1", Some(2)).is_none());
        assert!(enter(&all, "192.0.2.2", Some(2)).is_some());
        assert!(enter(&all, "192.0.2.1", None).is_some(), "a trusted proxy");
        drop(first);
        assert!(enter(&all, "192.0.2.1", Some(2)).is_some());

        let _one = enter(&all, "2001:db8::1", Some(1)).unwrap();
        assert!(enter(&all, "2001:db8::2:1", Some(1)).is_none());
        assert!(enter(&all, "2001:db8:0:1::1", Some(1)).is_some());
    }

    #[test]
    fn the_connection_without_a_request_for_longest_is_closed_and_no_busy_one() {
        let all = Connections::new();
        let pause = || std::thread::sleep(std::time::Duration::from_millis(3));
        let [busy, older, newer] = [1, 2, 3].map(|n| {
            pause();
            enter(&all, &format!("192.0.2.{n}"), Some(1)).unwrap()
        });
        let in_flight = busy.requests().begin();
        pause();
        drop(older.requests().begin());
        assert!(all.close_longest_idle());
        assert!(newer.close().is_cancelled() && !older.close().is_cancelled());
        assert!(all.close_longest_idle() && older.close().is_cancelled());
        assert!(!all.close_longest_idle(), "the other is busy");
        drop(in_flight.until_sent(Body::from("sent")));
        assert!(all.close_longest_idle() && busy.close().is_cancelled());
    }
}
