//! What documents are about, and which of them are about the same.

use area_sdk::prelude::*;

/// What a bill of materials is the bill of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Subject {
    /// The same for every version of it.
    pub(crate) key: String,
    /// With its group, whether it has a purl or not.
    pub(crate) name: String,
    pub(crate) version: Option<String>,
    /// How the file refers to it.
    pub(crate) references: Vec<String>,
    /// Whether the key identifies nothing by itself: a folder's or file's name.
    pub(crate) is_weak: bool,
    /// `sha256:…` of an image or file.
    pub(crate) digest: Option<String>,
}

/// What identifies the sequence of documents that one continues: its subject,
/// and for a subject without identity the file's path too.
pub(crate) fn stream(subject: Option<&Subject>, filename: &str) -> String {
    match subject {
        Some(subject) if !subject.is_weak => subject.key.clone(),
        Some(subject) => format!("{}\n{filename}", subject.key),
        None => format!("\n{filename}"),
    }
}

impl Subject {
    /// Whether a name identifies nothing but a place on a build machine: it is
    /// empty, `.`, or an absolute path.
    pub(super) fn is_place(name: &str) -> bool {
        let name = name.trim();
        name.starts_with(['/', '\\']) || name.chars().all(|c| matches!(c, '.' | '/' | '\\'))
    }

    /// Whether both certainly are the same, in whatever version.
    pub(crate) fn is(&self, other: &Self) -> bool {
        let has_no_purl = |subject: &Self| subject.key == subject.name;
        let named = self.name == other.name && (has_no_purl(self) || has_no_purl(other));
        !self.is_weak && !other.is_weak && (self.key == other.key || named)
    }
}
