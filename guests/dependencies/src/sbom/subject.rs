//! Subjects of documents: what an SBOM or VEX document describes, and which documents have the same
//! subject.

use area_sdk::prelude::*;

/// What an SBOM describes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Subject {
    /// Key shared by all versions of it.
    pub(crate) key: String,
    /// Name with its group, with or without a purl.
    pub(crate) name: String,
    pub(crate) version: Option<String>,
    /// References in the file.
    pub(crate) references: Vec<String>,
    /// Whether the key does not identify it: the name of a folder or file.
    pub(crate) is_weak: bool,
    /// `sha256:…` of an image or file.
    pub(crate) digest: Option<String>,
}

/// Returns the key of the document sequence that a document continues: its subject, plus the file's
/// path if the subject does not identify it.
pub(crate) fn stream(subject: Option<&Subject>, filename: &str) -> String {
    match subject {
        Some(subject) if !subject.is_weak => subject.key.clone(),
        Some(subject) => format!("{}\n{filename}", subject.key),
        None => format!("\n{filename}"),
    }
}

impl Subject {
    /// Whether a name is only a location on a build machine: empty, `.`, or an absolute path.
    pub(super) fn is_place(name: &str) -> bool {
        let name = name.trim();
        name.starts_with(['/', '\\']) || name.chars().all(|c| matches!(c, '.' | '/' | '\\'))
    }

    /// Whether both certainly are the same in any version.
    pub(crate) fn is(&self, other: &Self) -> bool {
        let has_no_purl = |subject: &Self| subject.key == subject.name;
        let named = self.name == other.name && (has_no_purl(self) || has_no_purl(other));
        !self.is_weak && !other.is_weak && (self.key == other.key || named)
    }
}
