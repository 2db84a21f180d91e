//! Collects the inputs of an audit: the repository's ready uploads, and contents of evidence about
//! the repository.

use std::collections::{BTreeMap, BTreeSet};

use area_sdk::prelude::*;
use area_sdk::{DocumentError, Scope};
use area_shared::evidence::EvidenceRecord;
use area_shared::uploads::Upload;

use super::document::{AuditInput, Target};

/// Formats that audits import. Each is queried separately, so that many uploads of one format do
/// not hide the only one of another.
const FORMATS: [&str; 6] = ["sarif", "cyclonedx", "spdx", "osv", "code_owners", "path_list"];

/// Kinds of evidence whose content is an artifact.
const KINDS: [&str; 5] = ["finding", "scan_report", "sbom", "advisory", "code_owners"];

/// Maximum number of uploads of a format and of records of a kind.
const MOST_UPLOADS: usize = 200;
const MOST_RECORDS: u32 = 500;

/// Purpose of uploads that audits import only if evidence references them. Uploads with any other
/// purpose are imported.
const EVIDENCE: &str = "evidence";

/// Maximum number of files in a warning.
const MOST_NAMED: usize = 5;

/// Number of uploads and of digests in one query.
const STEP: u32 = 200;

/// Maximum number of uploads of a format that are searched for the branch.
const MOST_LOOKED_AT: usize = 2_000;

/// A record that references an upload's content.
struct Naming {
    evidence_id: Uuid,
    stream: String,
}

/// Readable content that an audit does not import.
#[derive(Default)]
struct SkippedInput {
    /// Uploads with the purpose `evidence`.
    evidence: Vec<Stored<Upload>>,
    /// Formats with more uploads than are imported.
    beyond: Vec<String>,
}

impl SkippedInput {
    /// Returns the warnings. `taken` has the ids of the imported uploads.
    fn warnings(&self, taken: &BTreeSet<String>) -> Vec<String> {
        let evidence = self.evidence.iter().filter(|upload| !taken.contains(&upload.id));
        let names: Vec<&str> = evidence.map(|upload| upload.filename.as_str()).collect();
        let of_evidence = (!names.is_empty()).then(|| {
            let rest = names.len().saturating_sub(MOST_NAMED);
            let more = if rest > 0 { format!(" and {rest} more") } else { String::new() };
            let shown = names.iter().take(MOST_NAMED).copied().collect::<Vec<_>>().join(", ");
            format!(
                "Not read, because their purpose is `evidence` and no evidence record names \
                 them: {shown}{more}. Upload what audits should read with the purpose `audit`."
            )
        });
        let beyond = self.beyond.iter().map(|format| {
            format!("Of the {format} uploads only the latest {MOST_UPLOADS} were read.")
        });
        of_evidence.into_iter().chain(beyond).collect()
    }
}

/// The collected inputs.
pub(super) struct CollectedInputs {
    pub(super) inputs: Vec<AuditInput>,
    pub(super) records: Vec<Uuid>,
    /// Warnings about skipped content.
    pub(super) warnings: Vec<String>,
}

/// Collects the inputs of an audit of this target.
pub(super) fn gather(
    scope: &Scope,
    target: &Target,
    repository: Option<String>,
) -> Result<CollectedInputs, DocumentError> {
    let subjects: Vec<String> =
        std::iter::once(target.repository_id.to_string()).chain(repository).collect();
    let (records, evidence) = evidence(scope, &subjects)?;
    let (mut uploads, mut set_aside) = (Vec::new(), SkippedInput::default());
    for format in FORMATS {
        uploads.append(&mut of_format(scope, target, format, &mut set_aside)?);
    }
    uploads.append(&mut carried(scope, target, evidence.keys())?);
    let mut seen = BTreeSet::new();
    uploads.retain(|upload| seen.insert(upload.id.clone()));
    let warnings = set_aside.warnings(&seen);
    let mut inputs: Vec<AuditInput> =
        uploads.into_iter().filter_map(|upload| input(upload, target, &evidence)).collect();
    inputs.sort_by_key(|input| std::cmp::Reverse((input.ready_at, input.upload_id)));
    Ok(CollectedInputs { inputs, records, warnings })
}

/// Records by the digest of the referenced content.
type ByContent = BTreeMap<String, Vec<Naming>>;

