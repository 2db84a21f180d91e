//! Decides which rows are listed. An index finds components and matches that are marked as latest.
//! While an import runs, and until the former inventory is unmarked, the rows of two audits are
//! marked. The branch's head decides which of them are listed.

use std::collections::{BTreeMap, BTreeSet};

use area_sdk::prelude::*;
use area_sdk::{DocumentError, Scope};

use super::component::StoredComponent;
use super::matches::StoredMatch;
use crate::ingest::{BranchInventoryHead, StoredImport, head_id};

/// A row of the dependency list: a component, or a match of a component with an advisory name.
pub(crate) trait InventoryRow: Document {
    /// Returns the repository and branch to which the component or match belongs.
    fn branch(&self) -> RepositoryBranch;
    /// Returns the id of the audit whose import stored the component or match.
    fn audit_id(&self) -> Uuid;
    /// Returns the approximate size of the component or match in memory, in bytes.
    fn bytes(&self) -> usize;
}

/// A branch of a repository: id of the repository, and name of the branch.
pub(crate) type RepositoryBranch = (Uuid, Option<String>);

impl InventoryRow for StoredComponent {
    fn branch(&self) -> RepositoryBranch {
        (self.repository_id, self.branch_ref.clone())
    }

    fn audit_id(&self) -> Uuid {
        self.audit_id
    }

    fn bytes(&self) -> usize {
        Self::bytes(self)
    }
}

impl InventoryRow for StoredMatch {
    fn branch(&self) -> RepositoryBranch {
        (self.repository_id, self.branch_ref.clone())
    }

    fn audit_id(&self) -> Uuid {
        self.audit_id
    }

    fn bytes(&self) -> usize {
        1_500
    }
}

/// Decides which rows of the dependency list are shown. Caches the branch heads and imports that
/// the request has read.
pub(crate) struct RowFilter<'a> {
    scope: &'a Scope,
    /// Id of the audit that is the head, by branch; `None` for a branch without a head.
    heads: BTreeMap<RepositoryBranch, Option<Uuid>>,
    /// Whether the rows of an audit are hidden, by audit; `None` if the request does not ask for
    /// history.
    hidden: Option<BTreeMap<Uuid, bool>>,
}

impl<'a> RowFilter<'a> {
    pub(crate) fn new(scope: &'a Scope, history: bool) -> Self {
        Self { scope, heads: BTreeMap::new(), hidden: history.then(BTreeMap::new) }
    }

    /// Returns for each row whether the list shows it: rows of the current inventories; with
    /// history, also rows of former inventories.
    pub(crate) fn answers<T: InventoryRow>(
        &mut self,
        rows: &[Stored<T>],
    ) -> Result<Vec<bool>, DocumentError> {
        if self.hidden.is_some() {
            self.read_imports(rows)?;
        } else {
            self.read_heads(rows)?;
        }
        let answers = rows.iter().map(|row| match &self.hidden {
            Some(hidden) => hidden.get(&row.audit_id()) != Some(&true),
            None => self.heads.get(&row.branch()).copied().flatten() == Some(row.audit_id()),
        });
        Ok(answers.collect())
    }

    fn read_imports<T: InventoryRow>(&mut self, rows: &[Stored<T>]) -> Result<(), DocumentError> {
        let hidden = self.hidden.get_or_insert_default();
        let audits: BTreeSet<Uuid> = rows.iter().map(|row| row.audit_id()).collect();
        let unread: Vec<Uuid> = audits.into_iter().filter(|id| !hidden.contains_key(id)).collect();
        if unread.is_empty() {
            return Ok(());
        }
        let found = self.scope.documents::<StoredImport>().get_many(&unread)?;
        hidden.extend(unread.into_iter().map(|audit_id| (audit_id, false)));
        hidden.extend(found.iter().map(|import| (import.uuid(), import.is_hidden())));
        Ok(())
    }

    fn read_heads<T: InventoryRow>(&mut self, rows: &[Stored<T>]) -> Result<(), DocumentError> {
        let branches: BTreeSet<RepositoryBranch> = rows.iter().map(|row| row.branch()).collect();
        let unread = branches.into_iter().filter(|branch| !self.heads.contains_key(branch));
        let mut unread: BTreeMap<String, RepositoryBranch> = unread
            .map(|branch| (head_id(self.scope, branch.0, branch.1.as_deref()), branch))
            .collect();
        if unread.is_empty() {
            return Ok(());
        }
        let found = self.scope.documents::<BranchInventoryHead>().get_many(unread.keys())?;
        for head in found {
            if let Some(branch) = unread.remove(&head.id) {
                self.heads.insert(branch, Some(head.audit_id));
            }
        }
        self.heads.extend(unread.into_values().map(|branch| (branch, None)));
        Ok(())
    }
}
