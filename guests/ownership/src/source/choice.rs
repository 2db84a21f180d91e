//! Selects the CODEOWNERS file and the path list of an audit.

use std::collections::BTreeSet;

use area_sdk::prelude::*;

use super::AuditInput;
use crate::codeowners::{Dialect, name_rank, rank, said_by_place};

/// Maximum time between CODEOWNERS files that count as uploaded together if a commit is unknown, in
/// seconds.
const TOGETHER_SECONDS: i64 = 3_600;

/// Warnings about a CODEOWNERS file that is not read, after the name of the file that is.
const MISNAMED: &str = "has the better name. Give the file that counts the name CODEOWNERS.";
const OLDER: &str = "is newer. If the repository has both, upload both with the same \
                     `commit_sha`, or within an hour.";
const IN_LATER_PLACE: &str = "comes first. If the repository no longer has that file, upload the \
                              other again with its `commit_sha`, or an hour later.";

/// A file that an audit imports, with its detected format.
#[derive(Clone, Deserialize)]
pub(crate) struct AuditInputFile {
    format: String,
    ready_at: Timestamp,
    commit_sha: Option<String>,
    #[serde(flatten)]
    input: AuditInput,
}

impl AuditInputFile {
    fn name_rank(&self) -> u8 {
        name_rank(&self.input.filename)
    }

    /// Whether the file is of another state of the repository than a newer one: of another commit,
    /// or more than an hour older if a commit is unknown.
    fn is_before(&self, newer: &Self) -> bool {
        match (&self.commit_sha, &newer.commit_sha) {
            (Some(ours), Some(theirs)) => ours != theirs,
            _ => newer.ready_at.seconds_since(self.ready_at) > TOGETHER_SECONDS,
        }
    }
}

/// The CODEOWNERS file and the list of paths selected for an audit.
pub(super) struct SelectedFiles {
    pub(super) code_owners: Option<AuditInput>,
    pub(super) path_list: Option<AuditInput>,
    pub(super) dialect: Option<Dialect>,
    /// Warnings about CODEOWNERS files and path lists that were not selected.
    pub(super) warnings: Vec<String>,
}

/// Selects the CODEOWNERS file and the list of paths. `inputs` are sorted newest first; `host` is
/// the dialect of the repository's hosting service.
pub(super) fn choose(inputs: Vec<AuditInputFile>, host: Option<Dialect>) -> SelectedFiles {
    let (mut files, others): (Vec<_>, Vec<_>) =
        inputs.into_iter().partition(|input| input.format == "code_owners");
    let mut lists = others.into_iter().filter(|input| input.format == "path_list");
    let path_list = lists.next().map(|list| list.input);
    let other_lists: BTreeSet<String> = lists.map(|list| list.input.filename).collect();
    let mut seen = BTreeSet::new();
    files.retain(|file| seen.insert(file.input.filename.clone()));
    let newest = files.iter().min_by_key(|file| file.name_rank()).cloned();
    let is_old =
        |file: &AuditInputFile| newest.as_ref().is_some_and(|newest| file.is_before(newest));
    files.sort_by_key(|file| (file.name_rank(), is_old(file), rank(&file.input.filename, host)));
    let mut files = files.into_iter();
    let chosen = files.next();
    let path = chosen.as_ref().map(|file| file.input.filename.clone()).unwrap_or_default();
    let best_name = chosen.as_ref().map_or(0, AuditInputFile::name_rank);
    let unread = files.map(|other| {
        let why = match (other.name_rank() > best_name, is_old(&other)) {
            (true, _) => MISNAMED,
            (false, true) => OLDER,
            (false, false) => IN_LATER_PLACE,
        };
        format!("{} is not read: {path} {why}", other.input.filename)
    });
    let newest = path_list.as_ref().map(|list| list.filename.clone()).unwrap_or_default();
    let other_lists = other_lists.into_iter().filter(|name| *name != newest);
    let unread_lists = other_lists.map(|name| {
        format!("The path list {name} is not read: {newest} is newer, and one list has all paths.")
    });
    SelectedFiles {
        dialect: said_by_place(&path).or(host),
        warnings: unread.chain(unread_lists).collect(),
        code_owners: chosen.map(|chosen| chosen.input),
        path_list,
    }
}
