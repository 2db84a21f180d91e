//! A steady load: requests at fixed times, whether or not earlier ones have ended, so that a pause
//! of the server affects all requests that it delays.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use serde::Serialize;

use super::CREATE;
use super::report::{Latency, median};
use super::server::Server;

const CONNECTIONS: u32 = 16;
const PATIENCE: Duration = Duration::from_secs(10);

/// Results of one phase of a steady load. For phases in rounds, percentiles and rates are the
/// medians of the rounds.
#[derive(Debug, Serialize)]
pub(crate) struct PhaseResults {
    pub(crate) requests: usize,
    pub(crate) requests_per_second: f64,
    #[serde(flatten)]
    pub(crate) latency: Latency,
    /// Number of requests of healthy areas with a wrong response.
    pub(crate) wrong: usize,
    /// Number of requests that a faulty canary failed.
    pub(crate) failed_by_canaries: usize,
}

impl PhaseResults {
    pub(crate) fn of_rounds(rounds: Vec<Self>) -> Self {
        let median = |of: fn(&Self) -> f64| median(rounds.iter().map(of).collect());
        Self {
            requests: rounds.iter().map(|round| round.requests).sum(),
            requests_per_second: median(|round| round.requests_per_second),
            latency: Latency {
                p50_ms: median(|round| round.latency.p50_ms),
                p99_ms: median(|round| round.latency.p99_ms),
                max_ms: rounds.iter().map(|round| round.latency.max_ms).fold(0.0, f64::max),
            },
            wrong: rounds.iter().map(|round| round.wrong).sum(),
            failed_by_canaries: rounds.iter().map(|round| round.failed_by_canaries).sum(),
        }
    }
}

/// A load on one server that sends requests at a steady rate.
pub(crate) struct SteadyLoad {
    address: String,
    requests: Vec<RequestWithExpectedResponse>,
    rate: u32,
    /// Number of the next `Idempotency-Key`.
    next_key: AtomicU64,
}

/// A request of a steady load, and text that its response must contain.
pub(crate) struct RequestWithExpectedResponse {
    head: String,
    body: &'static str,
    /// Prefix of the `Idempotency-Key`, which differs for each request; `None` sends none.
    keys: Option<String>,
    status: &'static str,
    part: &'static str,
    /// Whether a canary may serve the request and make it fail.
    on_trial: bool,
}

impl RequestWithExpectedResponse {
    /// Creates a request to a path below the workspace.
    pub(crate) fn new(
        server: &Server,
        (method, path, body): (&str, &str, &'static str),
        (status, part): (&'static str, &'static str),
    ) -> Self {
        let url = server.url(path);
        let target = url.split_once(server.address()).map_or("/", |(_, target)| target);
        let head = format!(
            "{method} {target} HTTP/1.1\r\nHost: {}\r\nCookie: {}\r\nX-CSRF-Token: {}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n",
            server.address(),
            server.person.cookie,
            server.person.csrf,
            body.len(),
        );
        Self { head, body, keys: None, status, part, on_trial: false }
    }

    /// Creates a request that creates a support case.
    pub(crate) fn creating_case(server: &Server) -> Self {
        let post = (CREATE.method, CREATE.path, CREATE.body.unwrap_or_default());
        Self::new(server, post, ("201", "Login fails")).with_keys(server)
    }

    /// Lets a canary serve the request and make it fail.
    pub(crate) fn on_trial(self) -> Self {
        Self { on_trial: true, ..self }
    }

    /// Sends a separate `Idempotency-Key` with each request.
    pub(crate) fn with_keys(self, server: &Server) -> Self {
        Self { keys: Some(format!("steady-{}", server.next_load())), ..self }
    }

    fn text(&self, next_key: &AtomicU64) -> String {
        let Self { head, body, keys, .. } = self;
        let key = keys.as_ref().map(|prefix| {
            format!("Idempotency-Key: {prefix}-{}\r\n", next_key.fetch_add(1, Ordering::Relaxed))
        });
        format!("{head}{}\r\n{body}", key.unwrap_or_default())
    }
}

/// Results of one connection of a steady load.
#[derive(Default)]
struct ConnectionResults {
    latencies_ms: Vec<f64>,
    wrong: usize,
    failed_by_canaries: usize,
}

impl SteadyLoad {
    /// Creates a load that sends this number of requests per second, each in turn.
    pub(crate) fn new(
        server: &Server,
        rate: u32,
        requests: Vec<RequestWithExpectedResponse>,
    ) -> Self {
        let address = server.address().to_owned();
        Self { address, requests, rate, next_key: AtomicU64::new(0) }
    }

