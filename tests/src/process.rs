//! Servers of other projects as child processes.

use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const START_LIMIT: Duration = Duration::from_secs(30);

/// A child process that is killed when dropped.
#[derive(Debug)]
pub(crate) struct ServerProcess(pub(crate) Child);

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // Fails only if the process has ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl ServerProcess {
    /// Starts the server of a Debian package and waits until it listens on this port.
    ///
    /// # Panics
    /// The package is not installed; says what to install.
    pub(crate) fn start(command: &mut Command, package: &str, port: u16) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let process = command.spawn().unwrap_or_else(|error| {
            panic!("{package}: {error}; on Debian: apt-get install {package}")
        });
        let (server, begun) = (Self(process), Instant::now());
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(begun.elapsed() < START_LIMIT, "{package} does not start");
            std::thread::sleep(Duration::from_millis(20));
        }
        server
    }
}

/// Returns a free port of the loopback address.
pub(crate) fn free_port() -> u16 {
    let address = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    address.expect("a free port").port()
}
