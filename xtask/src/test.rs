//! `cargo xtask test`: runs every test on both databases.
//!
//! Environment variables tell the tests the locations of files, and no test is skipped. The last
//! two lines show which databases were used and how many tests ran.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};
use clap::Args;

use crate::postgres::TemporaryPostgres;
use crate::workspace::{GuestKind, Workspace, cargo};
use crate::{guests, process, programs};

#[derive(Args)]
pub(crate) struct Options {
    /// Run only tests whose name contains one of these
    filter: Vec<String>,
}

/// Results of the test runners, added up.
#[derive(Debug, Default, PartialEq, Eq)]
struct TestCounts {
    passed: u64,
    failed: u64,
    ignored: u64,
    sqlite: u64,
    postgres: u64,
    /// Names of the tests that failed.
    failures: Vec<String>,
}

/// Builds everything, starts PostgreSQL and runs the tests.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> anyhow::Result<()> {
    process::outlive_interruptions()?;
    programs::package_managers()?;
    guests::build(workspace, guests::Options { fixtures: true, ..guests::Options::default() })?;
    // Cargo builds the binary for `host/server/tests`. A separate build would unite other features
    // and compile every dependency twice.
    process::run(cargo_test(workspace).arg("--no-run"))?;
    let binary = workspace.target.join("debug/assurance");
    ensure!(binary.is_file(), "{} was not built", binary.display());
    let (registry, promtool) = (programs::registry(workspace)?, programs::promtool(workspace)?);
    let redis = programs::redis(workspace)?;
    let postgres = TemporaryPostgres::start_small()?;
    let mut command = cargo_test(workspace);
    command
        .args(["--no-fail-fast", "--", &format!("--test-threads={}", side_by_side())])
        .args(&options.filter)
        .env("ASSURANCE_TEST_POSTGRES", postgres.url())
        .env("ASSURANCE_TEST_REGISTRY", registry)
        .env("ASSURANCE_TEST_PROMTOOL", promtool)
        .env("ASSURANCE_TEST_REDIS", redis)
        .env("ASSURANCE_BIN", binary)
        .env("ASSURANCE_AREAS", workspace.components(GuestKind::Area))
        .env("ASSURANCE_FIXTURES", workspace.components(GuestKind::Fixture));
    if std::env::var_os("ASSURANCE_CORPUS").is_none() {
        command.env("ASSURANCE_CORPUS", workspace.root.join("../shared/data"));
    }
    let (tally, succeeded) = follow(&mut command)?;
    tally.tell(&postgres);
    ensure!(succeeded && tally.failed == 0, "tests failed");
    Ok(())
}

/// Returns the number of tests to run at the same time: one more than there are cores, because most
/// end-to-end tests wait more than they compute.
fn side_by_side() -> usize {
    1 + std::thread::available_parallelism().map_or(1, usize::from)
}

fn cargo_test(workspace: &Workspace) -> Command {
    let mut command = cargo();
    command.current_dir(&workspace.root).args(["test", "--workspace"]);
    command
}

/// Runs cargo, shows its output and counts the results of its tests.
fn follow(command: &mut Command) -> anyhow::Result<(TestCounts, bool)> {
    let mut child = command.stdout(Stdio::piped()).spawn().context("cargo does not start")?;
    let output = child.stdout.take().context("no output")?;
    let reader = std::thread::spawn(move || {
        let mut tally = TestCounts::default();
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            println!("{line}");
            tally.count(&line);
        }
        tally
    });
    let status = process::wait(&mut child)?;
    let tally = reader.join().map_err(|_| anyhow::anyhow!("the reader of the output failed"))?;
    Ok((tally, status.success()))
}

impl TestCounts {
    /// Adds the results in one line of the test harness's output.
    fn count(&mut self, line: &str) {
        if let Some((name, ending)) =
            line.strip_prefix("test ").and_then(|rest| rest.rsplit_once(" ... "))
        {
            let ran = ending == "ok" || ending == "FAILED";
            self.sqlite += u64::from(ran && name.contains("sqlite"));
            self.postgres += u64::from(ran && name.contains("postgres"));
            if ending == "FAILED" {
                self.failures.push(name.to_owned());
            }
        } else if let Some(counts) = line.strip_prefix("test result: ") {
            self.passed += number_before(counts, " passed");
            self.failed += number_before(counts, " failed");
            self.ignored += number_before(counts, " ignored");
        }
    }

    fn tell(&self, postgres: &TemporaryPostgres) {
        println!();
        for name in &self.failures {
            println!("failed: {name}");
        }
        println!(
            "backends: SQLite ({} tests), PostgreSQL {} ({} tests)",
            self.sqlite, postgres.version, self.postgres
        );
        let skipped =
            if self.ignored > 0 { format!(", {} skipped", self.ignored) } else { String::new() };
        println!("tests: {} passed, {} failed{skipped}", self.passed, self.failed);
    }
}

fn number_before(text: &str, label: &str) -> u64 {
    let digits = text.split(label).next().and_then(|before| before.rsplit(' ').next());
    digits.and_then(|digits| digits.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_several_test_programs_are_added_up() {
        let mut tally = TestCounts::default();
        for line in [
            "test store::documents::tests::keeps_a_version::sqlite ... ok",
            "test store::documents::tests::keeps_a_version::postgres ... FAILED",
            "test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 3 filtered out",
            "test result: ok. 12 passed; 0 failed; 2 ignored; 0 measured; 0 filtered out",
        ] {
            tally.count(line);
        }
        let failures = vec!["store::documents::tests::keeps_a_version::postgres".to_owned()];
        let expected =
            TestCounts { passed: 13, failed: 1, ignored: 2, sqlite: 1, postgres: 1, failures };
        assert_eq!(tally, expected);
    }
}
