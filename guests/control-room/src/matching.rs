//! Match suggestions: pairs of findings that may be the same. Not all pairs are compared. A new
//! finding is compared with open findings of the same repository and rule family: the newest 40,
//! and those with an equal signature.

use std::collections::BTreeMap;

use area_sdk::prelude::*;
use area_sdk::{JobError, Scope};

use crate::decimal::fixed;
use crate::finding::Finding;
use crate::similarity::{StoredTextFingerprint, TextFingerprint, WordOverlap};
use crate::suggestions::{MatchSuggestion, SuggestionState};

/// Minimum similarity of two findings that are suggested as a match, in ten-thousandths.
const LEAST_SIMILARITY: i64 = 8000;
/// Number of the newest findings of a rule family with which a new finding is compared, in addition
/// to those with an equal signature.
const FAMILY: u32 = 40;
/// Maximum number of stored findings with the signature of a new finding that one job step reads.
const SIGNATURES: u32 = 400;
/// Maximum number of match suggestions for one new finding. Users must decide about each
/// suggestion.
const MOST_EACH: usize = 3;
/// Maximum number of match suggestions for one rule family in one audit.
const MOST_OF_A_FAMILY: usize = 20;
/// Maximum number of match suggestions in one audit.
const MOST_OF_AN_AUDIT: usize = 500;

/// Text for the OpenAPI document: how pairs of findings are selected as match suggestions.
pub(crate) const DESCRIPTION: &str = "A pair is suggested if both findings are open and have the \
    same repository and rule family (the advisory, else the weakness of MITRE's list, else the \
    last segment of the rule's id), differ in path or tool, and share at least 0.80 of their \
    words (Jaccard's coefficient over message and snippet). A new finding is compared with the \
    newest 40 older ones of its family and with those that have an equal MinHash signature. At \
    most three suggestions are made for a finding, 20 for a family and 500 in one audit. Findings \
    are never merged automatically.";

/// A new finding that is not stored yet.
pub(crate) struct NewFinding {
    pub(crate) id: Uuid,
    pub(crate) finding: Finding,
    pub(crate) sketch: StoredTextFingerprint,
}

/// An older finding with which a new one is compared.
struct MatchCandidate<'a> {
    id: Uuid,
    finding: &'a Finding,
    sketch: &'a TextFingerprint,
}

/// Returns match suggestions for new findings of a repository. Called before the findings are
/// stored, because after a write the comparison would hold the write lock. `made` counts the
/// audit's suggestions by rule family.
pub(crate) fn suggestions(
    scope: &Scope,
    repository_id: Uuid,
    new: &[NewFinding],
    made: &mut BTreeMap<String, usize>,
) -> Result<Vec<MatchSuggestion>, JobError> {
    let mut families: BTreeMap<&str, Vec<&NewFinding>> = BTreeMap::new();
    for newcomer in new.iter().filter(|newcomer| newcomer.finding.open) {
        families.entry(&newcomer.finding.rule_family).or_default().push(newcomer);
    }
    families.retain(|family, _| room(made, family) > 0);
    let mut all = Vec::new();
    if families.is_empty() {
        return Ok(all);
    }
    let alike = with_signatures(scope, repository_id, families.values().flatten())?;
    for (family, newcomers) in families {
        let kept = kept(scope, repository_id, family, &alike)?;
        let others = in_order(&kept, &newcomers);
        for newcomer in newcomers {
            let most = room(made, family).min(MOST_EACH);
            if most == 0 {
                break;
            }
            let suggestions = best(scope, newcomer, &others, most);
            *made.entry(family.to_owned()).or_default() += suggestions.len();
            all.extend(suggestions);
        }
    }
    Ok(all)
}

/// Returns how many more match suggestions a rule family may get in this audit.
fn room(made: &BTreeMap<String, usize>, family: &str) -> usize {
    let in_audit = MOST_OF_AN_AUDIT.saturating_sub(made.values().sum());
    let of_family = made.get(family).copied().unwrap_or_default();
    MOST_OF_A_FAMILY.saturating_sub(of_family).min(in_audit)
}

/// Returns the stored findings of a repository whose signature equals that of a new finding.
fn with_signatures<'a>(
    scope: &Scope,
    repository_id: Uuid,
    new: impl Iterator<Item = &'a &'a NewFinding>,
) -> Result<Vec<Stored<Finding>>, JobError> {
    let signatures = new.map(|newcomer| &newcomer.finding.signature);
    let query = scope.documents::<Finding>().query().equals("repository_id", repository_id);
    // Ordered like the index; otherwise SQLite scans all findings by id.
    let query = query.one_of("signature", signatures).ascending("signature");
    Ok(query.limit(SIGNATURES).list()?)
}

