//! Cost of a schema: the number of nodes that a validator, a page or a
//! comparison may visit. A node counts as often as references and branches lead
//! to it.
//!
//! The schema becomes a graph whose edges stay at the same value or descend
//! into a member or item. Counting visits each edge once, so it is cheap even
//! if the count is large. All arithmetic saturates.

mod graph;

use std::collections::BTreeMap;

use serde_json::Value as Json;

use graph::{JsonValuePart, SchemaGraph, SchemaNode};

/// Maximum nesting depth of JSON values that the host reads.
const VALUE_DEPTH: usize = 128;

/// Maximum number of nodes on one path through a schema and a value. A
/// validator needs some hundred bytes of stack for each.
const MAX_DEPTH: u64 = 2_048;

/// Returns the number of nodes that a schema expands to; beyond `most` it may
/// be inexact. A recursive reference counts as one node, unless a value can
/// make the validator follow it more than once at each level; then every level
/// counts.
///
/// # Errors
/// A reference cannot be resolved, leads back to itself at the same value, or
/// nests too deep.
pub(in super::super) fn nodes(schema: &Json, most: u64) -> Result<u64, String> {
    let graph = SchemaGraph::of(schema)?;
    let order = graph.in_place_order()?;
    let (expanded, recursive) = expanded(&graph);
    let deepest = deepest(&graph, &order);
    if deepest > MAX_DEPTH {
        return Err(format!(
            "a value can lead through {deepest} nested schemas, and at most {MAX_DEPTH} are \
             allowed; nest less, or shorten its chains of references"
        ));
    }
    if !recursive || expanded > most {
        return Ok(expanded);
    }
    Ok(expanded.max(visited(&graph, &order)))
}

/// Number of schema nodes that the validator visits: first to validate, then to
/// find evaluated members. For `unevaluated…` keywords it validates the
/// branches again.
#[derive(Clone, Copy)]
struct VisitCount {
    validate: u64,
    mark: u64,
}

/// Returns the number of schema nodes on all paths from the root, and whether
/// there is a cycle.
fn expanded(graph: &SchemaGraph<'_>) -> (u64, bool) {
    let mut costs: Vec<Option<VisitCount>> = vec![None; graph.nodes.len()];
    let mut recursive = false;
    for &at in &graph.post_order() {
        let node = &graph.nodes[at];
        let mut cost = |child: usize| {
            recursive |= costs[child].is_none();
            costs[child].unwrap_or(VisitCount { validate: 1, mark: 1 })
        };
        let here: Vec<VisitCount> = node.in_place.iter().map(|child| cost(*child)).collect();
        let below = node.down.iter().map(|(_, child)| cost(*child).validate);
        let below = below.fold(0, u64::saturating_add);
        costs[at] = Some(visits(node, &here, below));
    }
    (costs[0].map_or(0, |visits| visits.validate), recursive)
}

/// Numbers of schema nodes that the validator visits for one value itself, and
/// for its members and items by their location.
#[derive(Clone, Default)]
struct VisitSums<'s> {
    here: u64,
    below: BTreeMap<JsonValuePart<'s>, u64>,
}

impl<'s> VisitSums<'s> {
    fn of(node: &SchemaNode<'s>, below: &[u64]) -> Self {
        let mut sums = Self { here: 1, ..Self::default() };
        for (label, child) in &node.down {
            sums.add_below(*label, below[*child]);
        }
        sums
    }

    fn add(&mut self, other: &Self) {
        self.here = self.here.saturating_add(other.here);
        for (label, cost) in &other.below {
            self.add_below(*label, *cost);
        }
    }

    fn add_below(&mut self, label: JsonValuePart<'s>, cost: u64) {
        let sum = self.below.entry(label).or_default();
        *sum = sum.saturating_add(cost);
    }

    /// Returns the number of nodes visited for the value and its most expensive
    /// member or item.
    fn total(&self) -> u64 {
        let sum = |label| self.below.get(&label).copied().unwrap_or(0);
        let members =
            self.below.iter().filter(|(label, _)| matches!(label, JsonValuePart::Member(_)));
        let named = members.map(|(_, cost)| *cost).max().unwrap_or(0);
        let below =
            sum(JsonValuePart::AnyMember).saturating_add(named).max(sum(JsonValuePart::Item));
        self.here.saturating_add(below)
    }
}

/// Returns the number of schema nodes that the validator visits for the most
/// expensive value, whose nested members follow recursive references at every
/// level.
fn visited(graph: &SchemaGraph<'_>, order: &[usize]) -> u64 {
    let mut below = vec![0_u64; graph.nodes.len()];
    for _ in 0..VALUE_DEPTH {
        let mut level = vec![(VisitSums::default(), VisitSums::default()); graph.nodes.len()];
        for &at in order {
            let node = &graph.nodes[at];
            let mut validate = VisitSums::of(node, &below);
            let mut mark = validate.clone();
            for child in &node.in_place {
                validate.add(&level[*child].0);
                mark.add(&level[*child].0);
                mark.add(&level[*child].1);
            }
            if node.unevaluated {
                validate.add(&mark);
            }
            level[at] = (validate, mark);
        }
        let totals: Vec<u64> = level.iter().map(|(validate, _)| validate.total()).collect();
        if totals == below {
            break;
        }
        below = totals;
    }
    below[0]
}

fn visits(node: &SchemaNode<'_>, here: &[VisitCount], below: u64) -> VisitCount {
    let sum = |of: fn(&VisitCount) -> u64| here.iter().map(of).fold(0, u64::saturating_add);
    let branches = sum(|visits| visits.validate);
    let mark = sum(|visits| visits.mark).saturating_add(branches).saturating_add(below);
    let mark = mark.saturating_add(1);
    let validate = branches.saturating_add(below).saturating_add(1);
    let validate = if node.unevaluated { validate.saturating_add(mark) } else { validate };
    VisitCount { validate, mark }
}

/// Returns the number of schema nodes on the longest path from the root through
/// all levels of a value.
fn deepest(graph: &SchemaGraph<'_>, order: &[usize]) -> u64 {
    let mut above = vec![0_u64; graph.nodes.len()];
    for _ in 0..VALUE_DEPTH {
        let mut level = vec![0_u64; graph.nodes.len()];
        for &at in order {
            let node = &graph.nodes[at];
            let here = node.in_place.iter().map(|child| level[*child]);
            let below = node.down.iter().map(|(_, child)| above[*child]);
            level[at] = 1 + here.chain(below).max().unwrap_or(0);
        }
        if level == above {
            break;
        }
        above = level;
    }
    above[0]
}
