//! Inventories with many advisories: a host with many packages of one source that has thousands of
//! advisories, and an SBOM with packages in every version.

use std::time::Instant;

use anyhow::ensure;
use serde::Serialize;
use serde_json::{Value as Json, json};

use super::report::LatencyPercentiles;
use super::{audit, guest_memory_bytes, repository, upload};
use crate::bench::server::Server;

/// Number of packages of one source, and number of the source's advisories.
const OF_SOURCE: (usize, usize) = (48, 4_001);
/// Number of packages, of versions of each, and of advisories of each: 219,000 matches.
const VERSIONED: (usize, usize, usize) = (80, 100, 55);
/// Number of records in one uploaded file.
const OF_FILE: usize = 2_000;
const SAMPLES: usize = 300;

/// Results for one inventory.
#[derive(Serialize)]
pub(super) struct MatchingResults {
    pub(super) backend: &'static str,
    pub(super) what: String,
    /// Time from the start of the audit, which also imports the advisories, in seconds.
    pub(super) import_seconds: f64,
    pub(super) default_list: LatencyPercentiles,
    pub(super) by_advisory: LatencyPercentiles,
    /// Maximum linear memory of one call of the area so far, in bytes.
    pub(super) guest_memory_bytes: u64,
}

/// Measures both inventories, one after the other.
pub(super) fn measure(
    server: &Server,
    backend: &'static str,
) -> anyhow::Result<Vec<MatchingResults>> {
    let (packages, records) = OF_SOURCE;
    let source = Input {
        what: format!("{packages} packages, {records} advisories each"),
        bill: kernel_host(packages),
        records: (0..records).map(kernel_record).collect(),
        vulnerable: packages,
        advisory: (format!("CVE-2030-{:05}", records - 1), packages),
    };
    let (packages, versions, records) = VERSIONED;
    let numbered = (0..packages).flat_map(|package| (0..records).map(move |n| (package, n)));
    let versioned = Input {
        what: format!("{} components, {packages} packages", packages * versions),
        bill: versioned_bill(packages, versions),
        records: numbered.map(|(package, n)| versioned_record(package, n, versions)).collect(),
        vulnerable: packages * (versions - 1),
        advisory: ("GHSA-7-54".to_owned(), versions - 1),
    };
    [source, versioned].into_iter().map(|input| input.measure(server, backend)).collect()
}

/// An SBOM with advisories.
struct Input {
    what: String,
    bill: String,
    records: Vec<Json>,
    /// Number of affected components.
    vulnerable: usize,
    /// Advisory to look for, and the number of components that it affects.
    advisory: (String, usize),
}

impl Input {
    fn measure(self, server: &Server, backend: &'static str) -> anyhow::Result<MatchingResults> {
        eprintln!("{backend}: {}", self.what);
        let repository = repository(server, &self.what)?;
        for (at, file) in self.records.chunks(OF_FILE).enumerate() {
            let content = Json::from(file).to_string();
            upload(server, &repository, &format!("records-{at}.json"), &content)?;
        }
        upload(server, &repository, "host.cdx.json", &self.bill)?;
        let begun = Instant::now();
        let audit = audit(server, &repository)?;
        let import_seconds = begun.elapsed().as_secs_f64();
        let vulnerable = &audit["facts"]["dependencies"]["vulnerable"];
        ensure!(*vulnerable == json!(self.vulnerable), "{vulnerable} components are vulnerable");
        let (advisory, affected) = &self.advisory;
        let list = format!("/dependencies?repository_id={repository}");
        let by_advisory = format!("{list}&limit=100&advisory={advisory}");
        let found = server.get(&by_advisory)?["items"].as_array().map(Vec::len);
        ensure!(found == Some(*affected), "{advisory} finds {found:?} components");
        Ok(MatchingResults {
            backend,
            what: self.what,
            import_seconds,
            default_list: LatencyPercentiles::of(SAMPLES, || server.get(&list).map(drop))?,
            by_advisory: LatencyPercentiles::of(SAMPLES, || server.get(&by_advisory).map(drop))?,
            guest_memory_bytes: guest_memory_bytes(server, "dependencies")?,
        })
    }
}

/// Returns a record in the form of Ubuntu's database about its kernel.
fn kernel_record(number: usize) -> Json {
    json!({
        "id": format!("UBUNTU-CVE-2030-{number:05}"), "modified": "2030-01-01T00:00:00Z",
        "upstream": [format!("CVE-2030-{number:05}")],
        "affected": [{
            "package": { "ecosystem": "Ubuntu:22.04:LTS", "name": "linux" },
            "ranges": [{ "type": "ECOSYSTEM", "events": [{ "introduced": "0" }] }],
            "versions": (0..100).map(|n| format!("5.15.0-{n}.{n}")).collect::<Vec<_>>(),
        }],
    })
}

fn kernel_host(packages: usize) -> String {
    bill((0..packages).map(|number| {
        format!(
            "pkg:deb/ubuntu/linux-part-{number:02}@5.15.0-200.210?arch=amd64&distro=ubuntu-22.04\
             &upstream=linux"
        )
    }))
}

/// Returns a record that affects the versions below one of them.
fn versioned_record(package: usize, number: usize, versions: usize) -> Json {
    let fixed = (number + 1) * (versions - 1) / VERSIONED.2;
    let events = json!([{ "introduced": "0" }, { "fixed": format!("1.{fixed}.0") }]);
    json!({
        "id": format!("GHSA-{package}-{number}"), "modified": "2030-01-01T00:00:00Z",
        "affected": [{
            "package": { "ecosystem": "npm", "name": format!("versioned-{package}") },
            "ranges": [{ "type": "SEMVER", "events": events }],
        }],
    })
}

fn versioned_bill(packages: usize, versions: usize) -> String {
    let numbered = (0..packages).flat_map(|package| (0..versions).map(move |n| (package, n)));
    bill(numbered.map(|(package, version)| format!("pkg:npm/versioned-{package}@1.{version}.0")))
}

fn bill(purls: impl Iterator<Item = String>) -> String {
    let component =
        |purl: String| json!({ "type": "library", "bom-ref": purl, "name": "x", "purl": purl });
    json!({
        "bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1,
        "metadata": { "component": { "type": "application", "bom-ref": "root", "name": "host" } },
        "components": purls.map(component).collect::<Vec<_>>(),
        "dependencies": [{ "ref": "root", "dependsOn": [] }],
    })
    .to_string()
}
