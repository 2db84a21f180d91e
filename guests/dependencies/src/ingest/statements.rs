//! Stores the VEX statements of an audit's documents, before components are matched with them.

use std::collections::{BTreeMap, BTreeSet};

use area_sdk::prelude::*;
use area_sdk::{DocumentError, JobError, Scope};

use super::{AuditInputFile, AuditStarted, ImportCounts};
use crate::artifacts::{self, FileImportError};
use crate::documents::put;
use crate::sbom::{self, Sbom};
use crate::vex::document::{
    ListedStatement, MatchedComponent, StatementChunk, StatementMatches, StatementOrigin,
    StoredVexSource, branch_key, serial_key,
};
use crate::vex::{Statement, Target};

/// Maximum number of VEX statements that are applied from one document.
const MOST_STATEMENTS: usize = 2_000;
/// Maximum number of VEX statements in a [`StatementChunk`].
const CHUNK: usize = 100;

/// Stores the VEX statements of one file of the audit, unless those stored for its subject are
/// newer or equal.
pub(super) fn store(
    ctx: &JobCtx,
    audit: &AuditStarted,
    tally: &mut ImportCounts,
    input: &AuditInputFile,
) -> Result<(), JobError> {
    let content = artifacts::sbom_content(ctx, &input.blob)?;
    let mut sbom = match artifacts::sbom(&content) {
        Ok(sbom) => sbom,
        Err(error) => {
            tally.fail(input, error);
            return Ok(());
        }
    };
    let mut statements = std::mem::take(&mut sbom.statements);
    if statements.len() > MOST_STATEMENTS {
        let detail = format!(
            "The document makes {} statements; the first {MOST_STATEMENTS} are applied. Split it \
             by subject.",
            statements.len()
        );
        tally.fail(input, FileImportError::new("too_many_statements", detail));
        statements.truncate(MOST_STATEMENTS);
    }
    tally.statements += statements.len();
    tally.vex_documents += usize::from(sbom.is_vex);
    // The import of an SBOM's components adds its warnings.
    for warning in sbom.warnings.iter().filter(|_| sbom.is_vex) {
        tally.warn(format!("{}: {warning}", input.filename));
    }
    let origin = origin(ctx, audit, input, &sbom);
    let before = ctx.documents::<StoredVexSource>().find(&origin.source_id)?;
    if let Some(before) = &before {
        let is_newer = before.origin.stated_at > origin.stated_at;
        if is_newer || before.origin == origin {
            return Ok(());
        }
    }
    let is_sbom = !sbom.is_empty();
    replace(ctx, audit.audit_id, &origin, is_sbom, statements, before)
}

fn origin(
    ctx: &JobCtx,
    audit: &AuditStarted,
    input: &AuditInputFile,
    sbom: &Sbom<'_>,
) -> StatementOrigin {
    let stream = sbom::stream(sbom.subject.as_ref(), &input.filename);
    let branch = audit.branch_ref.as_deref().unwrap_or_default();
    let kind = if sbom.is_empty() { "vex" } else { "sbom" };
    let source = format!("{}\n{branch}\n{kind}\n{stream}", audit.repository_id);
    StatementOrigin {
        source_id: ctx.sha256_hex(source.as_bytes()),
        repository_id: audit.repository_id,
        branch_ref: audit.branch_ref.clone(),
        upload_id: input.upload_id,
        filename: input.filename.clone(),
        artifact_sha256: input.content_sha256.clone(),
        serial: sbom.serial.map(|(serial, _)| serial),
        subject: sbom.subject.clone(),
        stream,
        tool: sbom.tool.clone(),
        stated_at: input.ready_at,
    }
}

/// Replaces the stored VEX statements of a document's former version (`before`) by new ones.
fn replace(
    ctx: &JobCtx,
    audit_id: Uuid,
    origin: &StatementOrigin,
    is_sbom: bool,
    statements: Vec<Statement>,
    before: Option<Stored<StoredVexSource>>,
) -> Result<(), JobError> {
    let listed = statements.iter().enumerate().filter(|(_, one)| !one.resolved.is_empty());
    let listed = listed.map(|(at, one)| (at, one, own_matches(one)));
    list(ctx, origin, listed.collect())?;
    let chunks = chunks(origin, statements);
    store_chunks(ctx, &origin.source_id, before.as_deref(), &chunks)?;
    let links = chunks.iter().flat_map(|chunk| &chunk.statements);
    let links = links.filter_map(|(_, statement)| match statement.target {
        Target::Link { serial, .. } => Some(serial.to_string()),
        Target::Product | Target::Component(_) => None,
    });
    let former = before.iter().flat_map(|before| before.links.iter().chain(&before.former_links));
    let source = StoredVexSource {
        branch_key: branch_key(origin.repository_id, origin.branch_ref.as_deref()),
        audit_id,
        is_sbom,
        chunks: chunks.len(),
        links: links.collect::<BTreeSet<_>>().into_iter().collect(),
        former_links: former.cloned().collect::<BTreeSet<_>>().into_iter().collect(),
        is_applied: false,
        origin: origin.clone(),
    };
    Ok(put(ctx, &origin.source_id, before, source)?)
}

