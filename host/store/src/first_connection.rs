//! Connects to PostgreSQL when the service starts, possibly before the server accepts connections.

use std::io::ErrorKind;
use std::time::{Duration, Instant};

use backon::{ExponentialBuilder, Retryable as _};
use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection as _, PgConnection};

use super::error::{Error, database_code};

/// Time within which the last attempt to connect begins.
const PATIENCE: Duration = Duration::from_secs(60);
/// First pause between two attempts. The pause doubles each time.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// Longest pause between two attempts.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Connects once, within `timeout`.
pub(super) async fn connect(
    options: &PgConnectOptions,
    timeout: Duration,
) -> Result<PgConnection, Error> {
    let connected = tokio::time::timeout(timeout, PgConnection::connect_with(options)).await;
    connected.map_err(|_| Error::Unavailable(sqlx::Error::PoolTimedOut))?.map_err(Error::from)
}

/// Connects as soon as the server accepts connections, and logs what it waits
/// for. `timeout` limits each attempt.
///
/// # Errors
/// The last attempt's error, after [`PATIENCE`]. An error that waiting does not
/// fix, such as a wrong password, at once.
pub(super) async fn connect_when_ready(
    options: &PgConnectOptions,
    timeout: Duration,
) -> Result<PgConnection, Error> {
    let begun = Instant::now();
    let pauses = ExponentialBuilder::new()
        .with_min_delay(FIRST_PAUSE)
        .with_max_delay(LONGEST_PAUSE)
        .without_max_times();
    let attempt = || connect(options, timeout);
    attempt
        .retry(pauses)
        .when(|error: &Error| begun.elapsed() + LONGEST_PAUSE < PATIENCE && may_pass(error))
        .notify(|error: &Error, _: Duration| {
            tracing::warn!(
                server = server(options),
                waited_s = begun.elapsed().as_secs(),
                gives_up_after_s = PATIENCE.as_secs(),
                %error,
                "waiting for PostgreSQL to accept connections; SIGTERM or Ctrl+C ends the wait"
            );
        })
        .await
}

/// Returns the socket's path, or host and port.
fn server(options: &PgConnectOptions) -> String {
    match options.get_socket() {
        Some(socket) => socket.display().to_string(),
        None => format!("{}:{}", options.get_host(), options.get_port()),
    }
}

/// Returns whether an attempt may succeed later without a change of the
/// configuration.
fn may_pass(error: &Error) -> bool {
    let Error::Unavailable(cause) = error else { return false };
    match cause {
        // TLS reports an unacceptable certificate as invalid data.
        sqlx::Error::Io(cause) => {
            let lasting =
                [ErrorKind::InvalidData, ErrorKind::InvalidInput, ErrorKind::PermissionDenied];
            !lasting.contains(&cause.kind())
        }
        // A proxy in front of a server that is not ready accepts the connection
        // and closes it; sqlx reports that as a wrong reply.
        sqlx::Error::PoolTimedOut | sqlx::Error::Protocol(_) => true,
        // Shutting down, crashed, starting up; too many connections.
        cause => {
            matches!(database_code(cause).as_deref(), Some("57P01" | "57P02" | "57P03" | "53300"))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn only_what_can_pass_by_itself_is_waited_for() {
        let io = |kind: ErrorKind| Error::from(sqlx::Error::Io(io::Error::from(kind)));
        let closed = Error::from(sqlx::Error::Protocol("closed".into()));
        let silent = Error::from(sqlx::Error::PoolTimedOut);
        // A socket that does not exist yet, a host that has no address yet.
        let early = [ErrorKind::ConnectionRefused, ErrorKind::NotFound, ErrorKind::Other];
        for error in early.map(io).into_iter().chain([closed, silent]) {
            assert!(may_pass(&error), "{error}");
        }
        let refused = Error::from(sqlx::Error::Tls("server does not support TLS".into()));
        let lasting =
            [ErrorKind::InvalidData, ErrorKind::InvalidInput, ErrorKind::PermissionDenied];
        for error in lasting.map(io).into_iter().chain([refused, Error::Url]) {
            assert!(!may_pass(&error), "{error}");
        }
    }
}
