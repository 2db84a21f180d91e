//! Collects the inputs of an audit: ready uploads of the repository, and contents that evidence
//! about the repository references.

use std::collections::{BTreeMap, BTreeSet};

use area_sdk::prelude::*;
use area_sdk::{DocumentError, Scope};
use area_shared::evidence::EvidenceRecord;
use area_shared::uploads::Upload;

use super::document::{AuditInputFile, RepositoryRevision};

/// Formats that audits import. Each format has its own query, so that many uploads of one format do
/// not displace the only upload of another.
const FORMATS: [&str; 6] = ["sarif", "cyclonedx", "spdx", "osv", "code_owners", "path_list"];

/// Kinds of evidence records that reference a content to import, with the maximum number of records
/// of the kind. `finding` is last, so that an input names its records of other kinds first.
const KINDS: [(&str, usize); 5] = [
    ("scan_report", MOST_RECORDS),
    ("sbom", MOST_RECORDS),
    ("advisory", MOST_RECORDS),
    ("code_owners", MOST_RECORDS),
    (FINDING, MOST_FINDINGS),
];

/// Kind of evidence records that are findings themselves.
const FINDING: &str = "finding";

/// Maximum number of uploads of one format that an audit imports.
const MOST_UPLOADS: usize = 200;

/// Maximum number of evidence records of one kind other than `finding` that an audit reads, and of
/// records that one input names.
const MOST_RECORDS: usize = 500;

/// Maximum number of evidence records of kind `finding` that an audit reads: three full envelopes.
const MOST_FINDINGS: usize = 3_000;

/// Maximum number of streams of one input. The findings of a file are imported for each of its
/// streams.
const MOST_STREAMS: usize = 8;

/// Maximum number of uploads with a digest of an evidence record that are searched for the audit's
/// branch.
const MOST_REFERENCED: usize = 1_500;

/// Maximum number of evidence records and of uploads by format that an audit reads, in whole pages.
/// Records take at most 5,600. With [`MOST_REFERENCED`] uploads and their last page, an audit reads
/// fewer than 10,000 documents (`limits.max_documents`).
const MOST_READ: usize = 8_000;

/// Maximum size of an audit's inputs in bytes of JSON. With the ids of its records they fit into
/// one event (`limits.max_payload_bytes`, 1 MiB).
const MOST_INPUT_BYTES: usize = 768 * 1024;

/// Purpose of uploads that audits import only if an evidence record references them. Audits import
/// uploads with any other purpose without such a record.
const EVIDENCE: &str = "evidence";

/// Maximum number of filenames, or of names of records, in a warning.
const MOST_NAMED: usize = 5;

/// Number of uploads, of records, or of digests in one page of a database query.
const STEP: u32 = 200;

/// Maximum number of uploads of one format that are searched for the audit's branch.
const MOST_LOOKED_AT: usize = 2_000;

/// Number of documents of [`MOST_READ`] that are reserved for each format: two pages. Other formats
/// and records cannot use them.
const RESERVED: usize = 2 * STEP as usize;

/// An evidence record that references a content to import by its digest.
struct ReferencingRecord {
    evidence_id: Uuid,
    stream: String,
    /// Reference of the evidence record within its system of origin.
    source_ref: String,
    is_finding: bool,
}

/// Uploads and records that an audit does not import, for warnings.
#[derive(Default)]
struct SkippedInputs {
    /// Uploads with the purpose `evidence`; those that a record references are imported
    /// nevertheless.
    evidence: Vec<Stored<Upload>>,
    /// Warning about evidence records whose content no upload has; `None` if there are none.
    unread: Option<String>,
    /// Warnings about formats and kinds with more uploads or records than the maximum.
    beyond: Vec<String>,
}

impl SkippedInputs {
    /// Returns the warnings about skipped uploads and records. `taken` has the ids of the imported
    /// uploads.
    fn warnings(&self, taken: &BTreeSet<String>) -> Vec<String> {
        let evidence = self.evidence.iter().filter(|upload| !taken.contains(&upload.id));
        let names: Vec<&str> = evidence.map(|upload| upload.filename.as_str()).collect();
        let of_evidence = (!names.is_empty()).then(|| {
            let names = listed(&names);
            format!(
                "Not read, because their purpose is `evidence` and no evidence record names \
                 them: {names}. Upload what audits should read with the purpose `audit`."
            )
        });
        of_evidence.into_iter().chain(self.unread.clone()).chain(self.beyond.clone()).collect()
    }
}

/// Returns the first [`MOST_NAMED`] names, and the number of the others.
fn listed(names: &[&str]) -> String {
    let rest = names.len().saturating_sub(MOST_NAMED);
    let more = if rest > 0 { format!(" and {rest} more") } else { String::new() };
    let shown: Vec<&str> = names.iter().take(MOST_NAMED).copied().collect();
    format!("{}{more}", shown.join(", "))
}

/// The inputs collected for an audit.
pub(super) struct CollectedInputs {
    pub(super) inputs: Vec<AuditInputFile>,
    pub(super) records: Vec<Uuid>,
    /// Warnings about uploads and evidence records that are not imported.
    pub(super) warnings: Vec<String>,
}

