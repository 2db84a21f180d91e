//! Publishes the result of an import, for which the audit waits.

use std::collections::{BTreeMap, BTreeSet};

use area_sdk::DocumentError;
use area_sdk::prelude::*;

use super::{AuditInputFile, AuditStarted, ImportCounts, InputFileError};
use crate::advisories::document::StoredAdvisory;

/// Published when the import of an audit's dependencies has ended, even if there are none.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "DependenciesImported")]
pub(crate) struct DependenciesImportedEvent {
    audit_id: Uuid,
    status: DependencyImportStatus,
    counts: BTreeMap<&'static str, usize>,
    facts: DependencyFacts,
    warnings: Vec<String>,
    errors: Vec<InputFileError>,
}

event!(DependenciesImportedEvent, "audit.dependencies_imported");

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Status")]
enum DependencyImportStatus {
    Succeeded,
    /// The audit had files in the formats of this area, and none of them could be imported.
    Failed,
}

/// The audit's facts about its dependencies, for predicates of remediation programs. The audit
/// ignores them unless they are those of a whole inventory; see [`ImportCounts::is_whole`].
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Facts")]
struct DependencyFacts {
    total: usize,
    direct: usize,
    /// Number of components that at least one advisory affects; `None` if nothing was compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    vulnerable: Option<usize>,
    /// Ids of the advisories that affect the components, their aliases, and the ids in their
    /// `upstream` and `related`, without duplicates. `None` if nothing was compared, or if there
    /// are too many: for predicates, a part of them would mean that the others affect nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    advisories: Option<BTreeSet<String>>,
}

/// Warning of an audit whose facts have no advisories, because there are too many.
const TOO_MANY: &str = "Too many advisories affect the components for `dependencies.advisories`, \
                        so predicates with it fail. Use `dependencies.vulnerable` in them. \
                        `counts.advisories` may count only some of the advisories.";

/// Warning of an audit whose components were compared with no advisory.
const NOT_COMPARED: &str = "The audit has no facts `dependencies.vulnerable` and \
                            `dependencies.advisories`, because the workspace has no advisories, \
                            so nothing was compared. Predicates with them fail. Import advisories \
                            in the OSV format.";

/// Warning of an audit without facts about dependencies.
const NO_FACTS: &str = "The audit has no facts about dependencies, because it imported no SBOM or \
                        could not import all of them. Predicates with `dependencies` fail.";

impl ImportCounts {
    /// Whether the counts are those of a whole inventory: of all SBOMs of the audit, or, in an
    /// audit with only VEX documents, of the branch's inventory, which was counted again.
    fn is_whole(&self) -> bool {
        (self.sboms > 0 || self.total > 0) && self.refused == 0
    }

    fn take_facts(&mut self, is_compared: bool) -> DependencyFacts {
        let mut advisories = std::mem::take(&mut self.advisories);
        advisories.append(&mut self.aliases);
        DependencyFacts {
            total: self.total,
            direct: self.direct,
            vulnerable: is_compared.then_some(self.vulnerable),
            advisories: (is_compared && !self.lacks_advisories).then_some(advisories),
        }
    }
}

pub(super) fn tell(
    ctx: &JobCtx,
    audit: AuditStarted,
    mut tally: ImportCounts,
) -> Result<(), DocumentError> {
    let has_no_sbom = !audit.inputs.iter().any(AuditInputFile::is_sbom);
    if has_no_sbom {
        tally.warn("The inputs contain no SBOM (CycloneDX or SPDX).".to_owned());
    }
    for (more, what) in [(tally.more_warnings, "warnings"), (tally.more_errors, "errors")] {
        if more > 0 {
            tally.warnings.push(format!("{more} more {what} are not reported."));
        }
    }
    if tally.lacks_advisories {
        tally.warnings.push(TOO_MANY.to_owned());
    }
    // Imported advisories do not compensate for SBOMs that cannot be read.
    let nothing = tally.sboms == 0
        && tally.vex_documents == 0
        && !(has_no_sbom && tally.imported_advisories > 0);
    let failed = nothing && tally.readable > 0 && !tally.errors.is_empty();
    let counts = BTreeMap::from([
        ("sboms", tally.sboms),
        ("refused", tally.refused),
        ("components", tally.total),
        ("direct", tally.direct),
        ("vulnerable", tally.vulnerable),
        ("advisories", tally.advisories.len()),
        ("imported_advisories", tally.imported_advisories),
        ("vex_documents", tally.vex_documents),
        ("statements", tally.statements),
        ("unmatched_statements", tally.unmatched_statements),
    ]);
    let is_compared = tally.is_reported || tally.vulnerable > 0 || !StoredAdvisory::none(ctx)?;
    if !failed && !tally.is_whole() {
        tally.warnings.push(NO_FACTS.to_owned());
    } else if !failed && !is_compared {
        tally.warnings.push(NOT_COMPARED.to_owned());
    }
    ctx.publish(DependenciesImportedEvent {
        audit_id: audit.audit_id,
        status: if failed {
            DependencyImportStatus::Failed
        } else {
            DependencyImportStatus::Succeeded
        },
        counts,
        facts: tally.take_facts(is_compared),
        warnings: tally.warnings,
        errors: tally.errors,
    });
    Ok(())
}
