//! Compares VEX statements with components after an import: stores which components each statement
//! matches, reports statements without a match, and matches components of other audits with new
//! statements.

use std::collections::{BTreeMap, BTreeSet};

use area_sdk::JobError;
use area_sdk::prelude::*;

use super::{AuditStarted, BranchInventoryHead, ImportCounts, statements};
use crate::budget::StepBudget;
use crate::inventory::alerts::NewVulnerabilityEvents;
use crate::inventory::component::StoredComponent;
use crate::reevaluate;
use crate::text::{self, bounded};
use crate::vex::document::{
    ImportedSbom, MatchedComponent, StatementChunk, StatementMatches, StoredVexSource, branch_key,
    serial_key,
};
use crate::vex::{RelevantStatement, Statement, VersionApplicability, VexStatementIndex};

/// Maximum number of components that one step reads to match them with VEX statements.
const PAGE: u32 = 100;
/// Maximum number of matched components stored with a VEX statement: the first value for few
/// statements, the second for many. Small, because the job's progress contains them.
const LISTED: (usize, usize) = (5, 1);
const FEW_STATEMENTS: usize = 300;
/// Maximum number of unmatched VEX statements that one warning names.
const MOST_TOLD: usize = 20;

/// Progress of matching VEX statements with components after an import.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct VexComponentMatchProgress {
    /// Ids of the remaining [`StoredVexSource`]s; the last one is the current one.
    sources: Vec<String>,
    /// Ids of the audits whose components are still to be matched with the statements of the
    /// current source; `None` before its first step.
    audits: Option<Vec<Uuid>>,
    cursor: Option<String>,
    /// Ids of components of the current audit that were read and not matched yet.
    #[serde(default)]
    components: Vec<String>,
    /// What each VEX statement of the current source matches, by the statement's index in its
    /// document.
    matches: BTreeMap<usize, StatementMatches>,
}

impl VexComponentMatchProgress {
    /// Returns the progress before the first source of VEX statements. The sources are those of the
    /// audit's branch, and those that link to its SBOMs.
    pub(super) fn begin(ctx: &JobCtx, audit: &AuditStarted) -> Result<Self, JobError> {
        let key = branch_key(audit.repository_id, audit.branch_ref.as_deref());
        let own = ctx.documents::<StoredVexSource>().query().equals("branch_key", key);
        let mut sources = BTreeSet::new();
        for source in own.ascending("branch_key").limit(500).all() {
            let source = source?;
            // A VEX document without statements withdraws those of the one before.
            let withdraws = !source.is_sbom && !source.is_applied;
            if source.chunks > 0 || !source.former_links.is_empty() || withdraws {
                sources.insert(source.id);
            }
        }
        let sboms = ctx.documents::<ImportedSbom>().query().equals("audit_id", audit.audit_id);
        for sbom in sboms.ascending("audit_id").limit(500).all() {
            let Ok(serial) = sbom?.serial.parse() else { continue };
            let linking = ctx.documents::<StatementChunk>().query();
            let linking = linking.equals("target_key", serial_key(serial));
            for chunk in linking.ascending("target_key").limit(50).all() {
                sources.insert(chunk?.origin.source_id.clone());
            }
        }
        Ok(Self { sources: sources.into_iter().collect(), ..Self::default() })
    }
}

/// Compares some components with the VEX statements of the current source. Returns the progress;
/// `None` if no source is left.
pub(super) fn some(
    ctx: &JobCtx,
    audit: &AuditStarted,
    tally: &mut ImportCounts,
    mut at: VexComponentMatchProgress,
) -> Result<Option<VexComponentMatchProgress>, JobError> {
    let Some(id) = at.sources.last() else { return Ok(None) };
    let Some(mut source) = ctx.documents::<StoredVexSource>().find(id)? else {
        return Ok(Some(at.next_source()));
    };
    let Some(audits) = &mut at.audits else {
        at.audits = Some(inventories(ctx, &source)?);
        tally.forget_inventory(audit, &source);
        return Ok(Some(at));
    };
    let chunks = statements::chunks_of(ctx, &source)?;
    let Some(audit_id) = audits.last().copied() else {
        finish(ctx, audit, tally, (&mut source, &chunks), &mut at.matches)?;
        return Ok(Some(at.next_source()));
    };
    let mut context = VexStatementIndex::of_chunks(chunks);
    context.load_sboms(ctx, std::iter::once(audit_id))?;
    let components = at.next_components(ctx, audit_id)?;
    at.note_products(&context, audit_id);
    at.note_components(&context, &components);
    let is_known = match audit_id == audit.audit_id {
        true => source.audit_id == audit_id || source.updated_at <= audit.started_at,
        false => source.is_applied,
    };
    let components = match is_known {
        true => components,
        false => at.match_again(ctx, &context, components)?,
    };
    if tally.sboms == 0 && is_of_branch(audit, &source) {
        let own = |component: &&Stored<StoredComponent>| component.is_of_branch(audit);
        components.iter().filter(own).for_each(|component| tally.add_known(component));
    }
    if at.cursor.is_none()
        && at.components.is_empty()
        && let Some(audits) = &mut at.audits
    {
        audits.pop();
    }
    Ok(Some(at))
}