/// Collects the inputs of an audit of a repository, branch and commit.
pub(super) fn gather(
    scope: &Scope,
    target: &RepositoryRevision,
    repository: Option<String>,
) -> Result<CollectedInputs, DocumentError> {
    let subjects: Vec<String> =
        std::iter::once(target.repository_id.to_string()).chain(repository).collect();
    let (mut uploads, mut set_aside) = (Vec::new(), SkippedInputs::default());
    let mut left = MOST_READ - FORMATS.len() * RESERVED;
    let (findings, evidence) = evidence(scope, &subjects, &mut left, &mut set_aside)?;
    for format in FORMATS {
        left += RESERVED;
        uploads.append(&mut of_format(scope, target, format, &mut left, &mut set_aside)?);
    }
    uploads.append(&mut carried(scope, target, &evidence, &mut set_aside)?);
    let mut seen = BTreeSet::new();
    uploads.retain(|upload| seen.insert(upload.id.clone()));
    let mut inputs: Vec<AuditInputFile> =
        uploads.into_iter().filter_map(|upload| input(upload, target, &evidence)).collect();
    inputs.sort_by_key(|input| std::cmp::Reverse((input.ready_at, input.upload_id)));
    let records = without_file(findings, &inputs);
    limit_size(&mut inputs, &mut set_aside);
    Ok(CollectedInputs { inputs, records, warnings: set_aside.warnings(&seen) })
}

/// Returns the ids of the finding records whose content is not a SARIF file of the audit. The
/// results in the file are the findings of the others.
fn without_file(findings: Vec<FindingRecord>, inputs: &[AuditInputFile]) -> Vec<Uuid> {
    let sarif = inputs.iter().filter(|input| input.format == "sarif");
    let sarif: BTreeSet<&str> = sarif.map(|input| input.content_sha256.as_str()).collect();
    let alone = findings.iter().filter(|(_, content)| !sarif.contains(content.as_str()));
    alone.map(|(id, _)| *id).collect()
}

/// Removes the oldest inputs beyond [`MOST_INPUT_BYTES`].
fn limit_size(inputs: &mut Vec<AuditInputFile>, set_aside: &mut SkippedInputs) {
    let mut bytes = 0;
    let fits = |input: &&AuditInputFile| {
        bytes += serde_json::to_string(input).map_or(0, |json| json.len());
        bytes <= MOST_INPUT_BYTES
    };
    let (all, fitting) = (inputs.len(), inputs.iter().take_while(fits).count());
    if fitting < all {
        inputs.truncate(fitting);
        set_aside.beyond.push(format!("Of {all} files only the latest {fitting} were read."));
    }
}

/// Evidence records by the digest of the content that they reference.
type RecordsByContent = BTreeMap<String, Vec<ReferencingRecord>>;

/// Id of an evidence record of kind `finding`, and the digest of its content.
type FindingRecord = (Uuid, String);

/// Returns the newest evidence about a repository: records of kind `finding`, and the records of
/// each content, at most [`MOST_RECORDS`]. Subtracts the documents that it reads from `left`.
fn evidence(
    scope: &Scope,
    subjects: &[String],
    left: &mut usize,
    set_aside: &mut SkippedInputs,
) -> Result<(Vec<FindingRecord>, RecordsByContent), DocumentError> {
    let mut findings = Vec::new();
    let mut by_content = RecordsByContent::new();
    for (kind, most) in KINDS {
        let about = scope.documents::<EvidenceRecord>().query().one_of("subject_key", subjects);
        let about = about.equals("kind", kind).descending("observed_at");
        let mut read = 0;
        for (at, record) in about.limit(STEP).all().enumerate() {
            let record = record?;
            read = at + 1;
            if at == most {
                let warning = format!("Of the {kind} records only the latest {most} were read.");
                set_aside.beyond.push(warning);
                break;
            }
            let evidence_id = record.uuid();
            let EvidenceRecord { content_sha256, provider, source_ref, .. } = record.value;
            if kind == FINDING {
                findings.push((evidence_id, content_sha256.clone()));
            }
            let of_content = by_content.entry(content_sha256).or_default();
            if of_content.len() < MOST_RECORDS {
                let stream = format!("evidence:{provider}:{source_ref}");
                let is_finding = kind == FINDING;
                of_content.push(ReferencingRecord { evidence_id, stream, source_ref, is_finding });
            }
        }
        *left -= pages(read);
    }
    Ok((findings, by_content))
}

/// Rounds a number of documents up to whole pages of [`STEP`] documents.
fn pages(read: usize) -> usize {
    read.next_multiple_of(STEP as usize)
}