/// Returns the stored open findings of a rule family with which new findings are compared, with
/// their text sketches.
fn kept(
    scope: &Scope,
    repository_id: Uuid,
    family: &str,
    alike: &[Stored<Finding>],
) -> Result<Vec<(Stored<Finding>, TextFingerprint)>, JobError> {
    let query = scope.documents::<Finding>().query().equals("repository_id", repository_id);
    let query = query.equals("rule_family", family);
    let mut found = query.limit(FAMILY).list()?;
    found.extend(alike.iter().filter(|one| one.rule_family == family).cloned());
    found.retain(|one| one.open);
    found.sort_by(|a, b| a.id.cmp(&b.id));
    found.dedup_by(|a, b| a.id == b.id);
    let ids: Vec<&String> = found.iter().map(|one| &one.id).collect();
    let sketches = scope.documents::<StoredTextFingerprint>().get_many(ids)?.into_iter();
    let mut sketches: BTreeMap<String, TextFingerprint> =
        sketches.map(|kept| (kept.id.clone(), kept.value.sketch)).collect();
    let with_sketch = |one: Stored<Finding>| sketches.remove(&one.id).map(|sketch| (one, sketch));
    Ok(found.into_iter().filter_map(with_sketch).collect())
}

/// Returns stored and new findings together, oldest first, as candidates for a match.
fn in_order<'a>(
    kept: &'a [(Stored<Finding>, TextFingerprint)],
    newcomers: &[&'a NewFinding],
) -> Vec<MatchCandidate<'a>> {
    let kept =
        kept.iter().map(|(finding, sketch)| MatchCandidate { id: finding.uuid(), finding, sketch });
    let new = newcomers.iter().map(|new| MatchCandidate {
        id: new.id,
        finding: &new.finding,
        sketch: &new.sketch.sketch,
    });
    let mut all: Vec<MatchCandidate<'a>> = kept.chain(new).collect();
    all.sort_by_key(|candidate| candidate.id);
    all
}

/// Returns match suggestions of a new finding with the most similar older findings, at most `most`;
/// of equally similar ones, the older first.
fn best(
    scope: &Scope,
    newcomer: &NewFinding,
    others: &[MatchCandidate<'_>],
    most: usize,
) -> Vec<MatchSuggestion> {
    let older = &others[..others.partition_point(|other| other.id < newcomer.id)];
    let (earlier, newest) = older.split_at(older.len().saturating_sub(FAMILY as usize));
    let same_words =
        |other: &&MatchCandidate<'_>| other.finding.signature == newcomer.finding.signature;
    let held_against = earlier.iter().filter(same_words).chain(newest);
    let elsewhere = held_against.filter(|other| is_elsewhere(other.finding, &newcomer.finding));
    let mut alike: Vec<(WordOverlap, &MatchCandidate<'_>)> = elsewhere
        .map(|other| (other.sketch.overlap(&newcomer.sketch.sketch), other))
        .filter(|(overlap, _)| overlap.similarity() >= LEAST_SIMILARITY)
        .collect();
    alike.sort_by_key(|(overlap, _)| -overlap.similarity());
    let suggestion = |(overlap, other): (WordOverlap, &MatchCandidate<'_>)| MatchSuggestion {
        left_finding_id: other.id,
        right_finding_id: newcomer.id,
        similarity: fixed(overlap.similarity(), 4),
        rationale: rationale(other.finding, &newcomer.finding, overlap),
        state: SuggestionState::Pending,
        decided_at: None,
        decided_by: None,
        created_at: scope.now(),
    };
    alike.into_iter().take(most).map(suggestion).collect()
}

fn is_elsewhere(one: &Finding, other: &Finding) -> bool {
    one.tool != other.tool || one.paths.first() != other.paths.first()
}

fn rationale(one: &Finding, other: &Finding, overlap: WordOverlap) -> String {
    let tools = if one.tool == other.tool {
        "the same tool in another path".to_owned()
    } else {
        format!("{} and {}", one.tool, other.tool)
    };
    let WordOverlap { shared, either } = overlap;
    format!("Rule family {}, {tools}; {shared} of {either} words in common.", one.rule_family)
}
