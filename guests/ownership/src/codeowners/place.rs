//! Locations of CODEOWNERS files. The location decides which of several files a hosting service
//! reads, and in which dialect.

use super::Dialect;

/// Folder of a CODEOWNERS file, as hosting services distinguish it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FileLocation {
    Github,
    Gitlab,
    Docs,
    /// The repository's root, or any other folder.
    Root,
}

fn place(path: &str) -> FileLocation {
    let mut folders = path.rsplit(['/', '\\']).skip(1);
    match folders.next() {
        Some(".github") => FileLocation::Github,
        Some(".gitlab") => FileLocation::Gitlab,
        Some("docs") => FileLocation::Docs,
        _ => FileLocation::Root,
    }
}

/// Returns the dialect that the folder of a CODEOWNERS file implies: GitHub for `.github/`, GitLab
/// for `.gitlab/`, `None` for others.
pub(crate) fn said_by_place(path: &str) -> Option<Dialect> {
    match place(path) {
        FileLocation::Github => Some(Dialect::Github),
        FileLocation::Gitlab => Some(Dialect::Gitlab),
        FileLocation::Docs | FileLocation::Root => None,
    }
}

/// Returns how closely a filename resembles `CODEOWNERS`: 0 for exactly this name, 1 for a copy
/// with a similar name, 2 for any other name.
pub(crate) fn name_rank(path: &str) -> u8 {
    match path.rsplit(['/', '\\']).next().unwrap_or(path) {
        "CODEOWNERS" => 0,
        name if name.to_ascii_lowercase().contains("codeowners") => 1,
        _ => 2,
    }
}

/// Returns the position of a CODEOWNERS file's folder in the order in which a hosting service
/// searches, from 0. GitHub: `.github/`, the root, `docs/`. GitLab: the root, `docs/`, `.gitlab/`.
/// The folder of the other service comes last.
pub(crate) fn rank(path: &str, host: Option<Dialect>) -> u8 {
    let order = match host {
        Some(Dialect::Gitlab) => {
            [FileLocation::Root, FileLocation::Docs, FileLocation::Gitlab, FileLocation::Github]
        }
        Some(Dialect::Github) | None => {
            [FileLocation::Github, FileLocation::Root, FileLocation::Docs, FileLocation::Gitlab]
        }
    };
    let place = place(path);
    (0..).zip(order).find(|(_, other)| *other == place).map_or(u8::MAX, |(rank, _)| rank)
}

/// Keys at the beginning of a Kubernetes OWNERS file.
const KUBERNETES: [&str; 8] = [
    "approvers:",
    "reviewers:",
    "aliases:",
    "options:",
    "filters:",
    "labels:",
    "emeritus_approvers:",
    "required_reviewers:",
];

/// Whether the file is an OWNERS file of Kubernetes, which is YAML and not supported.
pub(crate) fn is_kubernetes_owners(path: &str, content: &[u8]) -> bool {
    let name = path.rsplit(['/', '\\']).next().unwrap_or_default();
    let called_so = name == "OWNERS" || name == "OWNERS_ALIASES";
    let text = std::str::from_utf8(content).unwrap_or_default();
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = text.lines().map(str::trim_end);
    let first = lines.find(|line| !line.is_empty() && !line.starts_with('#') && *line != "---");
    called_so || first.is_some_and(|line| KUBERNETES.iter().any(|member| line.starts_with(member)))
}