/// Returns the evidence about a repository: finding records, and records with content.
fn evidence(scope: &Scope, subjects: &[String]) -> Result<(Vec<Uuid>, ByContent), DocumentError> {
    let mut findings = Vec::new();
    let mut by_content = ByContent::new();
    for kind in KINDS {
        let about = scope.documents::<EvidenceRecord>().query().one_of("subject_key", subjects);
        let about = about.equals("kind", kind).descending("observed_at");
        for record in about.limit(MOST_RECORDS).list()? {
            let evidence_id = record.uuid();
            let EvidenceRecord { content_sha256, provider, source_ref, .. } = record.value;
            let stream = format!("evidence:{provider}:{source_ref}");
            by_content.entry(content_sha256).or_default().push(Naming { evidence_id, stream });
            if kind == "finding" {
                findings.push(evidence_id);
            }
        }
    }
    Ok((findings, by_content))
}

/// Returns the repository's newest uploads of a format for the target.
fn of_format(
    scope: &Scope,
    target: &Target,
    format: &str,
    set_aside: &mut SkippedInput,
) -> Result<Vec<Stored<Upload>>, DocumentError> {
    let ready = scope.documents::<Upload>().query().equals("validation_stage", "ready");
    let ready = ready.equals("repository_id", target.repository_id).equals("format", format);
    let mut taken = Vec::new();
    for (at, upload) in ready.limit(STEP).all().enumerate() {
        let upload = upload?;
        if taken.len() == MOST_UPLOADS || at == MOST_LOOKED_AT {
            set_aside.beyond.push(format.to_owned());
            break;
        }
        if !fits(&upload, target) {
            continue;
        }
        if upload.purpose == EVIDENCE {
            set_aside.evidence.push(upload);
        } else {
            taken.push(upload);
        }
    }
    Ok(taken)
}

/// Returns the ready uploads whose content evidence references.
fn carried<'a>(
    scope: &Scope,
    target: &Target,
    digests: impl Iterator<Item = &'a String>,
) -> Result<Vec<Stored<Upload>>, DocumentError> {
    let digests: Vec<&String> = digests.collect();
    let mut uploads = Vec::new();
    for digests in digests.chunks(STEP as usize) {
        let ready = scope.documents::<Upload>().query().equals("validation_stage", "ready");
        let named = ready.one_of("content_sha256", digests.iter().copied()).limit(1000);
        uploads.extend(named.list()?.into_iter().filter(|upload| fits(upload, target)));
    }
    Ok(uploads)
}

/// Returns the short name of a branch.
fn branch(name: &str) -> &str {
    name.strip_prefix("refs/heads/").unwrap_or(name)
}

/// Whether the upload belongs to the target's branch and commit, or to none.
fn fits(upload: &Upload, target: &Target) -> bool {
    let branch_fits = match (&upload.branch_ref, &target.branch_ref) {
        (Some(theirs), Some(ours)) => branch(theirs) == branch(ours),
        _ => true,
    };
    let commit_fits = match (&upload.commit_sha, &target.commit_sha) {
        // The audit may name the commit by a prefix.
        (Some(theirs), Some(ours)) => {
            theirs.to_ascii_lowercase().starts_with(&ours.to_ascii_lowercase())
        }
        _ => true,
    };
    branch_fits && commit_fits
}

/// Returns an upload as an input, if audits import its format and its content exists.
fn input(upload: Stored<Upload>, target: &Target, evidence: &ByContent) -> Option<AuditInput> {
    let upload_id = upload.uuid();
    let upload = upload.value;
    let content_sha256 = upload.content_sha256?;
    let naming = evidence.get(&content_sha256).map(Vec::as_slice).unwrap_or_default();
    let streams = if upload.repository_id == Some(target.repository_id) {
        vec![format!("file:{}", upload.filename)]
    } else {
        let streams: BTreeSet<&String> = naming.iter().map(|one| &one.stream).collect();
        streams.into_iter().cloned().collect()
    };
    let format = upload.format.filter(|format| FORMATS.contains(&format.as_str()))?;
    Some(AuditInput {
        upload_id,
        blob: upload.blob?,
        format,
        filename: upload.filename,
        streams,
        evidence_ids: naming.iter().map(|one| one.evidence_id).collect(),
        content_sha256,
        bytes: upload.content_bytes?,
        ready_at: upload.ready_at?,
        commit_sha: upload.commit_sha,
    })
}
