//! Generated files of any size, equal for each run: SBOMs that share packages like the repositories
//! of one company, and scans without duplicates.

use serde_json::{Value as Json, json};

/// Number of packages from which the generated SBOMs choose, each in a few versions.
const PACKAGES: usize = 40_000;
/// Coprime to the number of packages, so that an SBOM names each of its packages once.
const STRIDE: usize = 7_919;
const RULES: usize = 200;
const WORDS: [&str; 20] = [
    "core", "util", "http", "json", "react", "parser", "logger", "crypto", "async", "stream",
    "cache", "client", "server", "schema", "router", "lint", "babel", "spring", "apache", "netty",
];
/// Number of the only package that [`advisory`] affects, in every version.
const AFFECTED: usize = 4 * STRIDE % PACKAGES;

/// Returns a CycloneDX document with this number of packages and a graph.
pub(super) fn sbom(repository: usize, components: usize) -> String {
    let purls: Vec<(usize, String)> = (0..components).map(|at| package(repository, at)).collect();
    let component = |(number, purl): &(usize, String)| {
        let version = purl.rsplit('@').next();
        json!({ "type": "library", "bom-ref": purl, "name": name(*number), "version": version, "purl": purl })
    };
    let needs = |at: usize| -> Vec<&String> {
        [at / 2, at / 3].iter().filter(|&&of| of < at).map(|&of| &purls[of].1).collect()
    };
    let mut graph: Vec<Json> =
        (0..components).map(|at| json!({ "ref": purls[at].1, "dependsOn": needs(at) })).collect();
    let direct: Vec<&String> = purls.iter().rev().take(20).map(|(_, purl)| purl).collect();
    graph.push(json!({ "ref": "root", "dependsOn": direct }));
    json!({
        "bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1,
        "metadata": { "component": { "type": "application", "bom-ref": "root", "name": "service" } },
        "components": purls.iter().map(component).collect::<Vec<_>>(),
        "dependencies": graph,
    })
    .to_string()
}

fn package(repository: usize, at: usize) -> (usize, String) {
    let number = (repository * 401 + at) * STRIDE % PACKAGES;
    let kind = ["npm", "pypi", "cargo", "gem"][number % 4];
    let version = format!("{}.{}.{}", number % 5, number / 5 % 20, (number + repository) % 4);
    (number, format!("pkg:{kind}/{}@{version}", name(number)))
}

fn name(number: usize) -> String {
    format!("{}-{}-{number}", WORDS[number / 7 % 20], WORDS[number / 140 % 20])
}

/// Returns an OSV record about a package that about a quarter of the SBOMs have.
pub(super) fn advisory() -> Json {
    let package = json!({ "ecosystem": "npm", "name": name(AFFECTED) });
    let range = json!({ "type": "SEMVER", "events": [{ "introduced": "0" }] });
    json!({
        "id": "GHSA-size-size-size", "modified": "2026-01-01T00:00:00Z",
        "affected": [{ "package": package, "ranges": [range] }],
    })
}

/// Returns a SARIF log with the results of a range of numbers.
pub(in crate::bench) fn sarif(from: usize, to: usize) -> String {
    let rule = |number: usize| {
        let severity = format!("{}.{}", number % 10, number / 10 % 10);
        json!({ "id": format!("rule-{number}"), "properties": { "security-severity": severity } })
    };
    let tool = json!({
        "name": format!("scan-{from}"), "rules": (0..RULES).map(rule).collect::<Vec<_>>(),
    });
    let results: Vec<Json> = (from..to).map(result).collect();
    json!({ "version": "2.1.0", "runs": [{ "tool": { "driver": tool }, "results": results }] })
        .to_string()
}

fn result(number: usize) -> Json {
    let word = |salt: usize| format!("{:08x}", (number + 1) * salt % 0xffff_ffff);
    let (from, to) = (word(2_654_435_761), word(40_503_000_017));
    let location = json!({
        "artifactLocation": { "uri": format!("src/{}/file{}.rs", number % 50, number % 5_000) },
        "region": {
            "startLine": number % 900 + 1,
            "snippet": { "text": format!("let value = call_{from}(argument_{to});") },
        },
    });
    json!({
        "ruleId": format!("rule-{}", number % RULES), "ruleIndex": number % RULES,
        "message": { "text": format!("{from} reaches {to} unchecked") },
        "locations": [{ "physicalLocation": location }],
    })
}
