//! An OpenID Connect provider on a loopback port: `oidc-provider-mock` from PyPI, an independent
//! implementation, with new keys at each start.

use crate::process::ServerProcess;
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
    _process: ServerProcess,
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
        let packages = ["oidc-provider-mock"];
        let (process, mut lines) = python::serve(&packages, SERVE, &[&port.to_string()]);
        let line = python::next_line(&mut lines);
        let (port, jwks_sha256) = line.split_once(' ').expect("a port and a digest");
        let (port, jwks_sha256) = (port.parse::<u16>().expect("a port"), jwks_sha256.to_owned());
        Self { issuer: format!("http://127.0.0.1:{port}"), jwks_sha256, port, _process: process }
    }
}
