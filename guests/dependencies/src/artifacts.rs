//! Files that the uploads area keeps: their content, and what was found out
//! about each, once, under the digest of the content.

use area_sdk::prelude::*;
use area_sdk::{BlobError, JobError, Scope};

use crate::sbom::{self, Sbom, Subject};

/// Raised when a file would be read differently, so that it is read again.
const READER: u32 = 2;

/// What was found out about a file; the document's id is its SHA-256.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Artifact {
    reader: u32,
    /// Of a bill of materials: what it is the bill of.
    pub(crate) subject: Option<String>,
    /// Of a bill of materials.
    pub(crate) components: usize,
    /// Of OSV files: how many advisories of it were taken in.
    pub(crate) advisories: usize,
    /// What could not be read.
    pub(crate) errors: Vec<ArtifactError>,
    /// Of an SBOM or VEX document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) details: Option<DocumentDetails>,
}

/// What identifies an SBOM or VEX document, and what is in it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct DocumentDetails {
    pub(crate) subject: Option<Subject>,
    /// Serial number, and version of the document under it.
    pub(crate) serial: Option<(Uuid, u64)>,
    /// How many VEX statements it makes.
    pub(crate) statements: usize,
}

impl DocumentDetails {
    /// See [`sbom::stream`].
    pub(crate) fn stream(&self, filename: &str) -> String {
        sbom::stream(self.subject.as_ref(), filename)
    }
}

impl Document for Artifact {
    const COLLECTION: &'static str = "artifacts";
}

/// What is wrong with a file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ArtifactError {
    pub(crate) code: String,
    /// What to mend, with the place.
    pub(crate) detail: String,
}

impl ArtifactError {
    pub(crate) fn new(code: &str, detail: impl Into<String>) -> Self {
        Self { code: code.to_owned(), detail: detail.into() }
    }
}

impl Artifact {
    pub(crate) fn new(errors: Vec<ArtifactError>) -> Self {
        Self { reader: READER, subject: None, components: 0, advisories: 0, errors, details: None }
    }

    /// What a bill of materials is, without its components.
    pub(crate) fn of_sbom(read: Result<Sbom<'_>, ArtifactError>) -> Self {
        match read {
            Ok(sbom) => Self {
                components: sbom.len(),
                subject: sbom.subject.as_ref().map(|subject| subject.key.clone()),
                details: Some(DocumentDetails {
                    serial: sbom.serial,
                    statements: sbom.statements.len(),
                    subject: sbom.subject,
                }),
                ..Self::new(Vec::new())
            },
            Err(error) => Self::new(vec![error]),
        }
    }

    /// What is known of a file, as this version reads it.
    pub(crate) fn known(scope: &Scope, sha256: &str) -> Result<Option<Self>, JobError> {
        let known = scope.documents::<Self>().find(sha256)?;
        Ok(known.map(|known| known.value).filter(|known| known.reader == READER))
    }

    /// Notes what was found out.
    pub(crate) fn keep(&self, scope: &Scope, sha256: &str) -> Result<(), JobError> {
        match scope.documents::<Self>().find(sha256)? {
            Some(mut known) => {
                known.value = self.clone();
                Ok(scope.documents().replace(&mut known)?)
            }
            None => Ok(scope.documents().create(sha256, self)?),
        }
    }
}

/// The content of a bill of materials.
pub(crate) fn sbom_content(
    scope: &Scope,
    blob: &str,
) -> Result<Result<Vec<u8>, ArtifactError>, JobError> {
    content(scope, blob, sbom::MAX_BYTES)
}

/// The content of an upload; `Err` inside where it cannot be had for good.
pub(crate) fn content(
    scope: &Scope,
    blob: &str,
    most_bytes: usize,
) -> Result<Result<Vec<u8>, ArtifactError>, JobError> {
    match scope.shared_blobs("uploads").read_all(blob, most_bytes as u64) {
        Ok(content) => Ok(Ok(content)),
        Err(BlobError::Unavailable) => Err(JobError::Retry("the blob store is away".to_owned())),
        Err(BlobError::LimitExceeded) => {
            let detail = format!("The file is larger than {most_bytes} bytes; split it.");
            Ok(Err(ArtifactError::new("artifact_too_large", detail)))
        }
        Err(BlobError::NotFound | BlobError::InvalidName) => {
            let detail = "The content of this upload is not there any more; upload it again.";
            Ok(Err(ArtifactError::new("artifact_missing", detail)))
        }
    }
}

/// Reads an upload's content as a bill of materials.
pub(crate) fn sbom(content: &Result<Vec<u8>, ArtifactError>) -> Result<Sbom<'_>, ArtifactError> {
    let bytes = content.as_ref().map_err(Clone::clone)?;
    Sbom::read(bytes).map_err(|mistake| ArtifactError::new("invalid_sbom", mistake.to_string()))
}
