//! Python packages of third parties for verification and as servers. Each virtual environment is
//! created once in the target folder.

use std::io::{BufRead as _, BufReader, Lines};
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Command, Stdio};

use crate::place;
use crate::process::ServerProcess;

/// Returns the interpreter of an environment with these PyPI packages.
///
/// # Panics
/// The environment cannot be created; says what to install.
#[must_use]
pub fn with_packages(packages: &[&str]) -> PathBuf {
    let made = xtask::packages::pypi(&place::tools(), packages);
    made.unwrap_or_else(|error| panic!("{error:#}"))
}

/// Runs a script that must succeed. Returns its standard output.
#[must_use]
pub fn run(python: &Path, script: &str, arguments: &[&str]) -> String {
    let output = Command::new(python).args(["-c", script]).args(arguments).output();
    let output = output.expect("python starts");
    assert!(output.status.success(), "python: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Starts a script that serves. Returns the lines of its standard output too; its standard input is
/// open as long as the process is not dropped.
pub(crate) fn serve(
    packages: &[&str],
    script: &str,
    arguments: &[&str],
) -> (ServerProcess, Lines<BufReader<ChildStdout>>) {
    let mut command = Command::new(with_packages(packages));
    command.args(["-c", script]).args(arguments).stderr(Stdio::null());
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut process = command.spawn().expect("python starts");
    let output = process.stdout.take().expect("a pipe");
    (ServerProcess(process), BufReader::new(output).lines())
}

/// Returns the next line of a server.
pub(crate) fn next_line(lines: &mut Lines<BufReader<ChildStdout>>) -> String {
    lines.next().expect("the server writes a line").expect("a line of text")
}
