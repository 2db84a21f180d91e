//! Compiles components in a child process, which runs this program. Its memory
//! and time are limited, so a component that is expensive to compile ends only
//! the child. The child gets no environment, no configuration and no keys.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::settings::Settings;
use super::time_slice::lower_priority;
use super::{LoadError, engine};

/// Name of the hidden command with which this program compiles a component in a
/// child process.
pub const COMMAND: &str = "compile-component";

/// Exit code of a child process whose component is not valid.
const NOT_VALID: u8 = 3;
/// Interval of checking whether a compiler's child process has ended.
const POLL: Duration = Duration::from_millis(5);
/// Maximum size of the compiler child process's error output that is reported,
/// in bytes.
const MAX_ERROR_OUTPUT: u64 = 4 << 10;
/// Maximum size of the machine code of one component, in bytes.
const MAX_CODE: u64 = 1 << 30;

/// Returns the path of the running program, which also compiles in a child
/// process.
#[must_use]
pub fn this_program() -> Option<PathBuf> {
    // Runs this executable, even if an upgrade has replaced the file.
    if cfg!(target_os = "linux") {
        Some("/proc/self/exe".into())
    } else {
        std::env::current_exe().ok()
    }
}

/// Limits of the child process that compiles one component.
#[derive(Clone, Copy, Debug)]
pub struct CompileLimits {
    /// Maximum memory of the compiling process, in bytes.
    pub memory_bytes: u64,
    /// Maximum processor time of all threads of the compiling process.
    pub cpu: Duration,
    /// Maximum time from start to end of the compiling process.
    pub wall: Duration,
}

/// Arguments of the child process that compiles one component, including the
/// settings of the engine that will run the code.
#[derive(Clone, Copy, Debug)]
pub struct CompilerArguments {
    /// Maximum memory of the compiling process, in bytes.
    pub memory_bytes: u64,
    /// Maximum processor time of all threads of the compiling process, in
    /// seconds.
    pub cpu_seconds: u64,
    /// Maximum memory of any instance of an area, in bytes; the machine code
    /// depends on it.
    pub instance_bytes: usize,
    /// Niceness of the compiling process.
    pub niceness: i32,
}

/// Compiles a component in a child process of `program`, and returns its
/// machine code. It blocks, so call it on a blocking thread.
///
/// # Errors
/// The component is not valid, or exceeds the limits.
pub(super) fn compile_in_child(
    program: &Path,
    settings: &Settings,
    component: &[u8],
) -> Result<Vec<u8>, LoadError> {
    let limits = settings.compile;
    let host = |error: std::io::Error| LoadError::Host(error.into());
    let mut code = tempfile::tempfile().map_err(host)?;
    let mut complaint = tempfile::tempfile().map_err(host)?;
    let mut child = begin(program, settings, component, &code, &complaint)
        .context("cannot start the compiler")
        .map_err(LoadError::Host)?;
    match wait(&mut child, limits.wall).map_err(host)? {
        Some(status) if status.success() => read(&mut code, MAX_CODE).map_err(LoadError::Host),
        Some(status) if status.code() == Some(NOT_VALID.into()) => {
            let why = read(&mut complaint, MAX_ERROR_OUTPUT).map_err(LoadError::Host)?;
            Err(LoadError::NotAComponent(String::from_utf8_lossy(&why).trim().to_owned()))
        }
        _ => Err(LoadError::TooCostly {
            memory_bytes: limits.memory_bytes,
            cpu: limits.cpu,
            wall: limits.wall,
        }),
    }
}

fn begin(
    program: &Path,
    settings: &Settings,
    component: &[u8],
    code: &File,
    complaint: &File,
) -> anyhow::Result<Child> {
    let mut input = tempfile::tempfile()?;
    input.write_all(component)?;
    input.seek(SeekFrom::Start(0))?;
    let limits = settings.compile;
    let numbers = [
        limits.memory_bytes.to_string(),
        limits.cpu.as_secs().max(1).to_string(),
        settings.most_memory_bytes().to_string(),
        settings.compile_niceness.to_string(),
    ];
    let child = Command::new(program)
        .arg(COMMAND)
        .args(numbers)
        .env_clear()
        // Otherwise the allocator reserves a gigabyte, which counts as used.
        .env("MIMALLOC_ARENA_EAGER_COMMIT", "0")
        .current_dir("/")
        .stdin(Stdio::from(input))
        .stdout(Stdio::from(code.try_clone()?))
        .stderr(Stdio::from(complaint.try_clone()?))
        .spawn()?;
    Ok(child)
}

/// Waits until the compiling child process ends; kills it after the time
/// `wall`, then returns `None`.
fn wait(child: &mut Child, wall: Duration) -> std::io::Result<Option<ExitStatus>> {
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if begun.elapsed() >= wall {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(POLL);
    }
}

fn read(file: &mut File, most: u64) -> anyhow::Result<Vec<u8>> {
    file.seek(SeekFrom::Start(0))?;
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Main function of the compiling child process: reads a component from
/// standard input and writes its machine code to standard output. The inner
/// error has the exit code and the problem of the component.
///
/// # Errors
/// The limits cannot be set, or a stream fails.
pub fn compile_here(job: CompilerArguments) -> anyhow::Result<Result<(), (u8, String)>> {
    end_with_parent()?;
    lower_priority(job.niceness);
    limit(Resource::Data, job.memory_bytes)?;
    limit(Resource::Cpu, job.cpu_seconds)?;
    limit(Resource::Fsize, MAX_CODE)?;
    limit(Resource::Core, 0)?;
    let mut component = Vec::new();
    std::io::stdin().read_to_end(&mut component)?;
    let engine = engine::for_compiling(job.instance_bytes)?;
    match engine.precompile_component(&component) {
        Ok(code) => {
            std::io::stdout().write_all(&code)?;
            Ok(Ok(()))
        }
        Err(error) => Ok(Err((NOT_VALID, format!("{error:#}")))),
    }
}

/// Ends this process when its parent ends.
#[cfg(target_os = "linux")]
fn end_with_parent() -> std::io::Result<()> {
    use rustix::process::{Signal, set_parent_process_death_signal};

    Ok(set_parent_process_death_signal(Some(Signal::KILL))?)
}

/// Does nothing on systems other than Linux, which cannot end a process with
/// its parent; the time limits end it.
#[cfg(not(target_os = "linux"))]
fn end_with_parent() -> std::io::Result<()> {
    Ok(())
}

/// Sets a resource limit of this process; limits can only be lowered.
fn limit(resource: Resource, most: u64) -> anyhow::Result<()> {
    let most = getrlimit(resource).maximum.map_or(most, |now| now.min(most));
    setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?;
    Ok(())
}
