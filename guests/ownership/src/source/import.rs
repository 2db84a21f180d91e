//! Imports a CODEOWNERS file: parses it, matches its rules with paths in steps, and publishes the
//! result.

use std::collections::BTreeMap;
use std::ops::Bound;

use area_sdk::prelude::*;
use area_sdk::{BlobError, JobError};

use super::intake::PATIENCE_SECONDS;
use super::{AuditInput, ImportError, SourceAvailability, SourceImportPhase, StoredSource};
use crate::codeowners::{
    Codeowners, Dialect, MOST_BYTES, ParseError, PathCounts, Warning, from_root, hidden_for_sure,
    is_kubernetes_owners, listed, parse,
};
use crate::findings::{self, MOST_ASKED};

/// Number of bytes of the list of paths that one step of the import reads.
const STEP_BYTES: u32 = 512 * 1024;
const SMALL_STEP_BYTES: u32 = 64 * 1024;
const MANY_RULES: usize = 2_000;

/// Number of paths of findings that one step of the import matches with the rules.
const STEP_PATHS: usize = 10_000;
const SMALL_STEP_PATHS: usize = 1_000;

/// Maximum number of warnings of an import that are stored and published.
const MOST_WARNINGS: usize = 200;

/// Job that imports the CODEOWNERS rules of an audit.
#[derive(Serialize, Deserialize)]
pub(crate) struct ImportOwnershipJob {
    audit_id: Uuid,
    /// Byte offset in the list of paths at which the next step continues.
    offset: u64,
    /// Path of a finding after which the next step continues; `None` in the first step, and if
    /// there is a list of paths.
    #[serde(default)]
    after: Option<String>,
    /// Whether the repository has more findings than those whose paths are counted.
    #[serde(default)]
    is_partial: bool,
    tally: PathCounts,
}

job!(ImportOwnershipJob, "import_ownership");

impl ImportOwnershipJob {
    pub(super) fn of(audit_id: Uuid) -> Self {
        let tally = PathCounts::default();
        Self { audit_id, offset: 0, after: None, is_partial: false, tally }
    }
}

/// Published when the ownership rules of an audit were imported, even if there are none.
#[derive(Serialize, JsonSchema)]
pub(crate) struct OwnershipImported {
    audit_id: Uuid,
    status: ImportStatus,
    counts: BTreeMap<&'static str, u64>,
    facts: OwnershipFacts,
    warnings: Vec<String>,
    errors: Vec<ImportError>,
}

event!(OwnershipImported, "audit.ownership_imported");

#[derive(Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum ImportStatus {
    Succeeded,
    /// The CODEOWNERS file cannot be read or parsed.
    Failed,
}

#[derive(Clone, Copy, Serialize, JsonSchema)]
#[schemars(rename = "Facts")]
struct OwnershipFacts {
    rules: u64,
    paths: u64,
    /// Number of paths without owners; `None` if not all findings were read, because for
    /// predicates, zero would mean that all have owners.
    #[serde(skip_serializing_if = "Option::is_none")]
    unowned: Option<u64>,
}

pub(crate) fn run(ctx: &JobCtx, mut job: ImportOwnershipJob) -> JobResult<ImportOwnershipJob> {
    let Some(mut source) = ctx.documents::<StoredSource>().find(job.audit_id)? else {
        return Ok(Outcome::Done);
    };
    if source.state == SourceImportPhase::Imported {
        return Ok(Outcome::Done);
    }
    let opened = open(ctx, &source)?;
    let is_done = match &source.path_list {
        Some(list) => count_listed_paths(ctx, &mut job, list, &opened.file)?,
        None => count_paths_of_findings(ctx, &mut job, source.repository_id, &opened.file)?,
    };
    if is_done {
        return finish(ctx, &mut source, opened, &job);
    }
    Ok(Outcome::Continue(job))
}

