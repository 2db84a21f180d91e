//! An OpenID Connect provider on a loopback port: `oidc-provider-mock` from PyPI, an independent
//! implementation, with new keys at each start.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use crate::python;

/// Python script of the provider. It prints its port and the digest of its keys, then serves.
const SERVE: &str = r#"
import hashlib, json, sys, time, urllib.request, warnings
warnings.simplefilter("ignore")
import oidc_provider_mock
with oidc_provider_mock.run_server_in_thread(int(sys.argv[1])) as server:
    keys = json.load(urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/jwks"))
    canonical = json.dumps(keys, sort_keys=True, separators=(",", ":")).encode()
    print(server.server_port, hashlib.sha256(canonical).hexdigest(), flush=True)
    while True:
        time.sleep(3600)
"#;

/// A running provider; it stops when dropped.
#[derive(Debug)]
pub struct OidcProvider {
    /// Issuer URL: `http://127.0.0.1:PORT`.
    pub issuer: String,
    /// SHA-256 of the canonical form of the provider's keys, computed by Python.
    pub jwks_sha256: String,
    port: u16,
    process: Child,
}

impl OidcProvider {
    /// Starts a provider on a free port.
    #[must_use]
    pub fn start() -> Self {
        Self::start_at(0)
    }

    /// Stops the provider and starts one with other keys and the same issuer.
    #[must_use]
    pub fn with_other_keys(self) -> Self {
        let port = self.port;
        drop(self);
        Self::start_at(port)
    }

    fn start_at(port: u16) -> Self {
        let python = python::with_packages(&["oidc-provider-mock"]);
        let mut command = Command::new(python);
        command.args(["-c", SERVE, &port.to_string()]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.spawn().expect("python starts");
        let mut line = String::new();
        let output = process.stdout.take().expect("a pipe");
        BufReader::new(output).read_line(&mut line).expect("a line");
        let told = line.trim().split_once(' ');
        let (port, jwks_sha256) = told.unwrap_or_else(|| panic!("the provider said {line:?}"));
        let jwks_sha256 = jwks_sha256.to_owned();
        let port: u16 = port.parse().expect("a port");
        Self { issuer: format!("http://127.0.0.1:{port}"), jwks_sha256, port, process }
    }
}

impl Drop for OidcProvider {
    fn drop(&mut self) {
        // Fails only if the process has ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