fn is_of_branch(audit: &AuditStarted, source: &StoredVexSource) -> bool {
    source.branch_key == branch_key(audit.repository_id, audit.branch_ref.as_deref())
}

impl StoredComponent {
    fn is_of_branch(&self, audit: &AuditStarted) -> bool {
        (self.repository_id, &self.branch_ref) == (audit.repository_id, &audit.branch_ref)
    }
}

/// Returns the ids of the audits whose components the VEX statements of a source may concern: the
/// heads of its branch, and of branches with SBOMs to which it links.
fn inventories(ctx: &JobCtx, source: &Stored<StoredVexSource>) -> Result<Vec<Uuid>, JobError> {
    let origin = &source.origin;
    let mut branches = BTreeSet::from([(origin.repository_id, origin.branch_ref.clone())]);
    let serials: Vec<&String> = source.links.iter().chain(&source.former_links).collect();
    for serials in serials.chunks(500) {
        let linked = ctx.documents::<ImportedSbom>().query();
        let linked = linked.one_of("serial", serials.iter().copied());
        for sbom in linked.ascending("serial").limit(500).all() {
            let sbom = sbom?.value;
            branches.insert((sbom.repository_id, sbom.branch_ref));
        }
    }
    let heads: Vec<String> = branches
        .iter()
        .map(|(repository, branch)| super::claim::head_id(ctx, *repository, branch.as_deref()))
        .collect();
    let heads = ctx.documents::<BranchInventoryHead>().get_many(heads)?;
    Ok(heads.into_iter().map(|head| head.audit_id).collect())
}

impl VexComponentMatchProgress {
    fn next_source(mut self) -> Self {
        self.sources.pop();
        Self { sources: self.sources, ..Self::default() }
    }

    fn next_components(
        &mut self,
        ctx: &JobCtx,
        audit_id: Uuid,
    ) -> Result<Vec<Stored<StoredComponent>>, JobError> {
        if !self.components.is_empty() {
            let left = std::mem::take(&mut self.components);
            return Ok(ctx.documents::<StoredComponent>().get_many(left)?);
        }
        let latest = ctx.documents::<StoredComponent>().query().equals("latest", true);
        let some = latest.equals("audit_id", audit_id).ascending("name");
        let page = some.cursor(self.cursor.take()).limit(PAGE).page()?;
        self.cursor = page.next_cursor;
        Ok(page.items)
    }

    fn note_products(&mut self, context: &VexStatementIndex, audit_id: Uuid) {
        for sbom in context.sboms_of(audit_id) {
            for found in context.on_product(sbom) {
                let matches = self.matches.entry(found.place).or_default();
                match found.counts() {
                    true => matches.is_product = true,
                    false => matches.note_other_versions(&found.holds),
                }
            }
        }
    }

    fn note_components(
        &mut self,
        context: &VexStatementIndex,
        components: &[Stored<StoredComponent>],
    ) {
        for component in components {
            let found = context.all_applicable(component).into_iter();
            let found = found.filter(|found| !found.is_product);
            let (counting, others): (Vec<_>, Vec<_>) = found.partition(RelevantStatement::counts);
            // A component may have two mentions with different versions; count a statement once.
            let mut seen = BTreeSet::new();
            for found in counting.iter().chain(&others) {
                if seen.insert(found.place) {
                    self.note(found, component);
                }
            }
        }
    }

    fn note(&mut self, found: &RelevantStatement<'_>, component: &Stored<StoredComponent>) {
        let listed = if self.matches.len() > FEW_STATEMENTS { LISTED.1 } else { LISTED.0 };
        let matches = self.matches.entry(found.place).or_default();
        if !found.counts() {
            return matches.note_other_versions(&found.holds);
        }
        matches.component_count += 1;
        if matches.components.len() < listed {
            let version = component.value.version.as_deref().map(|version| format!("@{version}"));
            let name = format!("{}{}", component.name, version.unwrap_or_default());
            matches.components.push(MatchedComponent {
                id: Some(component.uuid()),
                name: bounded(&name, 200),
                purl: component.purl.as_deref().map(|purl| bounded(purl, 300)),
            });
        }
    }

