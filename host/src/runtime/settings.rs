//! Every limit of the sandbox, by name, with its unit and its default.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use super::compiler::CompileLimits;
use crate::config::{AreaLimits, Budgets, Config, Lanes, Malware};

/// What one call of an area may use, and how many run at a time.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Linear memory of one instance, in bytes.
    pub max_memory_bytes: usize,
    /// Linear memory of all instances together beyond the first MiB of each,
    /// in bytes.
    pub max_total_memory_bytes: usize,
    /// Instances alive at a time, all areas.
    pub max_instances: u32,
    /// Calls of one area at a time; further ones are refused as overloaded.
    pub max_concurrent_per_area: usize,
    /// Calls of one area at a time that have left the first slice.
    pub max_overstaying_per_area: usize,
    /// How often a running guest gives way and is looked at, in milliseconds.
    pub epoch_tick_ms: u32,
    /// A guest that runs for longer goes on at lower priority, in milliseconds.
    pub first_slice_ms: u32,
    /// Niceness of the thread that runs those requests: a tenth of the
    /// processor where quick calls want all of it. Not less, since on SQLite
    /// such a call may hold the turn to write.
    pub request_niceness: i32,
    /// Niceness of the thread that runs those jobs: nobody waits for them, but
    /// they must come to their end on a machine that is never idle.
    pub job_niceness: i32,
    /// Niceness of the threads that compile components.
    pub compile_niceness: i32,
    /// Largest reply, problem or checkpoint of an area, in bytes.
    pub max_reply_bytes: usize,
    /// What a guest may hand to the host in one host call, in bytes: the
    /// largest blob, and a little.
    pub max_host_call_bytes: usize,
    /// Host calls of one call.
    pub max_host_calls: u32,
    /// How long one call may keep others from writing.
    pub max_turn: MaxTurn,
    /// Log lines of one call; further ones are counted and dropped.
    pub max_log_lines: u32,
    /// Longest log line, in bytes; the rest is cut off.
    pub max_log_line_bytes: usize,
    /// Largest component, in bytes.
    pub max_component_bytes: usize,
    /// How long `describe` may compute, in milliseconds of processor time.
    pub describe_cpu_ms: u32,
    /// How long `describe` may take, in milliseconds: longer, so that a busy
    /// machine refuses no area.
    pub describe_timeout_ms: u32,
    /// Each lane's share, as the queue shows it.
    pub lanes: Lanes,
    /// What compiling one component may use.
    pub compile: CompileLimits,
    /// The program that compiles in a child process, this one; `None`: this
    /// process compiles.
    pub compiler: Option<PathBuf>,
    /// Where compiled components are kept; nothing: nowhere.
    pub cache_dir: Option<PathBuf>,
    /// What calls may use together.
    pub budgets: Budgets,
    /// What these areas may use instead, to begin with.
    pub areas: BTreeMap<String, AreaLimits>,
    /// What the operator has set for areas, by area and key.
    pub values: BTreeMap<String, BTreeMap<String, String>>,
    /// The scanner.
    pub malware: Malware,
}

/// What one call may use.
#[derive(Clone, Copy, Debug)]
pub(super) struct CallLimits {
    /// Linear memory, in bytes.
    pub(super) memory_bytes: usize,
    /// Host calls.
    pub(super) host_calls: u32,
    /// Processor time; nothing: until the deadline.
    pub(super) cpu: Option<Duration>,
    /// How long it may keep others from writing.
    pub(super) turn: MaxTurn,
}

/// How long a call may keep others from writing: from the first of its writes
/// that the database has to its commit.
#[derive(Clone, Copy, Debug)]
pub struct MaxTurn {
    /// Processor time.
    pub cpu: Duration,
    /// Time in all.
    pub wall: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            max_memory_bytes: 64 << 20,
            max_total_memory_bytes: 1 << 30,
            max_instances: 1024,
            max_concurrent_per_area: 256,
            max_overstaying_per_area: 4,
            epoch_tick_ms: 1,
            first_slice_ms: 5,
            request_niceness: 10,
            job_niceness: 5,
            compile_niceness: 10,
            max_reply_bytes: 16 << 20,
            max_host_call_bytes: 34 << 20,
            max_host_calls: 20_000,
            max_turn: MaxTurn {
                cpu: Duration::from_millis(250),
                wall: Duration::from_millis(5_000),
            },
            max_log_lines: 200,
            max_log_line_bytes: 4096,
            max_component_bytes: 64 << 20,
            describe_cpu_ms: 1_000,
            describe_timeout_ms: 30_000,
            lanes: Lanes::default(),
            compile: CompileLimits {
                memory_bytes: 2 << 30,
                cpu: Duration::from_secs(120),
                wall: Duration::from_secs(180),
            },
            compiler: None,
            cache_dir: None,
            budgets: Budgets::default(),
            areas: BTreeMap::new(),
            values: BTreeMap::new(),
            malware: Malware::default(),
        }
    }
}

