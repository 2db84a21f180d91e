//! Uploaded files: their content, and the results of reading them. The results are stored once for
//! each content, under its digest.

use area_sdk::prelude::*;
use area_sdk::{BlobError, JobError, Scope};

use crate::documents::put;
use crate::sbom::{self, Sbom, SbomSubject};

/// Version of the code that reads uploaded files. Increment it when the results change, so that
/// files are read again and replace what an earlier version stored.
pub(crate) const READER: u32 = 8;

/// Result of reading an uploaded file. The document's id is the lower-case hex SHA-256 of the file.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Artifact")]
pub(crate) struct StoredFileSummary {
    reader: u32,
    /// Key of the product that the SBOM describes; `None` if it names none, and for other files.
    pub(crate) subject: Option<String>,
    /// Number of components of an SBOM; 0 for other files.
    pub(crate) components: usize,
    /// Number of advisories imported from an OSV file; 0 for other files.
    pub(crate) advisories: usize,
    /// Errors because of which the file, or a part of it, was not imported.
    pub(crate) errors: Vec<FileImportError>,
    /// Number of errors of the file that are not in `errors`.
    #[serde(default)]
    pub(crate) more_errors: usize,
    /// Subject, serial number and kind of an SBOM or VEX document; `None` for other files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) details: Option<BomDocumentDetails>,
}

/// Identification of an SBOM or VEX document: its subject and serial number, and whether it has VEX
/// statements.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "DocumentDetails")]
pub(crate) struct BomDocumentDetails {
    pub(crate) subject: Option<SbomSubject>,
    /// CycloneDX serial number, and version of the document under that number; `None` for SPDX and
    /// for documents without one.
    pub(crate) serial: Option<(Uuid, u64)>,
    /// Number of VEX statements in the document.
    pub(crate) statements: usize,
    /// Whether the document is only a VEX document: it has `vulnerabilities`, which may be empty,
    /// and no components.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_vex: bool,
}

document!(StoredFileSummary, "artifacts");

/// Code of the error for a file whose content was deleted.
const MISSING: &str = "artifact_missing";

/// An error because of which an uploaded file, or a part of it, was not imported.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ArtifactError")]
pub(crate) struct FileImportError {
    pub(crate) code: String,
    /// Description of the error, with its position and how to fix it.
    pub(crate) detail: String,
}

impl FileImportError {
    pub(crate) fn new(code: &str, detail: impl Into<String>) -> Self {
        Self { code: code.to_owned(), detail: detail.into() }
    }
}

impl StoredFileSummary {
    pub(crate) fn new(errors: Vec<FileImportError>) -> Self {
        Self { reader: READER, errors, ..Self::default() }
    }

    /// Returns the result of reading an SBOM file: counts and identification, or the error. The
    /// components are not part of it.
    pub(crate) fn of_sbom(read: Result<Sbom<'_>, FileImportError>) -> Self {
        match read {
            Ok(sbom) => Self {
                components: sbom.len(),
                subject: sbom.subject.as_ref().map(|subject| subject.key.clone()),
                details: Some(BomDocumentDetails {
                    serial: sbom.serial,
                    statements: sbom.statements.len(),
                    is_vex: sbom.is_vex,
                    subject: sbom.subject,
                }),
                ..Self::new(Vec::new())
            },
            Err(error) => Self::new(vec![error]),
        }
    }

    /// Returns the stored result of reading the file with this SHA-256; `None` if there is none, or
    /// if another version of the code ([`READER`]) stored it. Also `None` if the content was
    /// missing, because it may have been uploaded again.
    pub(crate) fn known(scope: &Scope, sha256: &str) -> Result<Option<Self>, JobError> {
        let known = scope.documents::<Self>().find(sha256)?.map(|known| known.value);
        let is_missing = |known: &Self| known.errors.iter().any(|error| error.code == MISSING);
        Ok(known.filter(|known| known.reader == READER && !is_missing(known)))
    }

    /// Stores this result of reading the file with this SHA-256.
    pub(crate) fn keep(&self, scope: &Scope, sha256: &str) -> Result<(), JobError> {
        let known = scope.documents::<Self>().find(sha256)?;
        Ok(put(scope, sha256, known, self.clone())?)
    }
}

/// Returns the content of an uploaded SBOM. The inner `Err` means that the content was deleted or
/// is too large.
pub(crate) fn sbom_content(
    scope: &Scope,
    blob: &str,
) -> Result<Result<Vec<u8>, FileImportError>, JobError> {
    content(scope, blob, sbom::MAX_BYTES)
}

/// Returns the content of an uploaded file of at most `most_bytes` bytes. The inner `Err` means
/// that the content was deleted or is too large; the outer one lets the job be retried.
pub(crate) fn content(
    scope: &Scope,
    blob: &str,
    most_bytes: usize,
) -> Result<Result<Vec<u8>, FileImportError>, JobError> {
    match scope.shared_blobs("uploads").read_all(blob, most_bytes as u64) {
        Ok(content) => Ok(Ok(content)),
        Err(BlobError::Unavailable) => {
            Err(JobError::Retry("the blob store is unavailable".to_owned()))
        }
        Err(BlobError::LimitExceeded) => {
            let detail = format!("The file is larger than {most_bytes} bytes; split it.");
            Ok(Err(FileImportError::new("artifact_too_large", detail)))
        }
        Err(BlobError::NotFound | BlobError::InvalidName) => {
            let detail = "The content of this upload was deleted; upload it again.";
            Ok(Err(FileImportError::new(MISSING, detail)))
        }
    }
}

/// Parses the content of an upload as an SBOM. Returns the given error if there is no content.
pub(crate) fn sbom(
    content: &Result<Vec<u8>, FileImportError>,
) -> Result<Sbom<'_>, FileImportError> {
    let bytes = content.as_ref().map_err(Clone::clone)?;
    Sbom::read(bytes).map_err(|mistake| FileImportError::new("invalid_sbom", mistake.to_string()))
}