    /// Assesses again, against advisories, those components that the VEX statements may concern, as
    /// far as the budget of a step permits. Returns the components that are finished.
    fn match_again(
        &mut self,
        ctx: &JobCtx,
        context: &VexStatementIndex,
        components: Vec<Stored<StoredComponent>>,
    ) -> Result<Vec<Stored<StoredComponent>>, JobError> {
        let concerned = |component: &Stored<StoredComponent>| {
            let stated = |found: RelevantStatement<'_>| !found.is_product;
            !component.advisories.is_empty()
                || !component.ended.is_empty()
                || context.all_applicable(component).into_iter().any(stated)
        };
        let (concerned, others): (Vec<_>, Vec<_>) = components.into_iter().partition(concerned);
        let mut alerts = NewVulnerabilityEvents::default();
        let mut budget = StepBudget::default();
        budget.spend(2 * PAGE as usize);
        let ids: Vec<String> = concerned.iter().map(|component| component.id.clone()).collect();
        self.components = reevaluate::look_again(ctx, concerned, &mut budget, &mut alerts)?;
        alerts.publish(ctx);
        let done = ids.into_iter().filter(|id| !self.components.contains(id));
        let done = ctx.documents::<StoredComponent>().get_many(done)?;
        Ok(done.into_iter().chain(others).collect())
    }
}

impl StatementMatches {
    /// Removes `reason` if the statement matches a component or product.
    fn settled(mut self) -> Self {
        self.reason = self.reason.filter(|_| self.component_count == 0 && !self.is_product);
        self
    }

    fn note_other_versions(&mut self, holds: &VersionApplicability) {
        self.reason = Some(match holds {
            VersionApplicability::Assumed(why) => format!("it is limited to {why}"),
            VersionApplicability::Yes | VersionApplicability::No => {
                "it is of another version".to_owned()
            }
        });
    }
}

impl ImportCounts {
    /// Resets the counts before the components of the branch's inventory are counted again. Does
    /// nothing if the audit imported an SBOM, or if the source is of another branch.
    fn forget_inventory(&mut self, audit: &AuditStarted, source: &StoredVexSource) {
        if self.sboms == 0 && is_of_branch(audit, source) {
            (self.total, self.direct, self.vulnerable) = (0, 0, 0);
            self.advisories.clear();
            self.aliases.clear();
            (self.advisory_bytes, self.lacks_advisories) = (0, false);
        }
    }
}

/// Stores which components each VEX statement of a source matches, and warns about statements
/// without a match.
fn finish(
    ctx: &JobCtx,
    audit: &AuditStarted,
    tally: &mut ImportCounts,
    (source, chunks): (&mut Stored<StoredVexSource>, &[StatementChunk]),
    matches: &mut BTreeMap<usize, StatementMatches>,
) -> Result<(), JobError> {
    let all = chunks.iter().flat_map(|chunk| &chunk.statements);
    let listed: Vec<(usize, &Statement, StatementMatches)> = all
        .map(|(at, statement)| (*at, statement, matches.remove(at).unwrap_or_default().settled()))
        .collect();
    if is_of_branch(audit, source) {
        report_unmatched(tally, source, &listed);
    }
    statements::list(ctx, &source.origin, listed)?;
    if !source.is_applied || !source.former_links.is_empty() {
        source.is_applied = true;
        source.former_links = Vec::new();
        ctx.documents().replace(source)?;
    }
    Ok(())
}

fn report_unmatched(
    tally: &mut ImportCounts,
    source: &StoredVexSource,
    listed: &[(usize, &Statement, StatementMatches)],
) {
    let unmatched = listed.iter().filter(|(_, _, matches)| matches.is_empty());
    let places: Vec<String> = unmatched
        .map(|(_, statement, matches)| {
            let reason = matches.reason.as_ref().map(|reason| format!(" ({reason})"));
            let reason = reason.unwrap_or_default();
            format!("{} of {}{reason}", statement.advisory_id, statement.reference)
        })
        .collect();
    tally.unmatched_statements += places.len();
    if places.is_empty() {
        return;
    }
    let told = text::listed(places.iter(), MOST_TOLD);
    tally.warn(format!(
        "{}: {} of {} statements match no component: {told}.",
        source.origin.filename,
        places.len(),
        listed.len(),
    ));
}