impl From<&Config> for Settings {
    fn from(config: &Config) -> Self {
        let section = &config.runtime;
        Self {
            max_memory_bytes: bytes(section.max_memory_bytes),
            max_total_memory_bytes: bytes(section.max_total_memory_bytes),
            max_instances: section.max_instances,
            max_concurrent_per_area: section.max_concurrent_per_area as usize,
            max_overstaying_per_area: section.max_overstaying_per_area as usize,
            epoch_tick_ms: section.epoch_tick_ms,
            first_slice_ms: section.first_slice_ms,
            max_reply_bytes: bytes(section.max_reply_bytes),
            max_host_calls: section.max_host_calls,
            max_turn: MaxTurn {
                cpu: Duration::from_millis(section.max_turn_cpu_ms.into()),
                wall: Duration::from_millis(section.max_turn_ms.into()),
            },
            max_log_lines: section.max_log_lines,
            max_component_bytes: bytes(config.limits.max_component_bytes),
            lanes: config.jobs.lanes.clone(),
            compile: CompileLimits {
                memory_bytes: section.max_compile_memory_bytes,
                cpu: millis(section.max_compile_cpu_ms),
                wall: millis(section.max_compile_ms),
            },
            cache_dir: Some(config.runtime_cache_dir()),
            budgets: config.budgets.clone(),
            areas: config.areas.limits.clone(),
            values: config.areas.settings.clone(),
            malware: config.malware.clone(),
            ..Self::default()
        }
    }
}

/// Instances that an offline command has room for: it makes one after the
/// other, of which each may be linked from several modules.
const OFFLINE_INSTANCES: u32 = 16;

impl Settings {
    /// For a command that loads one component: nothing is cached, and there is
    /// room for few instances, since a machine's address space may be small.
    pub(super) fn offline(self) -> Self {
        Self { cache_dir: None, max_instances: OFFLINE_INSTANCES, ..self }
    }

    /// What one call may use, given what an operator has set for its area. The
    /// pool has no more memory than it was made with.
    pub(super) fn call_limits(&self, own: AreaLimits) -> CallLimits {
        let memory_bytes = own.max_memory_bytes.map_or(self.max_memory_bytes, bytes);
        CallLimits {
            memory_bytes: memory_bytes.min(self.most_memory_bytes()),
            host_calls: own.max_host_calls.unwrap_or(self.max_host_calls),
            cpu: own.max_cpu_ms.map(|ms| Duration::from_millis(ms.into())),
            turn: MaxTurn {
                cpu: own.max_turn_cpu_ms.map_or(self.max_turn.cpu, millis),
                wall: own.max_turn_ms.map_or(self.max_turn.wall, millis),
            },
        }
    }

    /// The most that any area's instance may have.
    pub(super) fn most_memory_bytes(&self) -> usize {
        let areas = self.areas.values().filter_map(|limits| limits.max_memory_bytes);
        areas.max().map_or(self.max_memory_bytes, |most| bytes(most).max(self.max_memory_bytes))
    }

    pub(super) fn tick(&self) -> Duration {
        Duration::from_millis(u64::from(self.epoch_tick_ms.max(1)))
    }

    pub(super) fn first_slice(&self) -> Duration {
        Duration::from_millis(u64::from(self.first_slice_ms))
    }

    pub(super) fn describe_cpu(&self) -> Duration {
        Duration::from_millis(u64::from(self.describe_cpu_ms))
    }

    pub(super) fn describe_timeout(&self) -> Duration {
        Duration::from_millis(u64::from(self.describe_timeout_ms))
    }
}

fn millis(configured: u32) -> Duration {
    Duration::from_millis(configured.into())
}

fn bytes(configured: u64) -> usize {
    usize::try_from(configured).unwrap_or(usize::MAX)
}
