//! The fault table: each fault is injected while ten workspaces are written to, and an observer
//! probes readiness and writes. A row shows the responses to the clients, how long writes failed
//! after the repair, and whether an acknowledged write was lost or duplicated.

mod disk;
mod observer;
mod processes;
mod row;
mod stage;

use std::time::Duration;

use clap::ValueEnum;

pub use self::row::Row;

use self::stage::Stage;
use crate::Backend;

/// 32 bytes in base64, different from the tests' master key.
const OTHER_KEY: &str = "YW5vdGhlciBtYXN0ZXIga2V5LCAzMiBieXRlcyBsLi4=";

/// A fault that can be injected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Fault {
    /// The disk of the database is full, then space is freed.
    DiskFull,
    /// The file system of the database becomes read-only. The repair checks and mounts it again and
    /// restarts the host.
    ReadOnly,
    /// `CREATE INDEX` and `DROP INDEX` on `documents` and `jobs`, repeatedly.
    CreateIndex,
    /// Another client locks `documents`.
    LockTable,
    /// Every process of PostgreSQL is stopped (SIGSTOP).
    PostgresStopped,
    /// PostgreSQL is killed and started again.
    PostgresKilled,
    /// Packets between host and PostgreSQL are dropped.
    NetworkCut,
    /// The bucket of the blobs is unreachable.
    BucketAway,
    /// A webhook receiver accepts connections and never responds.
    HangingReceiver,
    /// A webhook receiver responds after 10 s.
    SlowReceiver,
    /// One workspace starts 60 audits and floods the API.
    NoisyTenant,
    /// A second node has its clock 25 h ahead.
    ClockAhead,
    /// A second node has its clock 25 h behind.
    ClockBack,
    /// A second node has another master key.
    WrongKey,
    /// A second node has no master key.
    MissingKey,
    /// The host restarts with a truncated component of a live area.
    TruncatedComponent,
    /// A second process uses the same folder.
    TwoProcesses,
    /// 4,300 idle connections from one address.
    Sockets,
}

/// Requirements of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needs {
    /// No special requirement.
    Nothing,
    /// A separate disk for the database: needs root and `mount`.
    SmallDisk,
    /// A file system that can become read-only: needs root, `mount` and loop devices.
    LoopDisk,
    /// A separate PostgreSQL.
    OwnPostgres,
    /// A connection to PostgreSQL that the test can interrupt.
    Line,
    /// A bucket for the blobs.
    Bucket,
    /// A second node.
    SecondNode,
}

impl Fault {
    /// Returns the databases on which the fault is injected.
    #[must_use]
    pub fn backends(self) -> &'static [Backend] {
        match self {
            Self::CreateIndex
            | Self::LockTable
            | Self::PostgresStopped
            | Self::PostgresKilled
            | Self::NetworkCut
            | Self::ClockAhead
            | Self::ClockBack
            | Self::WrongKey
            | Self::MissingKey => &[Backend::Postgres],
            Self::ReadOnly | Self::TwoProcesses => &[Backend::Sqlite],
            _ => &[Backend::Sqlite, Backend::Postgres],
        }
    }

    /// Returns the duration of the fault.
    fn lasts(self) -> Duration {
        Duration::from_secs(match self {
            Self::LockTable => 40,
            Self::PostgresStopped | Self::NetworkCut => 20,
            Self::HangingReceiver | Self::SlowReceiver | Self::NoisyTenant => 20,
            _ => 10,
        })
    }

    fn needs(self) -> Needs {
        match self {
            Self::DiskFull => Needs::SmallDisk,
            Self::ReadOnly => Needs::LoopDisk,
            Self::PostgresStopped | Self::PostgresKilled => Needs::OwnPostgres,
            Self::NetworkCut => Needs::Line,
            Self::BucketAway => Needs::Bucket,
            Self::ClockAhead | Self::ClockBack => Needs::SecondNode,
            _ => Needs::Nothing,
        }
    }
}

/// Injects a fault into a new stage. Returns the row of the table.
pub async fn run(fault: Fault, backend: Backend, seed: u64) -> Row {
    if backend == Backend::Postgres && !backend.is_there() {
        return Row::skipped(fault, backend, "no PostgreSQL server is named".to_owned());
    }
    let mut stage = match Stage::set(fault.needs(), backend, seed).await {
        Ok(stage) => stage,
        Err(why) => return Row::skipped(fault, backend, why),
    };
    tokio::time::sleep(Duration::from_secs(4)).await;
    stage.mark_fault();
    let note = inject(fault, &mut stage).await;
    tokio::time::sleep(fault.lasts()).await;
    stage.mark_repair();
    repair(fault, &mut stage).await;
    stage.until_writes_work().await;
    tokio::time::sleep(Duration::from_secs(4)).await;
    stage.finish(fault, note).await
}

/// Injects the fault. Returns a note for the row.
async fn inject(fault: Fault, stage: &mut Stage) -> String {
    match fault {
        Fault::DiskFull => stage.disk().fill(),
        Fault::ReadOnly => stage.disk().turn_read_only(),
        Fault::CreateIndex => stage.build_indexes(fault.lasts()),
        Fault::LockTable => stage.lock_table().await,
        Fault::PostgresStopped => stage.stop_postgres(),
        Fault::PostgresKilled => stage.kill_postgres(),
        Fault::NetworkCut | Fault::BucketAway => stage.silence_line(),
        Fault::HangingReceiver => stage.receive_after(None).await,
        Fault::SlowReceiver => stage.receive_after(Some(Duration::from_secs(10))).await,
        Fault::NoisyTenant => stage.make_noise().await,
        Fault::ClockAhead => stage.turn_clock("+25h").await,
        Fault::ClockBack => stage.turn_clock("-25h").await,
        Fault::WrongKey => stage.start_neighbour(Some(OTHER_KEY)).await,
        Fault::MissingKey => stage.start_neighbour(None).await,
        Fault::TwoProcesses => stage.serve_twice().await,
        Fault::TruncatedComponent => stage.truncate_component().await,
        Fault::Sockets => stage.open_sockets().await,
    }
}

async fn repair(fault: Fault, stage: &mut Stage) {
    match fault {
        Fault::DiskFull => stage.free_disk().await,
        Fault::ReadOnly => stage.mount_again().await,
        Fault::PostgresStopped => stage.continue_postgres(),
        Fault::PostgresKilled => stage.launch_postgres().await,
        Fault::NetworkCut | Fault::BucketAway => stage.mend_line(),
        Fault::ClockAhead | Fault::ClockBack => drop(stage.turn_clock("+0").await),
        Fault::TruncatedComponent => stage.restore_component().await,
        _ => stage.let_go(),
    }
}
