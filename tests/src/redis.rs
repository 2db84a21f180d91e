//! Debian's `redis-server` on a loopback port, with a password.

use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::place;

const START_LIMIT: Duration = Duration::from_secs(30);
const PASSWORD: &str = "a-password-of-the-tests";

/// A running server without persistence; it stops when dropped.
#[derive(Debug)]
pub struct TestRedis {
    process: Child,
    port: u16,
}

impl TestRedis {
    /// Starts a server.
    ///
    /// # Panics
    /// `redis-server` is not installed; says what to install.
    #[must_use]
    pub fn start() -> Self {
        let port = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let port = port.expect("a free port").port();
        Self { process: run(port), port }
    }

    /// Starts the server again after [`stop`](Self::stop).
    pub fn restart(&mut self) {
        self.process = run(self.port);
    }

    /// Stops the server; its content is lost.
    pub fn stop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    /// Returns the URL with the password.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://:{PASSWORD}@127.0.0.1:{}/0", self.port)
    }
}

impl Drop for TestRedis {
    fn drop(&mut self) {
        self.stop();
    }
}

fn run(port: u16) -> Child {
    let program = place::redis();
    let mut command = Command::new(&program);
    command.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", ""]);
    command.args(["--requirepass", PASSWORD]).stdout(Stdio::null()).stderr(Stdio::null());
    if let Some(libraries) = unpacked_libraries(&program) {
        command.env("LD_LIBRARY_PATH", libraries);
    }
    let process = command.spawn().unwrap_or_else(|error| {
        panic!("redis-server: {error}; on Debian: apt-get install redis-server")
    });
    let begun = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(begun.elapsed() < START_LIMIT, "redis-server does not start");
        std::thread::sleep(Duration::from_millis(20));
    }
    process
}

/// Returns the folder of the libraries beside an unpacked program.
fn unpacked_libraries(program: &Path) -> Option<std::path::PathBuf> {
    let folders = std::fs::read_dir(program.parent()?.with_file_name("lib")).ok()?;
    let mut folders = folders.flatten().map(|entry| entry.path());
    folders.find(|folder| folder.join("libjemalloc.so.2").exists())
}
