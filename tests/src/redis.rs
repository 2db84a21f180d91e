//! Debian's `redis-server` on a loopback port, with a password, and with TLS on request.

use std::path::{Path, PathBuf};
use std::process::Command;

use rcgen::{CertifiedKey, generate_simple_self_signed};
use tempfile::TempDir;

use crate::place;
use crate::process::{ServerProcess, free_port};

const PASSWORD: &str = "a-password-of-the-tests";

/// A running server without persistence; it stops when dropped.
#[derive(Debug)]
pub struct TestRedis {
    /// `None` while the server is stopped.
    process: Option<ServerProcess>,
    port: u16,
    /// `None` without TLS.
    certificate: Option<Certificate>,
}

/// A self-signed certificate of the loopback address and its key, as files.
#[derive(Debug)]
struct Certificate {
    folder: TempDir,
}

impl Certificate {
    fn create() -> Self {
        let CertifiedKey { cert, signing_key } =
            generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("a certificate");
        let created = Self { folder: TempDir::new().expect("a temporary folder") };
        std::fs::write(created.file(), cert.pem()).expect("written");
        std::fs::write(created.key(), signing_key.serialize_pem()).expect("written");
        created
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("certificate.pem")
    }

    fn key(&self) -> PathBuf {
        self.folder.path().join("key.pem")
    }
}

impl TestRedis {
    /// Starts a server.
    ///
    /// # Panics
    /// `redis-server` is not installed; says what to install.
    #[must_use]
    pub fn start() -> Self {
        Self::start_with(None)
    }

    /// Starts a server that takes only connections with TLS.
    ///
    /// # Panics
    /// `redis-server` is not installed; says what to install.
    #[must_use]
    pub fn start_with_tls() -> Self {
        Self::start_with(Some(Certificate::create()))
    }

    fn start_with(certificate: Option<Certificate>) -> Self {
        let mut redis = Self { process: None, port: free_port(), certificate };
        redis.restart();
        redis
    }

    /// Starts the server again after [`stop`](Self::stop).
    pub fn restart(&mut self) {
        self.process = Some(run(self.port, self.certificate.as_ref()));
    }

    /// Stops the server; its content is lost.
    pub fn stop(&mut self) {
        drop(self.process.take());
    }

    /// Returns the URL with the password.
    #[must_use]
    pub fn url(&self) -> String {
        let scheme = if self.certificate.is_some() { "rediss" } else { "redis" };
        format!("{scheme}://:{PASSWORD}@127.0.0.1:{}/0", self.port)
    }

    /// Returns the file of the certificate that clients must trust.
    ///
    /// # Panics
    /// The server has no TLS.
    #[must_use]
    pub fn certificate_file(&self) -> PathBuf {
        self.certificate.as_ref().expect("a server with TLS").file()
    }
}

fn run(port: u16, certificate: Option<&Certificate>) -> ServerProcess {
    let program = place::redis();
    let mut command = Command::new(&program);
    command.args(["--bind", "127.0.0.1", "--save", ""]);
    let port_text = port.to_string();
    match certificate {
        None => command.args(["--port", &port_text]),
        Some(certificate) => command
            .args(["--port", "0", "--tls-port", &port_text, "--tls-auth-clients", "no"])
            .arg("--tls-cert-file")
            .arg(certificate.file())
            .arg("--tls-key-file")
            .arg(certificate.key()),
    };
    command.args(["--requirepass", PASSWORD]);
    if let Some(libraries) = unpacked_libraries(&program) {
        command.env("LD_LIBRARY_PATH", libraries);
    }
    ServerProcess::start(&mut command, "redis-server", port)
}

/// Returns the folder of the libraries beside an unpacked program.
fn unpacked_libraries(program: &Path) -> Option<PathBuf> {
    let folders = std::fs::read_dir(program.parent()?.with_file_name("lib")).ok()?;
    let mut folders = folders.flatten().map(|entry| entry.path());
    folders.find(|folder| folder.join("libjemalloc.so.2").exists())
}
