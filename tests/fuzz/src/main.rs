//! Fuzzes for a given time: `fuzz --minutes 60 sarif versions`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use assurance_fuzz::{Mutator, TARGETS, Target, check, seeds};
use clap::Parser;

#[derive(Parser)]
#[command(about = "Feeds readers of outside input with mutations of real files")]
struct Options {
    /// Total time for all targets together
    #[arg(long, default_value_t = 10)]
    minutes: u64,
    /// Start of the sequence of inputs; the same number gives the same inputs
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Folder for inputs that violate a property of their target
    #[arg(long, default_value = "target/fuzz")]
    findings: PathBuf,
    /// Number of threads; default: the number of processors
    #[arg(long)]
    threads: Option<usize>,
    /// Names of the targets to run; default: all
    targets: Vec<String>,
}

fn main() -> anyhow::Result<ExitCode> {
    let options = Options::parse();
    let chosen = chosen(&options.targets)?;
    fs::create_dir_all(&options.findings).context("cannot make the folder of findings")?;
    // A panic is a finding, which is printed separately.
    std::panic::set_hook(Box::new(|_| ()));
    let each = Duration::from_secs(60 * options.minutes) / u32::try_from(chosen.len())?;
    let threads = match options.threads {
        Some(threads) => threads,
        None => std::thread::available_parallelism()?.get(),
    };
    let mut found = 0;
    for target in chosen {
        let work = |thread: usize| {
            let number = options.seed.wrapping_mul(1_000).wrapping_add(thread as u64);
            fuzz(target, each, number, &options.findings)
        };
        found += std::thread::scope(|scope| {
            let running: Vec<_> = (0..threads).map(|n| scope.spawn(move || work(n))).collect();
            running.into_iter().map(|one| one.join().unwrap_or(Ok(1))).sum::<anyhow::Result<u64>>()
        })?;
    }
    println!("{found} findings in {}", options.findings.display());
    Ok(if found == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn chosen(names: &[String]) -> anyhow::Result<Vec<&'static Target>> {
    let known: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
    for name in names {
        let list = known.join(", ");
        ensure!(known.contains(&name.as_str()), "there is no target {name:?}; there are {list}");
    }
    let is_chosen = |target: &&Target| names.is_empty() || names.iter().any(|n| n == target.name);
    Ok(TARGETS.iter().filter(is_chosen).collect())
}

/// Returns the number of findings.
fn fuzz(target: &Target, time: Duration, number: u64, findings: &Path) -> anyhow::Result<u64> {
    let mut mutator = Mutator::new(seeds(target), number);
    let (began, mut executions, mut found) = (Instant::now(), 0_u64, 0);
    let mut slowest = Duration::ZERO;
    // This file remains if the input kills the process.
    let current = findings.join(format!("{}-{number}.current", target.name));
    while began.elapsed() < time {
        let input = mutator.next_input();
        fs::write(&current, &input)?;
        executions += 1;
        match check(target, &input) {
            Ok(took) => slowest = slowest.max(took),
            Err(finding) => {
                found += 1;
                let file = findings.join(format!("{}-{number}-{executions}", target.name));
                fs::write(&file, &input)?;
                println!("{}: {} ({finding})", target.name, file.display());
            }
        }
    }
    fs::remove_file(&current)?;
    println!("{}: {executions} executions, the slowest {slowest:?}", target.name);
    Ok(found)
}
