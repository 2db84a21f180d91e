//! Runs other programs so that none outlives this task: when the task is interrupted, the running
//! program is stopped.

use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};

static INTERRUPTED: AtomicBool = AtomicBool::new(false);
/// Process id of the program that the task runs at the moment, or 0.
static RUNNING: AtomicI32 = AtomicI32::new(0);

/// Makes interruptions (Ctrl-C) stop only the program that the task runs, so that the task can
/// clean up.
///
/// # Errors
/// The process has a handler already.
pub fn outlive_interruptions() -> anyhow::Result<()> {
    ctrlc::set_handler(|| {
        INTERRUPTED.store(true, Ordering::SeqCst);
        if let Some(pid) = Pid::from_raw(RUNNING.load(Ordering::SeqCst)) {
            // An error means that the program has ended.
            let _ = kill_process(pid, Signal::TERM);
        }
    })
    .context("no signal handler")
}

/// Waits for a program to end.
///
/// # Errors
/// There was an interruption.
pub fn wait(child: &mut Child) -> anyhow::Result<ExitStatus> {
    RUNNING.store(i32::try_from(child.id())?, Ordering::SeqCst);
    let status = child.wait();
    RUNNING.store(0, Ordering::SeqCst);
    ensure!(!INTERRUPTED.load(Ordering::SeqCst), "interrupted");
    Ok(status?)
}

/// Runs a program that must succeed and shows its output.
///
/// # Errors
/// The program does not start, or fails.
pub fn run(command: &mut Command) -> anyhow::Result<()> {
    let mut child =
        command.spawn().with_context(|| format!("{} does not start", shown(command)))?;
    let status = wait(&mut child)?;
    ensure!(status.success(), "{} failed ({status})", shown(command));
    Ok(())
}

/// Runs a program that must succeed. Returns its standard output.
///
/// # Errors
/// It does not start, or fails; has all its output.
pub fn run_quietly(command: &mut Command) -> anyhow::Result<String> {
    let output = command.output().with_context(|| format!("{} does not start", shown(command)))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        bail!("{} failed ({})\n{text}{errors}", shown(command), output.status);
    }
    Ok(text)
}

/// Repeats a check until it returns a value. `what` describes the awaited state.
///
/// # Errors
/// The check fails, or returns no value within the limit.
pub fn until<T>(
    limit: Duration,
    pause: Duration,
    what: &str,
    mut check: impl FnMut() -> anyhow::Result<Option<T>>,
) -> anyhow::Result<T> {
    let begun = Instant::now();
    while begun.elapsed() < limit {
        if let Some(value) = check()? {
            return Ok(value);
        }
        std::thread::sleep(pause);
    }
    bail!("not within {limit:?}: {what}")
}

/// Formats the command as typed in a shell.
fn shown(command: &Command) -> String {
    let mut words = vec![command.get_program().to_string_lossy()];
    words.extend(command.get_args().map(std::ffi::OsStr::to_string_lossy));
    words.join(" ")
}
