//! Creates dependencies from evidence records of kind `relationship` between two groups, or adds
//! the records to existing ones.

use std::collections::{BTreeMap, BTreeSet};

use area_sdk::prelude::*;
use area_sdk::{DocumentError, JobError};
use area_shared::catalog::{UserGroup, referred, resolve};
use area_shared::evidence::{self, EvidenceConsumer, EvidenceRecord};

use crate::dependencies::{self, StoredGroupDependency};

/// Maximum size of the name of a relationship's target, in bytes. No group has a longer name.
const MAX_TARGET_BYTES: usize = 1_000;

/// Maximum number of evidence records searched when a user declares a dependency.
const LOOKED_THROUGH: u32 = 200;

/// Imports evidence records of kind `relationship` as dependencies between groups.
pub(crate) struct RelationshipEvidenceConsumer;

impl EvidenceConsumer for RelationshipEvidenceConsumer {
    const JOB: &'static str = "import_relationships";
    const RECORD_KINDS: &'static [&'static str] = &["relationship"];
    /// Maximum number of records of one step. Each may need the 100 records that its dependency
    /// lists, and a content of 1 MiB.
    const STEP: u32 = 20;

    fn import(ctx: &JobCtx, records: Vec<Stored<EvidenceRecord>>) -> Result<(), JobError> {
        let statements = read_all(ctx, records)?;
        let named = statements.iter().flat_map(|said| [said.source.as_str(), said.target.as_str()]);
        let groups = referred::<UserGroup>(ctx, &named.collect(), |group| &group.name)?;
        for statement in statements {
            keep(ctx, &groups, statement)?;
        }
        Ok(())
    }
}

/// Content of an evidence record of kind `relationship`.
#[derive(Clone, Deserialize)]
struct RelationshipDescription {
    #[serde(alias = "target_group", alias = "target_group_id")]
    target: String,
    relationship_kind: String,
}

/// A relationship that a record states, between two names that may be groups.
struct StatedRelationship {
    evidence_id: Uuid,
    observed_at: Timestamp,
    source: String,
    target: String,
    kind: String,
}

fn without_prefix(reference: &str) -> &str {
    reference.strip_prefix("group:").unwrap_or(reference)
}

/// Returns the relationships that evidence records with a valid description state.
fn read_all(
    scope: &Scope,
    records: Vec<Stored<EvidenceRecord>>,
) -> Result<Vec<StatedRelationship>, JobError> {
    let described = evidence::described(scope, records, description)?;
    let statements =
        described.into_iter().filter_map(|(record, said)| Some(stated(&record, said?)));
    Ok(statements.collect())
}

/// Parses the description of a relationship; `None` if the text is not a valid one.
fn description(text: &str) -> Option<RelationshipDescription> {
    let said: RelationshipDescription = serde_json::from_str(text).ok()?;
    let letters = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    let is_word = (1..=100).contains(&said.relationship_kind.len())
        && said.relationship_kind.starts_with(|first: char| first.is_ascii_lowercase())
        && said.relationship_kind.bytes().all(letters);
    (is_word && said.target.len() <= MAX_TARGET_BYTES).then_some(said)
}

fn stated(record: &Stored<EvidenceRecord>, said: RelationshipDescription) -> StatedRelationship {
    StatedRelationship {
        evidence_id: record.uuid(),
        observed_at: record.observed_at,
        source: without_prefix(&record.subject_key).to_owned(),
        target: without_prefix(&said.target).to_owned(),
        kind: said.relationship_kind,
    }
}

/// Returns the evidence records that state this dependency, newest first.
pub(crate) fn about(
    ctx: &Ctx,
    source: &Stored<UserGroup>,
    target: &Stored<UserGroup>,
    kind: &str,
) -> Result<Vec<Uuid>> {
    let names = [source.id.clone(), source.id.to_uppercase(), source.name.clone()];
    let keys = names.into_iter().flat_map(|name| [format!("group:{name}"), name]);
    let records = ctx.documents::<EvidenceRecord>().query().one_of("subject_key", keys);
    let records = records.equals("kind", "relationship").descending("observed_at");
    let statements = read_all(ctx, records.limit(LOOKED_THROUGH).list()?)
        .map_err(|_| Problem::unavailable("The evidence cannot be read now."))?;
    let fits = |said: &&StatedRelationship| {
        said.kind == kind
            && (said.target == target.name || said.target.parse() == Ok(target.uuid()))
    };
    Ok(statements.iter().filter(fits).map(|said| said.evidence_id).collect())
}

/// Creates or updates the dependency that a relationship states, if both names are groups of the
/// workspace.
fn keep(
    ctx: &JobCtx,
    groups: &BTreeMap<String, Stored<UserGroup>>,
    statement: StatedRelationship,
) -> Result<(), JobError> {
    let ends = (resolve(groups, &statement.source), resolve(groups, &statement.target));
    let (Some(source), Some(target)) = ends else { return Ok(()) };
    if source.id == target.id {
        return Ok(());
    }
    let same =
        ctx.documents::<StoredGroupDependency>().query().equals("source_group_id", &source.id);
    let same = same.equals("target_group_id", &target.id);
    match same.equals("relationship_kind", &statement.kind).first()? {
        Some(dependency) => add(ctx, dependency, &statement)?,
        None => {
            let evidence = vec![statement.evidence_id];
            let dependency =
                StoredGroupDependency::between(source, target, statement.kind, evidence);
            dependencies::keep(ctx, &dependency)?;
        }
    }
    Ok(())
}

/// Adds the record of a relationship to its dependency, unless it is listed.
fn add(
    ctx: &JobCtx,
    mut dependency: Stored<StoredGroupDependency>,
    statement: &StatedRelationship,
) -> Result<(), DocumentError> {
    if dependency.evidence_ids.contains(&statement.evidence_id) {
        return Ok(());
    }
    let newer = newer(ctx, &dependency.evidence_ids, statement.observed_at)?;
    if dependency.add_evidence(statement.evidence_id, newer) {
        ctx.documents().replace(&mut dependency)?;
    }
    Ok(())
}

/// Returns how many of the listed records, newest first, were observed after this time.
fn newer(ctx: &JobCtx, listed: &[Uuid], time: Timestamp) -> Result<usize, DocumentError> {
    let records = ctx.documents::<EvidenceRecord>();
    // Most records are newer than all that are listed, so only one is read.
    let Some(newest) = listed.first() else { return Ok(0) };
    if records.find(newest)?.is_none_or(|newest| newest.observed_at <= time) {
        return Ok(0);
    }
    let newer = records.get_many(listed)?.into_iter().filter(|record| record.observed_at > time);
    let newer: BTreeSet<Uuid> = newer.map(|record| record.uuid()).collect();
    Ok(listed.iter().rposition(|id| newer.contains(id)).map_or(0, |last| last + 1))
}
