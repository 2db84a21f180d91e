//! Selects the CODEOWNERS file and the path list of an audit.

use std::collections::BTreeSet;

use area_sdk::prelude::*;

use super::AuditInput;
use crate::codeowners::{Dialect, name_rank, rank, said_by_place};

/// A file that an audit imports, with its detected format.
#[derive(Deserialize)]
pub(crate) struct AuditInputFile {
    format: String,
    #[serde(flatten)]
    input: AuditInput,
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
    let (files, others): (Vec<_>, Vec<_>) =
        inputs.into_iter().partition(|input| input.format == "code_owners");
    let mut lists = others.into_iter().filter(|input| input.format == "path_list");
    let path_list = lists.next().map(|list| list.input);
    let other_lists: BTreeSet<String> = lists.map(|list| list.input.filename).collect();
    let mut seen = BTreeSet::new();
    let mut files: Vec<AuditInput> = files.into_iter().map(|file| file.input).collect();
    files.retain(|file| seen.insert(file.filename.clone()));
    files.sort_by_key(|file| (name_rank(&file.filename), rank(&file.filename, host)));
    let mut files = files.into_iter();
    let chosen = files.next();
    let path = chosen.as_ref().map(|file| file.filename.clone()).unwrap_or_default();
    let unread = files.map(|other| format!("{} is not read: {path} comes first.", other.filename));
    let newest = path_list.as_ref().map(|list| list.filename.clone()).unwrap_or_default();
    let other_lists = other_lists.into_iter().filter(|name| *name != newest);
    let unread_lists = other_lists.map(|name| {
        format!("The path list {name} is not read: {newest} is newer, and one list has all paths.")
    });
    SelectedFiles {
        dialect: said_by_place(&path).or(host),
        warnings: unread.chain(unread_lists).collect(),
        code_owners: chosen,
        path_list,
    }
}
