//! The end of an import: what the audit is told of it.

use std::collections::{BTreeMap, BTreeSet};

use area_sdk::prelude::*;

use super::{Audit, InputError, Tally};

/// Told when an audit's dependencies are imported, also where there were none.
#[derive(Serialize, JsonSchema)]
pub(crate) struct DependenciesImported {
    audit_id: Uuid,
    status: Status,
    counts: BTreeMap<&'static str, usize>,
    facts: Facts,
    warnings: Vec<String>,
    errors: Vec<InputError>,
}

impl Event for DependenciesImported {
    const NAME: &'static str = "audit.dependencies_imported";
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Status {
    Succeeded,
    /// There were artifacts, and none could be read.
    Failed,
}

/// What an audit's predicates may ask for.
#[derive(Serialize, JsonSchema)]
struct Facts {
    total: usize,
    direct: usize,
    /// Components with an advisory.
    vulnerable: usize,
    /// Their advisories, each once.
    advisories: BTreeSet<String>,
}

pub(super) fn tell(ctx: &JobCtx, audit: Audit, mut tally: Tally) {
    if audit.inputs.iter().all(|input| input.format == "osv") {
        tally
            .warn("There is no bill of materials (CycloneDX or SPDX) among the inputs.".to_owned());
    }
    // Advisories do not make up for SBOMs that could not be read.
    let advisories_alone = audit.inputs.iter().all(|input| input.format == "osv");
    let nothing = tally.sboms == 0
        && tally.vex_documents == 0
        && !(advisories_alone && tally.imported_advisories > 0);
    let failed = nothing && tally.readable > 0 && !tally.errors.is_empty();
    let counts = BTreeMap::from([
        ("sboms", tally.sboms),
        ("components", tally.total),
        ("direct", tally.direct),
        ("vulnerable", tally.vulnerable),
        ("advisories", tally.advisories.len()),
        ("imported_advisories", tally.imported_advisories),
        ("vex_documents", tally.vex_documents),
        ("statements", tally.statements),
        ("unmatched_statements", tally.unmatched_statements),
    ]);
    ctx.publish(DependenciesImported {
        audit_id: audit.audit_id,
        status: if failed { Status::Failed } else { Status::Succeeded },
        counts,
        facts: Facts {
            total: tally.total,
            direct: tally.direct,
            vulnerable: tally.vulnerable,
            advisories: tally.advisories,
        },
        warnings: tally.warnings,
        errors: tally.errors,
    });
}