    /// Runs the load while `work` runs. Returns the results of the load.
    pub(crate) fn during(
        &self,
        work: impl FnOnce() -> anyhow::Result<()>,
    ) -> anyhow::Result<PhaseResults> {
        let (ended, begun) = (&AtomicBool::new(false), Instant::now());
        let seen = std::thread::scope(|scope| -> anyhow::Result<Vec<ConnectionResults>> {
            let connect = |number| scope.spawn(move || self.send(number, begun, ended));
            let connections: Vec<_> = (0..CONNECTIONS).map(connect).collect();
            let worked = work();
            ended.store(true, Ordering::Relaxed);
            let seen = connections.into_iter().map(|thread| {
                thread.join().map_err(|_| anyhow::anyhow!("a connection's thread ended early"))?
            });
            worked.and(seen.collect())
        })?;
        Ok(figures(seen, begun.elapsed()))
    }

    /// Sends one connection's requests, each at its time.
    fn send(
        &self,
        number: u32,
        begun: Instant,
        ended: &AtomicBool,
    ) -> anyhow::Result<ConnectionResults> {
        let every = Duration::from_secs(1) * CONNECTIONS / self.rate;
        let mut due = begun + every * number / CONNECTIONS;
        let mut connection = BufReader::new(connect(&self.address)?);
        let mut seen = ConnectionResults::default();
        let first = number as usize % self.requests.len();
        for asked in self.requests.iter().cycle().skip(first) {
            if ended.load(Ordering::Relaxed) {
                break;
            }
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            match exchange(&mut connection, asked, &self.next_key) {
                Ok(true) => {}
                Ok(false) if asked.on_trial => seen.failed_by_canaries += 1,
                Ok(false) => seen.wrong += 1,
                Err(_) => {
                    seen.wrong += 1;
                    connection = BufReader::new(connect(&self.address)?);
                }
            }
            seen.latencies_ms.push(due.elapsed().as_secs_f64() * 1e3);
            due += every;
        }
        Ok(seen)
    }
}

fn connect(address: &str) -> anyhow::Result<TcpStream> {
    let stream = TcpStream::connect(address).context("the server takes no connection")?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    Ok(stream)
}

/// Sends a request and returns whether its response is the expected one.
///
/// # Errors
/// The connection failed.
fn exchange(
    connection: &mut BufReader<TcpStream>,
    asked: &RequestWithExpectedResponse,
    next_key: &AtomicU64,
) -> anyhow::Result<bool> {
    connection.get_mut().write_all(asked.text(next_key).as_bytes())?;
    let mut line = String::new();
    connection.read_line(&mut line)?;
    let as_expected = line.split(' ').nth(1) == Some(asked.status);
    let mut length = None;
    loop {
        line.clear();
        connection.read_line(&mut line)?;
        let Some((name, value)) = line.split_once(':') else { break };
        if name.eq_ignore_ascii_case("content-length") {
            length = Some(value.trim().parse::<usize>()?);
        }
    }
    let mut body = vec![0; length.context("an answer without a length")?];
    connection.read_exact(&mut body)?;
    Ok(as_expected && String::from_utf8_lossy(&body).contains(asked.part))
}

fn figures(seen: Vec<ConnectionResults>, took: Duration) -> PhaseResults {
    let wrong = seen.iter().map(|one| one.wrong).sum();
    let failed_by_canaries = seen.iter().map(|one| one.failed_by_canaries).sum();
    let latencies: Vec<f64> = seen.into_iter().flat_map(|one| one.latencies_ms).collect();
    let requests = latencies.len();
    PhaseResults {
        requests,
        requests_per_second: requests as f64 / took.as_secs_f64(),
        latency: Latency::of(latencies),
        wrong,
        failed_by_canaries,
    }
}
