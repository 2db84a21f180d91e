//! Buckets of an S3-compatible service on a loopback port: `moto` from PyPI, an independent
//! implementation that checks signatures and permissions. All tests of a process share one service,
//! with separate prefixes.

use std::io::{BufReader, Lines, Write as _};
use std::process::{ChildStdin, ChildStdout};
use std::sync::OnceLock;

use parking_lot::Mutex;
use serde_json::Value;

use crate::process::ServerProcess;
use crate::{Builder, python};

const SERVE: &str = include_str!("bucket.py");

/// The running S3-compatible service.
#[derive(Debug)]
struct Service {
    endpoint: String,
    credentials_file: String,
    secret: String,
    questions: Mutex<(ChildStdin, Lines<BufReader<ChildStdout>>)>,
    /// Process of the service. It ends when its standard input closes, so it ends with this
    /// process.
    _process: ServerProcess,
}

/// A prefix of one test in the bucket `blobs`.
#[derive(Clone, Debug)]
pub struct Bucket {
    /// URL of the service: `http://127.0.0.1:PORT`.
    pub endpoint: String,
    /// URL of this prefix: `s3://BUCKET/PREFIX`.
    pub url: String,
    /// File with the service's credentials, mode 0600.
    pub credentials_file: String,
    /// Secret key, which must not be in any log.
    pub secret: String,
    service: &'static Service,
}

impl Bucket {
    /// Returns an empty prefix. The first call starts the service.
    #[must_use]
    pub fn fresh() -> Self {
        static SERVICE: OnceLock<Service> = OnceLock::new();
        let service = SERVICE.get_or_init(Service::start);
        Self {
            endpoint: service.endpoint.clone(),
            url: format!("s3://blobs/{}", uuid::Uuid::now_v7()),
            credentials_file: service.credentials_file.clone(),
            secret: service.secret.clone(),
            service,
        }
    }

    /// Configures a host to store its blobs under this prefix.
    #[must_use]
    pub fn keeps_blobs_of(&self, builder: Builder) -> Builder {
        builder
            .set("blobs.url", self.url.as_str())
            .set("blobs.endpoint", self.endpoint.as_str())
            .set("blobs.allow_http", true)
            .set("blobs.credentials_file", self.credentials_file.as_str())
    }

    /// Returns the prefix of this test's objects, with a slash at the end.
    #[must_use]
    pub fn prefix(&self) -> String {
        format!("{}/", self.url.trim_start_matches("s3://blobs/"))
    }

    /// Returns the names of the stored objects.
    #[must_use]
    pub fn objects(&self) -> Vec<String> {
        self.ask("objects")
    }

    /// Returns the names of incomplete multipart uploads.
    #[must_use]
    pub fn uploads(&self) -> Vec<String> {
        self.ask("uploads")
    }

    fn ask(&self, what: &str) -> Vec<String> {
        let held = self.service.ask(&self.prefix());
        let names = held[what].as_array().expect("a list").iter();
        names.map(|name| name.as_str().expect("a name").to_owned()).collect()
    }
}

impl Service {
    fn start() -> Self {
        let packages = ["moto[s3]==5.2.5", "flask", "flask-cors"];
        let (mut process, mut lines) = python::serve(&packages, SERVE, &[]);
        let stdin = process.0.stdin.take().expect("a pipe");
        let told = answer(&mut lines);
        let text = |name: &str| told[name].as_str().expect("text").to_owned();
        Self {
            endpoint: text("endpoint"),
            credentials_file: text("credentials_file"),
            secret: text("secret"),
            questions: Mutex::new((stdin, lines)),
            _process: process,
        }
    }

    fn ask(&self, prefix: &str) -> Value {
        let (stdin, lines) = &mut *self.questions.lock();
        writeln!(stdin, "{prefix}").expect("the service listens");
        answer(lines)
    }
}

fn answer(lines: &mut Lines<BufReader<ChildStdout>>) -> Value {
    serde_json::from_str(&python::next_line(lines)).expect("JSON")
}
