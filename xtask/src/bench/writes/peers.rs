//! Measurements of `xtask/peers`: another queue, and databases without a service.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;
use serde::Deserialize;

use super::postgres_cpu_us;
use super::rows::SubjectRoundResults;
use crate::process;
use crate::workspace::{Workspace, cargo};

/// Path of the program that runs the peers, the job queues and databases for comparison.
pub(super) struct PeersProgram(PathBuf);

/// Results that the program of the peers prints as JSON.
#[derive(Deserialize)]
struct PeersOutput {
    count: f64,
    seconds: f64,
    cpu_us: f64,
}

impl PeersProgram {
    /// Builds the program that runs the peers.
    pub(super) fn build(workspace: &Workspace) -> anyhow::Result<Self> {
        let target = workspace.target.join("peers");
        let mut build = cargo();
        build.args(["build", "--release", "--locked", "--manifest-path"]);
        build.arg(workspace.root.join("xtask/peers/Cargo.toml")).arg("--target-dir").arg(&target);
        process::run(&mut build)?;
        Ok(Self(target.join("release/peers")))
    }

    /// Runs the program of the peers without measuring it.
    pub(super) fn prepare(&self, arguments: &[&str]) -> anyhow::Result<()> {
        process::run_quietly(Command::new(&self.0).args(arguments)).map(drop)
    }

    /// Runs the program of the peers and returns what it measured. `waiting` is the number of jobs
    /// that it drains.
    pub(super) fn run(
        &self,
        arguments: &[&str],
        waiting: u64,
    ) -> anyhow::Result<SubjectRoundResults> {
        let before = postgres_cpu_us()?;
        let text = process::run_quietly(Command::new(&self.0).args(arguments))?;
        let database_cpu_us = postgres_cpu_us()? - before;
        let PeersOutput { count, seconds, cpu_us } =
            serde_json::from_str(&text).with_context(|| format!("peers printed {text}"))?;
        Ok(SubjectRoundResults {
            per_second: count / seconds,
            cpu_us: cpu_us / count,
            database_cpu_us: database_cpu_us / count,
            latency: None,
            waiting,
            errors: 0,
        })
    }
}

/// Returns the path of the file for the database of a peer.
pub(super) fn file(folder: &Path, name: &str) -> String {
    folder.join(format!("{name}.db")).display().to_string()
}
