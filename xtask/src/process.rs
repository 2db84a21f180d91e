//! Running other programs so that nothing outlives this task: the programs
//! waited for are stopped when it is interrupted.

use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use anyhow::{Context as _, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};

static INTERRUPTED: AtomicBool = AtomicBool::new(false);
/// The program being waited for, or 0.
static RUNNING: AtomicI32 = AtomicI32::new(0);

/// From here on an interruption stops the running program only, so that the
/// caller still gets to clean up.
///
/// # Errors
/// The process has a handler already.
pub fn outlive_interruptions() -> anyhow::Result<()> {
    ctrlc::set_handler(|| {
        INTERRUPTED.store(true, Ordering::SeqCst);
        if let Some(pid) = Pid::from_raw(RUNNING.load(Ordering::SeqCst)) {
            // It may just have ended by itself: then there is nothing to stop.
            let _ = kill_process(pid, Signal::TERM);
        }
    })
    .context("no signal handler")
}

/// Waits for a program.
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

/// Runs a program that must succeed, its output shown.
///
/// # Errors
/// It does not start, or fails.
pub fn run(command: &mut Command) -> anyhow::Result<()> {
    let mut child =
        command.spawn().with_context(|| format!("{} does not start", shown(command)))?;
    let status = wait(&mut child)?;
    ensure!(status.success(), "{} failed ({status})", shown(command));
    Ok(())
}

/// Runs a program that must succeed; what it wrote to its standard output.
///
/// # Errors
/// It does not start, or fails: then with all that it wrote.
pub fn run_quietly(command: &mut Command) -> anyhow::Result<String> {
    let output = command.output().with_context(|| format!("{} does not start", shown(command)))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        bail!("{} failed ({})\n{text}{errors}", shown(command), output.status);
    }
    Ok(text)
}

/// The command as a person would type it.
fn shown(command: &Command) -> String {
    let mut words = vec![command.get_program().to_string_lossy()];
    words.extend(command.get_args().map(std::ffi::OsStr::to_string_lossy));
    words.join(" ")
}
