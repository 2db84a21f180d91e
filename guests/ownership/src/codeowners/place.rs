//! Where a CODEOWNERS file lies, and what that says: which of several files a
//! host reads, and in which dialect.

use super::Dialect;

/// Where a file lies.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Github,
    Gitlab,
    Docs,
    /// The root, or nowhere that is known.
    Root,
}

fn place(path: &str) -> Place {
    let mut folders = path.rsplit(['/', '\\']).skip(1);
    match folders.next() {
        Some(".github") => Place::Github,
        Some(".gitlab") => Place::Gitlab,
        Some("docs") => Place::Docs,
        _ => Place::Root,
    }
}

/// The dialect that the file's place tells.
pub(crate) fn said_by_place(path: &str) -> Option<Dialect> {
    match place(path) {
        Place::Github => Some(Dialect::Github),
        Place::Gitlab => Some(Dialect::Gitlab),
        Place::Docs | Place::Root => None,
    }
}

/// How surely a file is meant to be the CODEOWNERS file, by its name: 0 for one
/// that is called so, 1 for a copy whose name says it, 2 for any other.
pub(crate) fn name_rank(path: &str) -> u8 {
    match path.rsplit(['/', '\\']).next().unwrap_or(path) {
        "CODEOWNERS" => 0,
        name if name.to_ascii_lowercase().contains("codeowners") => 1,
        _ => 2,
    }
}

/// How early a host looks at a place, the first being 0: GitHub at `.github/`,
/// the root, `docs/`; GitLab at the root, `docs/`, `.gitlab/`. Places of the
/// other host come last.
pub(crate) fn rank(path: &str, host: Option<Dialect>) -> u8 {
    let order = match host {
        Some(Dialect::Gitlab) => [Place::Root, Place::Docs, Place::Gitlab, Place::Github],
        Some(Dialect::Github) | None => [Place::Github, Place::Root, Place::Docs, Place::Gitlab],
    };
    let place = place(path);
    (0..).zip(order).find(|(_, other)| *other == place).map_or(u8::MAX, |(rank, _)| rank)
}

/// Members that the OWNERS files of Kubernetes begin with.
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

/// Is it an OWNERS file of Kubernetes, which is YAML?
pub(crate) fn is_kubernetes_owners(path: &str, content: &[u8]) -> bool {
    let name = path.rsplit(['/', '\\']).next().unwrap_or_default();
    let called_so = name == "OWNERS" || name == "OWNERS_ALIASES";
    let text = std::str::from_utf8(content).unwrap_or_default();
    let mut lines = text.lines().map(str::trim_end);
    let first = lines.find(|line| !line.is_empty() && !line.starts_with('#') && *line != "---");
    called_so || first.is_some_and(|line| KUBERNETES.iter().any(|member| line.starts_with(member)))
}