fn own_matches(statement: &Statement) -> StatementMatches {
    let component = |name: &String| MatchedComponent { id: None, name: name.clone(), purl: None };
    StatementMatches {
        component_count: statement.resolved.len(),
        components: statement.resolved.iter().map(component).collect(),
        ..StatementMatches::default()
    }
}

/// Returns the VEX statements to apply to inventories, in chunks by target. Statements about
/// components of their own document are omitted, because the import of that document applies them.
fn chunks(origin: &StatementOrigin, statements: Vec<Statement>) -> Vec<StatementChunk> {
    let mut by_target: BTreeMap<String, Vec<(usize, Statement)>> = BTreeMap::new();
    for (at, statement) in statements.into_iter().enumerate() {
        if !statement.resolved.is_empty() {
            continue;
        }
        let key = match statement.target {
            Target::Link { serial, .. } => serial_key(serial),
            Target::Product | Target::Component(_) => {
                branch_key(origin.repository_id, origin.branch_ref.as_deref())
            }
        };
        by_target.entry(key).or_default().push((at, statement));
    }
    let mut chunks = Vec::new();
    for (target_key, statements) in by_target {
        for statements in statements.chunks(CHUNK) {
            chunks.push(StatementChunk {
                target_key: target_key.clone(),
                origin: origin.clone(),
                statements: statements.to_vec(),
            });
        }
    }
    chunks
}

fn chunk_id(source_id: &str, at: usize) -> String {
    format!("{source_id}/{at:05}")
}

/// Returns the stored chunks of a source's VEX statements.
pub(super) fn chunks_of(
    ctx: &JobCtx,
    source: &Stored<StoredVexSource>,
) -> Result<Vec<StatementChunk>, JobError> {
    let chunks = stored_chunks(ctx, &source.id, source.chunks)?;
    Ok(chunks.into_iter().map(|chunk| chunk.value).collect())
}

fn stored_chunks(
    ctx: &JobCtx,
    source_id: &str,
    count: usize,
) -> Result<Vec<Stored<StatementChunk>>, DocumentError> {
    ctx.documents().get_many((0..count).map(|at| chunk_id(source_id, at)))
}

/// Replaces the stored chunks of a source's VEX statements by these.
fn store_chunks(
    ctx: &JobCtx,
    source_id: &str,
    before: Option<&StoredVexSource>,
    chunks: &[StatementChunk],
) -> Result<(), JobError> {
    let documents = ctx.documents::<StatementChunk>();
    let count = before.map_or(0, |before| before.chunks);
    let mut known = stored_chunks(ctx, source_id, count)?;
    let beyond = known.split_off(known.len().min(chunks.len()));
    for (known, chunk) in known.iter_mut().zip(chunks) {
        known.value = chunk.clone();
    }
    documents.replace_all(&known)?;
    documents.delete_all(&beyond)?;
    let new = chunks.iter().enumerate().skip(known.len());
    Ok(documents.create_all(new.map(|(at, chunk)| (chunk_id(source_id, at), chunk)))?)
}

/// Deletes a source of VEX statements, with its chunks and its statements in the list.
pub(super) fn remove(ctx: &JobCtx, source: &Stored<StoredVexSource>) -> Result<(), JobError> {
    ctx.documents().delete_all(&stored_chunks(ctx, &source.id, source.chunks)?)?;
    let documents = ctx.documents::<ListedStatement>();
    let listed = documents.query().equals("source_id", &source.id).descending("source_id");
    let listed: Result<Vec<_>, _> = listed.limit(1_000).all().collect();
    documents.delete_all(&listed?)?;
    Ok(ctx.documents().delete(source)?)
}

/// Replaces the statements of a source in the list of VEX statements by these. Statements of the
/// same document that are not passed stay.
pub(super) fn list(
    ctx: &JobCtx,
    origin: &StatementOrigin,
    statements: Vec<(usize, &Statement, StatementMatches)>,
) -> Result<(), JobError> {
    let documents = ctx.documents::<ListedStatement>();
    let mut before: BTreeMap<String, Stored<ListedStatement>> = BTreeMap::new();
    let of_source = documents.query().equals("source_id", &origin.source_id);
    for listed in of_source.descending("source_id").limit(1_000).all() {
        let listed = listed?;
        before.insert(listed.id.clone(), listed);
    }
    let (mut new, mut changed) = (Vec::new(), Vec::new());
    for (at, statement, matches) in statements {
        let id = listed_id(ctx, origin, at);
        let listed = ListedStatement::new(origin, statement, matches);
        match before.remove(&id) {
            Some(known) if known.value == listed => {}
            Some(known) => changed.push(Stored { value: listed, ..known }),
            None => new.push((id, listed)),
        }
    }
    let gone = before.into_values().filter(|left| left.artifact_sha256 != origin.artifact_sha256);
    documents.delete_all(&gone.collect::<Vec<_>>())?;
    documents.replace_all(&changed)?;
    Ok(documents.create_all(new.iter().map(|(id, listed)| (id, listed)))?)
}

/// Returns the document id of a statement in the list of VEX statements, equal for every run of the
/// import.
fn listed_id(scope: &Scope, origin: &StatementOrigin, at: usize) -> String {
    let what = format!("{}\n{}\n{at}", origin.source_id, origin.artifact_sha256);
    super::derived_id(scope, origin.stated_at, &what).to_string()
}
