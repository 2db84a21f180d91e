//! Which of an audit's files is read.

use std::collections::BTreeSet;

use area_sdk::prelude::*;

use super::Input;
use crate::codeowners::{Dialect, name_rank, rank, said_by_place};

/// A file that came with an audit, and what it is taken for.
#[derive(Deserialize)]
pub(crate) struct AuditInput {
    format: String,
    #[serde(flatten)]
    input: Input,
}

/// What was chosen.
pub(super) struct Choice {
    pub(super) code_owners: Option<Input>,
    pub(super) path_list: Option<Input>,
    pub(super) dialect: Option<Dialect>,
    /// Of files that are not read.
    pub(super) warnings: Vec<String>,
}

/// Chooses among inputs, which come newest first, for a repository on a host of
/// this dialect.
pub(super) fn choose(inputs: Vec<AuditInput>, host: Option<Dialect>) -> Choice {
    let (files, others): (Vec<_>, Vec<_>) =
        inputs.into_iter().partition(|input| input.format == "code_owners");
    let path_list = others.into_iter().find(|input| input.format == "path_list");
    let mut seen = BTreeSet::new();
    let mut files: Vec<Input> = files.into_iter().map(|file| file.input).collect();
    files.retain(|file| seen.insert(file.filename.clone()));
    files.sort_by_key(|file| (name_rank(&file.filename), rank(&file.filename, host)));
    let mut files = files.into_iter();
    let chosen = files.next();
    let path = chosen.as_ref().map(|file| file.filename.clone()).unwrap_or_default();
    Choice {
        dialect: said_by_place(&path).or(host),
        warnings: files
            .map(|other| format!("{} is not read: {path} comes first.", other.filename))
            .collect(),
        code_owners: chosen,
        path_list: path_list.map(|list| list.input),
    }
}
