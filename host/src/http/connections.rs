//! A listener's open connections: how many each address has, and which has
//! been idle for longest.

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
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    next_id: u64,
    of_source: HashMap<IpAddr, u32>,
    all: HashMap<u64, Arc<Connection>>,
}

/// One open connection.
#[derive(Debug)]
struct Connection {
    /// Cancelled when it must close, once its requests in flight have ended.
    close: CancellationToken,
    /// A request has come.
    begun: AtomicBool,
    /// Requests whose response has not been sent to the end.
    in_flight: AtomicU32,
    /// Those of them whose response waits for the client to take it.
    sending: AtomicU32,
    /// When the last of them ended, in milliseconds since the listener opened.
    idle_since: AtomicU64,
}

/// What a connection does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Activity {
    /// No request has been in flight for that time.
    Idle(Duration),
    /// Every request in flight has a response that waits for the client.
    Sending,
    /// The service works on a request, or the client still sends it.
    Serving,
}

/// A connection's entry; taken out when dropped.
#[derive(Debug)]
pub(super) struct Entry {
    connections: Arc<Connections>,
    id: u64,
    source: Option<IpAddr>,
    connection: Arc<Connection>,
}

/// Notes a connection's requests.
#[derive(Clone, Debug)]
pub(super) struct Requests {
    connections: Arc<Connections>,
    connection: Arc<Connection>,
}

/// A request in flight; over when dropped.
#[derive(Debug)]
pub(super) struct InFlight(Requests);

/// The body of a response, whose request is in flight until it is sent.
struct Tracked {
    body: Body,
    /// A piece was taken from it, and no further one asked for yet.
    sending: bool,
    in_flight: InFlight,
}

impl Connections {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self { opened: Instant::now(), open: Mutex::default() })
    }

    /// Enters a connection, closed by `stop` at the latest. `None` where its
    /// address has as many as it may. A trusted proxy's are not counted.
    pub(super) fn enter(
        self: &Arc<Self>,
        peer: IpAddr,
        most: Option<u32>,
        stop: &CancellationToken,
    ) -> Option<Entry> {
        let source = most.map(|_| source(peer));
        let mut open = self.open.lock();
        if let (Some(source), Some(most)) = (source, most) {
            let count = open.of_source.entry(source).or_default();
            if *count >= most {
                return None;
            }
            *count += 1;
        }
        let connection = Arc::new(Connection {
            close: stop.child_token(),
            begun: AtomicBool::new(false),
            in_flight: AtomicU32::new(0),
            sending: AtomicU32::new(0),
            idle_since: AtomicU64::new(self.now()),
        });
        let id = open.next_id;
        open.next_id += 1;
        open.all.insert(id, Arc::clone(&connection));
        Some(Entry { connections: Arc::clone(self), id, source, connection })
    }

    /// Closes the connection that has been without a request for longest.
    /// Answers whether there was one.
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

impl Connection {
    fn is_idle(&self) -> bool {
        self.in_flight.load(Ordering::Relaxed) == 0 && !self.close.is_cancelled()
    }
}

impl Entry {
    /// Resolves when the connection must close.
    pub(super) fn close(&self) -> CancellationToken {
        self.connection.close.clone()
    }

    /// Whether a request has come.
    pub(super) fn has_begun(&self) -> bool {
        self.connection.begun.load(Ordering::Relaxed)
    }

    /// Keeps the connection from being taken for an idle one, until dropped.
    pub(super) fn hold(&self) -> InFlight {
        self.connection.in_flight.fetch_add(1, Ordering::Relaxed);
        InFlight(self.requests())
    }

    /// What the connection does at present.
    pub(super) fn activity(&self) -> Activity {
        let in_flight = self.connection.in_flight.load(Ordering::Relaxed);
        if in_flight == 0 {
            let since = self.connection.idle_since.load(Ordering::Relaxed);
            return Activity::Idle(Duration::from_millis(
                self.connections.now().saturating_sub(since),
            ));
        }
        let sending = self.connection.sending.load(Ordering::Relaxed);
        if sending < in_flight { Activity::Serving } else { Activity::Sending }
    }

    /// To note its requests.
    pub(super) fn requests(&self) -> Requests {
        let (connections, connection) = (&self.connections, &self.connection);
        Requests { connections: Arc::clone(connections), connection: Arc::clone(connection) }
    }
}

impl Requests {
    /// A request has come.
    pub(super) fn begin(&self) -> InFlight {
        self.connection.begun.store(true, Ordering::Relaxed);
        self.connection.in_flight.fetch_add(1, Ordering::Relaxed);
        InFlight(self.clone())
    }
}

impl InFlight {
    /// Lasts until the response's body is sent or given up.
    pub(super) fn until_sent(self, body: Body) -> Body {
        Body::new(Tracked { body, sending: false, in_flight: self })
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let Requests { connections, connection } = &self.0;
        connection.idle_since.store(connections.now(), Ordering::Relaxed);
        connection.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Tracked {
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

impl Drop for Tracked {
    fn drop(&mut self) {
        self.set_sending(false);
    }
}

impl HttpBody for Tracked {
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

/// What an address is counted as: of IPv6 the first 64 bits, since whoever has
/// one address of such a network has them all.
fn source(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => {
            IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)))
        }
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let mut open = self.connections.open.lock();
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

    fn enter(all: &Arc<Connections>, peer: &str, most: Option<u32>) -> Option<Entry> {
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