/// Counts the next paths of the list of paths. Returns whether the list has ended.
fn count_listed_paths(
    ctx: &JobCtx,
    job: &mut ImportOwnershipJob,
    list: &AuditInput,
    file: &Codeowners,
) -> Result<bool, JobError> {
    let length = if file.rule_count() > MANY_RULES { SMALL_STEP_BYTES } else { STEP_BYTES };
    let piece = ctx.shared_blobs("uploads").read(&list.blob, job.offset, length).map_err(away)?;
    let (lines, read) = whole_lines(&piece, length);
    // A list may begin with a byte order mark.
    let lines = lines.strip_prefix('\u{feff}').filter(|_| job.offset == 0).unwrap_or(&lines);
    let paths: Vec<_> = lines.lines().map(listed).collect();
    job.tally.count(file, paths.iter().filter_map(|path| from_root(path)));
    job.offset += read;
    Ok(read == 0)
}

/// Counts the next paths of the repository's findings. Returns whether these were the last ones.
fn count_paths_of_findings(
    ctx: &JobCtx,
    job: &mut ImportOwnershipJob,
    repository_id: Uuid,
    file: &Codeowners,
) -> Result<bool, JobError> {
    let most = if file.rule_count() > MANY_RULES { SMALL_STEP_PATHS } else { STEP_PATHS };
    let (paths, is_whole) = findings::paths(ctx, repository_id)?;
    job.is_partial = !is_whole;
    let after = job.after.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
    let mut left = paths.range::<str, _>((after, Bound::Unbounded));
    let next: Vec<&String> = left.by_ref().take(most).collect();
    job.tally.count(file, next.iter().filter_map(|path| from_root(path)));
    job.after = next.last().map(|last| (*last).clone());
    Ok(left.next().is_none())
}

/// Returns the complete lines at the start of a piece of the list of paths, and their size in
/// bytes. A piece shorter than `asked` is the last one. A line that fills the whole piece is
/// skipped.
fn whole_lines(piece: &[u8], asked: u32) -> (String, u64) {
    let at_end = piece.len() < asked as usize;
    let end = match piece.iter().rposition(|byte| *byte == b'\n') {
        _ if at_end => piece.len(),
        Some(newline) => newline + 1,
        None => return (String::new(), piece.len() as u64),
    };
    (String::from_utf8_lossy(&piece[..end]).into_owned(), end as u64)
}

fn away(error: BlobError) -> JobError {
    JobError::Retry(format!("uploads: {error:?}"))
}

/// Result of reading the CODEOWNERS file of an audit.
struct ReadOutcome {
    status: SourceAvailability,
    /// The parsed file; without rules if it is missing, unsupported or invalid.
    file: Codeowners,
    error: Option<(&'static str, &'static str)>,
}

impl ReadOutcome {
    fn without_rules(
        status: SourceAvailability,
        error: Option<(&'static str, &'static str)>,
    ) -> Self {
        let file =
            Codeowners { dialect: Dialect::Github, sections: Vec::new(), warnings: Vec::new() };
        Self { status, file, error }
    }
}

/// Reads and parses the CODEOWNERS file of an audit. Stores a copy for previews, because the upload
/// may be deleted.
fn open(ctx: &JobCtx, source: &StoredSource) -> Result<ReadOutcome, JobError> {
    let Some(input) = &source.code_owners else {
        return Ok(ReadOutcome::without_rules(SourceAvailability::Missing, None));
    };
    let invalid = |error| Ok(ReadOutcome::without_rules(SourceAvailability::Invalid, Some(error)));
    let content = match ctx.shared_blobs("uploads").read_all(&input.blob, MOST_BYTES) {
        Ok(content) => content,
        Err(BlobError::NotFound) => {
            return invalid((
                "content_missing",
                "The file's content was deleted; upload it again.",
            ));
        }
        Err(BlobError::LimitExceeded) => {
            return invalid((
                "too_large",
                "The file is larger than 3 MiB, which is GitHub's limit.",
            ));
        }
        Err(error) => return Err(away(error)),
    };
    if is_kubernetes_owners(&input.filename, &content) {
        return Ok(ReadOutcome::without_rules(SourceAvailability::Unsupported, None));
    }
    match parse(&content, source.dialect) {
        Ok(file) => {
            ctx.blobs().write(&input.copy(), &content).map_err(away)?;
            Ok(ReadOutcome { status: SourceAvailability::Available, file, error: None })
        }
        Err(error) => invalid(ParseError::code_and_fix(error)),
    }
}