/// Returns the newest uploads of one format that match the audit's repository, branch and commit.
/// Reads at most `left` documents, a multiple of [`STEP`], and subtracts them from it.
fn of_format(
    scope: &Scope,
    target: &RepositoryRevision,
    format: &str,
    left: &mut usize,
    set_aside: &mut SkippedInputs,
) -> Result<Vec<Stored<Upload>>, DocumentError> {
    let ready = scope.documents::<Upload>().query().equals("validation_stage", "ready");
    let ready = ready.equals("repository_id", target.repository_id).equals("format", format);
    // The upload after the last one that is searched is read too.
    let most = MOST_LOOKED_AT.min(*left - 1);
    let (mut taken, mut read) = (Vec::new(), 0);
    for (at, upload) in ready.limit(STEP).all().enumerate() {
        let upload = upload?;
        read = at + 1;
        if taken.len() == MOST_UPLOADS || at == most {
            let latest = if taken.len() == MOST_UPLOADS { MOST_UPLOADS } else { most };
            let warning = format!("Of the {format} uploads only the latest {latest} were read.");
            set_aside.beyond.push(warning);
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
    *left -= pages(read);
    Ok(taken)
}

/// Returns the ready uploads with the content of evidence records that match the audit's branch and
/// commit.
fn carried(
    scope: &Scope,
    target: &RepositoryRevision,
    evidence: &RecordsByContent,
    set_aside: &mut SkippedInputs,
) -> Result<Vec<Stored<Upload>>, DocumentError> {
    let digests: Vec<&String> = evidence.keys().collect();
    let (mut uploads, mut read, mut found) = (Vec::new(), 0, BTreeSet::new());
    for digests in digests.chunks(STEP as usize) {
        let ready = scope.documents::<Upload>().query().equals("validation_stage", "ready");
        let named = ready.one_of("content_sha256", digests.iter().copied());
        for upload in named.one_of("format", FORMATS).limit(STEP).all() {
            let upload = upload?;
            if read == MOST_REFERENCED {
                let warning = "Of the uploads that evidence records name not all were read.";
                set_aside.beyond.push(warning.to_owned());
                return Ok(uploads);
            }
            read += 1;
            found.extend(upload.content_sha256.clone());
            if fits(&upload, target) {
                uploads.push(upload);
            }
        }
    }
    set_aside.unread = unread(evidence, &found);
    Ok(uploads)
}

/// Returns the warning about evidence records whose content is not among the `found` ones. Records
/// of kind `finding` need no content.
fn unread(evidence: &RecordsByContent, found: &BTreeSet<String>) -> Option<String> {
    let records = evidence.iter().filter(|(digest, _)| !found.contains(*digest));
    let records = records.flat_map(|(_, records)| records).filter(|record| !record.is_finding);
    let names: Vec<&str> = records.map(|record| record.source_ref.as_str()).collect();
    let distinct: Vec<&str> = names.iter().copied().collect::<BTreeSet<_>>().into_iter().collect();
    (!names.is_empty()).then(|| {
        format!(
            "Not read, because no ready upload in a format that audits read has their \
             content_sha256 (the digest of the unpacked content): {} evidence records ({}).",
            names.len(),
            listed(&distinct)
        )
    })
}

/// Returns the short name of a branch, without `refs/heads/`.
fn branch(name: &str) -> &str {
    name.strip_prefix("refs/heads/").unwrap_or(name)
}

/// Whether the upload's branch and commit equal those of the audit, or are not set.
fn fits(upload: &Upload, target: &RepositoryRevision) -> bool {
    let branch_fits = match (&upload.branch_ref, &target.branch_ref) {
        (Some(theirs), Some(ours)) => branch(theirs) == branch(ours),
        _ => true,
    };
    let commit_fits = match (&upload.commit_sha, &target.commit_sha) {
        // The audit's commit may be a prefix of the full id.
        (Some(theirs), Some(ours)) => {
            theirs.to_ascii_lowercase().starts_with(&ours.to_ascii_lowercase())
        }
        _ => true,
    };
    branch_fits && commit_fits
}

/// Converts an upload to an input of an audit; `None` if audits do not import its format or its
/// content was deleted.
fn input(
    upload: Stored<Upload>,
    target: &RepositoryRevision,
    evidence: &RecordsByContent,
) -> Option<AuditInputFile> {
    let upload_id = upload.uuid();
    let upload = upload.value;
    let content_sha256 = upload.content_sha256?;
    let naming = evidence.get(&content_sha256).map(Vec::as_slice).unwrap_or_default();
    let streams = if upload.repository_id == Some(target.repository_id) {
        vec![format!("file:{}", upload.filename)]
    } else {
        streams(naming)
    };
    let format = upload.format.filter(|format| FORMATS.contains(&format.as_str()))?;
    Some(AuditInputFile {
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

/// Returns the streams of a content that these records reference, at most [`MOST_STREAMS`]. Records
/// of kind `finding` come last: there may be one for each result of a scan. The order does not
/// depend on time, so that successive scans have streams in common.
fn streams(naming: &[ReferencingRecord]) -> Vec<String> {
    let ranked: BTreeSet<_> = naming.iter().map(|one| (one.is_finding, &one.stream)).collect();
    let mut seen = BTreeSet::new();
    let streams = ranked.into_iter().map(|(_, stream)| stream);
    streams.filter(|stream| seen.insert(*stream)).take(MOST_STREAMS).cloned().collect()
}
