//! Compiles components in a child process, which runs this program. Its memory
//! and time are limited, so a component that is expensive to compile ends only
//! the child. The child gets no environment, no configuration and no keys.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::settings::{Settings, millis};
use super::time_slice::lower_priority;
use super::{LoadError, engine};
use assurance_core::config::RuntimeConfig;

/// Name of the hidden command with which this program compiles a component in a
/// child process.
pub const COMMAND: &str = "compile-component";

/// Niceness of the threads and processes that compile components.
pub(super) const NICENESS: i32 = 10;
/// Exit code of a child process whose component is not valid.
const NOT_VALID: u8 = 3;
/// Exit code of a child process that could not write the machine code.
const NOT_WRITTEN: u8 = 4;
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
    let config = &settings.config.runtime;
    let host = |error: std::io::Error| LoadError::Host(error.into());
    let mut code = tempfile::tempfile().map_err(host)?;
    let mut complaint = tempfile::tempfile().map_err(host)?;
    let mut child = begin(program, settings, component, &code, &complaint)
        .context("cannot start the compiler")
        .map_err(LoadError::Host)?;
    match wait(&mut child, millis(config.max_compile_ms)).map_err(host)? {
        Some(status) if status.success() => read(&mut code, MAX_CODE).map_err(LoadError::Host),
        status => Err(failure(status, &mut complaint, config)),
    }
}

/// Returns the error of a compiling child process that ended without success,
/// or was killed after its time (`None`).
fn failure(status: Option<ExitStatus>, complaint: &mut File, config: &RuntimeConfig) -> LoadError {
    let code = status.and_then(|status| u8::try_from(status.code()?).ok());
    if !matches!(code, Some(NOT_VALID | NOT_WRITTEN)) {
        return LoadError::TooCostly {
            memory_bytes: config.max_compile_memory_bytes,
            cpu: millis(config.max_compile_cpu_ms),
            wall: millis(config.max_compile_ms),
        };
    }
    let why = match read(complaint, MAX_ERROR_OUTPUT) {
        Ok(why) => String::from_utf8_lossy(&why).trim().to_owned(),
        Err(error) => return LoadError::Host(error),
    };
    match code {
        Some(NOT_VALID) => LoadError::NotAComponent(why),
        _ => LoadError::Host(anyhow!("cannot write the machine code of a component: {why}")),
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
    let config = &settings.config.runtime;
    let numbers = [
        config.max_compile_memory_bytes.to_string(),
        (config.max_compile_cpu_ms / 1_000).max(1).to_string(),
        settings.most_memory_bytes().to_string(),
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
/// standard input and writes its machine code to standard output. This process
/// may take `memory_bytes` and, with all its threads, `cpu_seconds`. The machine
/// code depends on `instance_bytes`, the maximum memory of any instance of an
/// area. The inner error has the exit code and the problem of the component or
/// of the output.
///
/// # Errors
/// The limits cannot be set, or the input fails.
pub fn compile_here(
    memory_bytes: u64,
    cpu_seconds: u64,
    instance_bytes: usize,
) -> anyhow::Result<Result<(), (u8, String)>> {
    end_with_parent()?;
    lower_priority(NICENESS);
    limit(Resource::Data, memory_bytes)?;
    limit(Resource::Cpu, cpu_seconds)?;
    limit(Resource::Fsize, MAX_CODE)?;
    limit(Resource::Core, 0)?;
    let mut component = Vec::new();
    std::io::stdin().read_to_end(&mut component)?;
    let engine = engine::for_compiling(instance_bytes)?;
    match engine.precompile_component(&component) {
        Ok(code) => {
            let mut output = std::io::stdout().lock();
            let written = output.write_all(&code).and_then(|()| output.flush());
            Ok(written.map_err(|error| (NOT_WRITTEN, error.to_string())))
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

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;

    use super::*;

    #[test]
    fn a_full_disk_is_not_a_component_that_is_too_costly() {
        let mut complaint = tempfile::tempfile().unwrap();
        complaint.write_all(b"No space left on device\n").unwrap();
        let mut failed = |code: i32| {
            // The exit code is in the second byte of the wait status.
            let status = ExitStatus::from_raw(code << 8);
            failure(Some(status), &mut complaint, &RuntimeConfig::default()).to_string()
        };
        let full = failed(NOT_WRITTEN.into());
        assert!(full.starts_with("internal error of the host: cannot write"), "{full}");
        assert!(full.ends_with(": No space left on device"), "{full}");
        assert!(failed(NOT_VALID.into()).starts_with("not a valid component: No space"));
        assert!(failed(101).contains("runtime.max_compile_memory_bytes"));
    }
}