/// Stores the result of the import of an audit's CODEOWNERS rules and publishes the event.
fn finish(
    ctx: &JobCtx,
    source: &mut Stored<StoredSource>,
    opened: ReadOutcome,
    ImportOwnershipJob { is_partial, tally, .. }: &ImportOwnershipJob,
) -> JobResult<ImportOwnershipJob> {
    let mut warnings = warnings(source, &opened, tally);
    if *is_partial {
        let warning = format!(
            "The repository has more than {MOST_ASKED} findings, of which only {MOST_ASKED} were \
             read, so the audit has no fact `ownership.unowned`. Upload a path list."
        );
        warnings.insert(0, warning);
    }
    source.state = SourceImportPhase::Imported;
    source.source_status = opened.status;
    source.dialect =
        (opened.status == SourceAvailability::Available).then_some(opened.file.dialect);
    source.rules = opened.file.rule_count() as u64;
    source.paths = tally.paths;
    source.unowned = tally.unowned;
    source.warnings = warnings;
    source.imported_at = Some(ctx.now());
    if let (Some((code, detail)), Some(input)) = (opened.error, &source.code_owners) {
        let (code, detail) = (code.to_owned(), detail.to_owned());
        source.errors = vec![ImportError { upload_id: input.upload_id, code, detail }];
    }
    ctx.documents().replace(source)?;
    ctx.publish(imported_event(source, *is_partial));
    Ok(Outcome::Done)
}

fn imported_event(source: &Stored<StoredSource>, is_partial: bool) -> OwnershipImported {
    let (rules, paths, unowned) = (source.rules, source.paths, source.unowned);
    OwnershipImported {
        audit_id: source.uuid(),
        status: match source.source_status {
            SourceAvailability::Invalid => ImportStatus::Failed,
            _ => ImportStatus::Succeeded,
        },
        counts: BTreeMap::from([("rules", rules), ("paths", paths), ("unowned", unowned)]),
        facts: OwnershipFacts { rules, paths, unowned: (!is_partial).then_some(unowned) },
        warnings: source.warnings.clone(),
        errors: source.errors.clone(),
    }
}

/// Returns a warning that neither the file's place nor the hosting service implies the dialect.
fn guessed(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Github => {
            "The CODEOWNERS file is read as GitHub's, which is a guess: set the repository's \
             `provider` to `github` or `gitlab`. Dialects of other services are not supported."
        }
        Dialect::Gitlab => {
            "The CODEOWNERS file is read as GitLab's, which is a guess: set the repository's \
             `provider` to `github` or `gitlab`. Dialects of other services are not supported."
        }
    }
}

/// Returns warnings about the choice of the CODEOWNERS file, its lines, and rules without effect.
fn warnings(source: &StoredSource, opened: &ReadOutcome, tally: &PathCounts) -> Vec<String> {
    let mut warnings = source.warnings.clone();
    if source.path_list.is_none() && !source.findings_imported {
        warnings.push(format!(
            "The audit's findings were not imported within {PATIENCE_SECONDS} s: paths are those of \
             earlier findings."
        ));
    }
    match opened.status {
        SourceAvailability::Missing => {
            warnings.push("The audit has no CODEOWNERS file.".to_owned());
        }
        SourceAvailability::Unsupported => warnings
            .push("OWNERS files of Kubernetes are not read; upload a CODEOWNERS file.".to_owned()),
        SourceAvailability::Invalid => {}
        SourceAvailability::Available => {
            let file = &opened.file;
            if source.dialect.is_none() {
                warnings.push(guessed(file.dialect).to_owned());
            }
            let idle = if source.path_list.is_some() {
                tally.warnings(file)
            } else {
                let unknown =
                    "The audit has no path list, so rules without a match are not reported.";
                warnings.push(unknown.to_owned());
                hidden_for_sure(file)
            };
            let mut lines: Vec<&Warning> = file.warnings.iter().chain(&idle).collect();
            lines.sort_by_key(|warning| warning.line);
            warnings.extend(lines.into_iter().map(ToString::to_string));
        }
    }
    let beyond = warnings.len().saturating_sub(MOST_WARNINGS);
    if beyond > 0 {
        warnings.truncate(MOST_WARNINGS);
        warnings.push(format!("{beyond} more warnings are not stored."));
    }
    warnings
}
