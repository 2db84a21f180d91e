//! What an audit looks at: the repository's ready uploads, and what the
//! evidence about the repository carries.

use std::collections::{BTreeMap, BTreeSet};

use area_sdk::prelude::*;
use area_sdk::{DocumentError, Scope};

use super::document::{AuditInput, Target};

/// What audits take in; each format is asked for by itself, so that many
/// uploads of one do not hide the only one of another.
const FORMATS: [&str; 6] = ["sarif", "cyclonedx", "spdx", "osv", "code_owners", "path_list"];

/// Kinds of evidence whose content is an artifact.
const KINDS: [&str; 5] = ["finding", "scan_report", "sbom", "advisory", "code_owners"];

/// How many uploads of a format an audit takes, and how many records of a kind.
const MOST_UPLOADS: usize = 200;
const MOST_RECORDS: u32 = 500;

/// The purpose of uploads that only evidence brings into an audit. Of every
/// other, also of words that were taken earlier, audits read.
const EVIDENCE: &str = "evidence";

/// Files that a warning names.
const MOST_NAMED: usize = 5;

/// How many uploads a question asks for, and digests it names.
const STEP: u32 = 200;

/// How many of a format are looked through for uploads of the branch.
const MOST_LOOKED_AT: usize = 2_000;

/// An upload, as its area keeps it.
#[derive(Serialize, Deserialize)]
struct Upload {
    filename: String,
    #[serde(default)]
    repository_id: Option<Uuid>,
    #[serde(default)]
    purpose: String,
    format: Option<String>,
    branch_ref: Option<String>,
    commit_sha: Option<String>,
    content_sha256: Option<String>,
    content_bytes: Option<u64>,
    blob: Option<String>,
    ready_at: Option<Timestamp>,
}

impl Document for Upload {
    const COLLECTION: &'static str = "uploads.uploads";
}

/// A piece of evidence, as its area keeps it.
#[derive(Serialize, Deserialize)]
struct Evidence {
    content_sha256: String,
    provider: String,
    source_ref: String,
}

/// A record that names an upload's content.
struct Naming {
    evidence_id: Uuid,
    stream: String,
}

impl Document for Evidence {
    const COLLECTION: &'static str = "evidence.records";
}

/// What an audit leaves out though it could read it.
#[derive(Default)]
struct SetAside {
    /// Uploads of that purpose.
    evidence: Vec<Stored<Upload>>,
    /// Formats of which there are more uploads than are taken.
    beyond: Vec<String>,
}

impl SetAside {
    /// `taken`: the ids of the uploads that the audit takes in all the same.
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

/// What was found.
pub(super) struct Gathered {
    pub(super) inputs: Vec<AuditInput>,
    pub(super) records: Vec<Uuid>,
    /// What was left out.
    pub(super) warnings: Vec<String>,
}

/// Looks for everything an audit of this target takes in.
pub(super) fn gather(
    scope: &Scope,
    target: &Target,
    repository: Option<String>,
) -> Result<Gathered, DocumentError> {
    let subjects: Vec<String> =
        std::iter::once(target.repository_id.to_string()).chain(repository).collect();
    let (records, evidence) = evidence(scope, &subjects)?;
    let (mut uploads, mut set_aside) = (Vec::new(), SetAside::default());
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
    Ok(Gathered { inputs, records, warnings })
}

/// By the digest of their content, the records that name it.
type ByContent = BTreeMap<String, Vec<Naming>>;

/// The evidence about a repository: its findings, and what carries content.
fn evidence(scope: &Scope, subjects: &[String]) -> Result<(Vec<Uuid>, ByContent), DocumentError> {
    let mut findings = Vec::new();
    let mut by_content = ByContent::new();
    for kind in KINDS {
        let about = scope.documents::<Evidence>().query().one_of("subject_key", subjects);
        let about = about.equals("kind", kind).descending("observed_at");
        for record in about.limit(MOST_RECORDS).list()? {
            let evidence_id = record.uuid();
            let Evidence { content_sha256, provider, source_ref } = record.value;
            let stream = format!("evidence:{provider}:{source_ref}");
            by_content.entry(content_sha256).or_default().push(Naming { evidence_id, stream });
            if kind == "finding" {
                findings.push(evidence_id);
            }
        }
    }
    Ok((findings, by_content))
}

/// The repository's newest uploads of a format that fit the target.
fn of_format(
    scope: &Scope,
    target: &Target,
    format: &str,
    set_aside: &mut SetAside,
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

/// The ready uploads whose content the evidence names.
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

/// A branch by its short name.
fn branch(name: &str) -> &str {
    name.strip_prefix("refs/heads/").unwrap_or(name)
}

/// Is the upload of the target's branch and commit, or of none?
fn fits(upload: &Upload, target: &Target) -> bool {
    let branch_fits = match (&upload.branch_ref, &target.branch_ref) {
        (Some(theirs), Some(ours)) => branch(theirs) == branch(ours),
        _ => true,
    };
    let commit_fits = match (&upload.commit_sha, &target.commit_sha) {
        // The audit may name the commit by its beginning.
        (Some(theirs), Some(ours)) => {
            theirs.to_ascii_lowercase().starts_with(&ours.to_ascii_lowercase())
        }
        _ => true,
    };
    branch_fits && commit_fits
}

/// An upload as an input, if it is of a format that audits take and its
/// content is there.
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
