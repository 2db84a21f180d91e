//! `assurance area logs`.

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
            match common.json {
                true if is_news => output::line(&answer),
                true => {}
                false => output::text(lines(&page)),
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

/// Formats the log lines and faults of a page for people, in the order of their time.
fn lines(page: &AreaLogPage) -> String {
    let lines = page.lines.iter().map(|line| (line.id, shown_line(line)));
    let faults = page.faults.iter().map(|fault| (fault.id, shown_fault(fault)));
    let mut entries: Vec<_> = lines.chain(faults).collect();
    entries.sort_by_key(|(id, _)| *id);
    let missed = if page.missed { "(lines that came before are not kept any more)\n" } else { "" };
    entries.into_iter().fold(missed.to_owned(), |all, (_, entry)| all + &entry)
}

fn shown_line(line: &AreaLogEntry<LogLine>) -> String {
    format!("{} {:5} {}\n", head(line), line.what.level, line.what.message)
}

fn shown_fault(fault: &AreaLogEntry<CallFault>) -> String {
    let frames: String = fault.what.frames.iter().map(|frame| format!("    {frame}\n")).collect();
    format!("{} FAULT {}\n{frames}", head(fault), fault.what.message)
}

/// Returns the beginning of a printed log entry: time, version, and request or
/// job.
fn head<T>(entry: &AreaLogEntry<T>) -> String {
    let AreaLogEntry { digest, request_id, job_id, .. } = entry;
    let job = job_id.map(|id| format!("job {id}"));
    let call = request_id.as_deref().map(str::to_owned).or(job).unwrap_or_else(|| "-".to_owned());
    format!("{} {} {call}", entry.at.to_rfc3339(), digest.get(..12).unwrap_or(digest))
}
