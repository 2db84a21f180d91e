//! Subjects: the product that an SBOM or VEX document describes. Documents with the same subject
//! replace each other.

use area_sdk::prelude::*;

/// The product that an SBOM or VEX document describes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Subject")]
pub(crate) struct SbomSubject {
    /// Key that all versions of the product share: the purl without version; without a purl, the
    /// name, for an image without tag and digest.
    pub(crate) key: String,
    /// Name of the product that the document describes, with its group.
    pub(crate) name: String,
    pub(crate) version: Option<String>,
    /// References of the product in the document: `bom-ref` or `SPDXID`, and purl.
    pub(crate) references: Vec<String>,
    /// Whether `key` does not identify the product, because it is the name of a file or folder.
    pub(crate) is_weak: bool,
    /// `sha256:` and the digest of the image or file that is the product; `None` if the document
    /// has none.
    pub(crate) digest: Option<String>,
}

/// Returns the key of a document's stream, the sequence of documents that replace each other: the
/// subject's key, and the filename if that key does not identify the subject.
pub(crate) fn stream(subject: Option<&SbomSubject>, filename: &str) -> String {
    match subject {
        Some(subject) if !subject.is_weak => subject.key.clone(),
        Some(subject) => format!("{}\n{filename}", subject.key),
        None => format!("\n{filename}"),
    }
}

impl SbomSubject {
    /// Whether a product's name is only a location on the machine that created the SBOM: empty,
    /// `.`, or an absolute path.
    pub(super) fn is_place(name: &str) -> bool {
        let name = name.trim();
        name.starts_with(['/', '\\']) || name.chars().all(|c| matches!(c, '.' | '/' | '\\'))
    }

    /// Returns the name of an image without its tag and digest, which each build changes. An image
    /// id (`sha256:…`) is returned whole.
    pub(super) fn image_name(reference: &str) -> &str {
        let from = reference.rfind('/').map_or(0, |at| at + 1);
        match reference[from..].split([':', '@']).next() {
            Some("" | "sha256") | None => reference,
            Some(name) => &reference[..from + name.len()],
        }
    }

    /// Whether both documents' subjects are certainly the same product, in any version.
    pub(crate) fn is(&self, other: &Self) -> bool {
        let has_no_purl = |subject: &Self| !subject.key.starts_with("pkg:");
        let named = self.name == other.name && (has_no_purl(self) || has_no_purl(other));
        !self.is_weak && !other.is_weak && (self.key == other.key || named)
    }
}
