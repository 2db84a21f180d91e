//! `assurance area logs`.

use std::fmt::Write;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;

use super::super::{CommonOptions, output};
use super::AreaArgument;
use assurance_core::area_log::{AreaLogEntry, AreaLogPage, CallFault, LogLine};

/// Interval between two requests for new log entries, with `--follow`.
const POLL: Duration = Duration::from_secs(1);

#[derive(Debug, Args)]
pub(in crate::cli) struct AreaLogsArgs {
    #[command(flatten)]
    area: AreaArgument,
    /// Maximum number of log entries.
    #[arg(long, default_value_t = 50)]
    limit: u32,
    /// Print new entries until interrupted; with --json, one object per line.
    #[arg(long)]
    follow: bool,
}

impl AreaLogsArgs {
    pub(super) async fn run(self, common: &CommonOptions) -> anyhow::Result<()> {
        let Self { area, limit, follow } = self;
        let operators = area.target.connect(common)?;
        let mut path = format!("/areas/{}/logs?limit={limit}", area.name);
        let first = path.clone();
        loop {
            let answer = operators.get(&path).await?;
            let page: AreaLogPage = serde_json::from_value(answer.clone())
                .context("the service's answer is of another version")?;
            let is_news = path == first || !page.is_empty();
            match common.output().json {
                true if is_news => output::line(&answer),
                true => {}
                false => output::text(lines(&page)?),
            }
            if !follow {
                return Ok(());
            }
            path = format!("{first}&cursor={}", page.cursor);
            if page.lines.len() < limit as usize {
                tokio::time::sleep(POLL).await;
            }
        }
    }
}

/// Formats a page of an area's log for people.
fn lines(page: &AreaLogPage) -> Result<String, std::fmt::Error> {
    let mut out = String::new();
    print(&mut out, page)?;
    Ok(out)
}

/// Writes an area's log lines and faults to `out`, in the order of their time.
fn print(out: &mut impl Write, page: &AreaLogPage) -> std::fmt::Result {
    if page.missed {
        writeln!(out, "(lines that came before are not kept any more)")?;
    }
    let (mut lines, mut faults) = (page.lines.iter().peekable(), page.faults.iter().peekable());
    loop {
        match (lines.peek(), faults.peek()) {
            (Some(line), Some(fault)) if fault.id < line.id => print_fault(out, fault)?,
            (Some(line), _) => {
                print_line(out, line)?;
                lines.next();
                continue;
            }
            (None, Some(fault)) => print_fault(out, fault)?,
            (None, None) => return Ok(()),
        }
        faults.next();
    }
}

fn print_line(out: &mut impl Write, line: &AreaLogEntry<LogLine>) -> std::fmt::Result {
    writeln!(out, "{} {:5} {}", head(line), line.what.level, line.what.message)
}

fn print_fault(out: &mut impl Write, fault: &AreaLogEntry<CallFault>) -> std::fmt::Result {
    writeln!(out, "{} FAULT {}", head(fault), fault.what.message)?;
    for frame in &fault.what.frames {
        writeln!(out, "    {frame}")?;
    }
    Ok(())
}

/// Returns the beginning of a printed log entry: time, version, and request or
/// job.
fn head<T>(entry: &AreaLogEntry<T>) -> String {
    let AreaLogEntry { digest, request_id, job_id, .. } = entry;
    let job = job_id.map(|id| format!("job {id}"));
    let call = request_id.as_deref().map(str::to_owned).or(job).unwrap_or_else(|| "-".to_owned());
    format!("{} {} {call}", entry.at.to_rfc3339(), digest.get(..12).unwrap_or(digest))
}
