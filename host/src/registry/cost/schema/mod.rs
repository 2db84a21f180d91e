//! The cost of a schema: how many of its nodes a validator, a page or a
//! comparison may visit, each counted as often as references and branches lead
//! to it.
//!
//! The schema becomes a graph whose edges stay at the same value or go down
//! into a member or an item. Counting visits each edge once, so it is cheap
//! however large the count is. All arithmetic saturates.

mod graph;

use std::collections::BTreeMap;

use serde_json::Value as Json;

use graph::{Graph, Label, Node};

/// How deep a JSON value can be nested that the host reads.
const VALUE_DEPTH: usize = 128;

/// Nodes on the longest way through a schema and a value. A validator takes
/// some hundred bytes of stack for each.
const MAX_DEPTH: u64 = 2_048;

/// The number of nodes that a schema expands to; beyond `most` it need not be
/// exact. A reference to a schema that
/// is being expanded counts as one, unless a value can make the validator
/// follow it more than once at each level: then every level counts.
///
/// # Errors
/// The schema has a reference that cannot be followed, that leads back to
/// itself at the same value, or that nests too deep.
pub(in super::super) fn nodes(schema: &Json, most: u64) -> Result<u64, String> {
    let graph = Graph::of(schema)?;
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

/// What validating and then marking what was evaluated visit. `unevaluated…`
/// marks by validating the branches again.
#[derive(Clone, Copy)]
struct Visits {
    validate: u64,
    mark: u64,
}

/// Nodes that all ways from the root lead to, and whether any leads back.
fn expanded(graph: &Graph<'_>) -> (u64, bool) {
    let mut costs: Vec<Option<Visits>> = vec![None; graph.nodes.len()];
    let mut recursive = false;
    for &at in &graph.post_order() {
        let node = &graph.nodes[at];
        let mut cost = |child: usize| {
            recursive |= costs[child].is_none();
            costs[child].unwrap_or(Visits { validate: 1, mark: 1 })
        };
        let here: Vec<Visits> = node.in_place.iter().map(|child| cost(*child)).collect();
        let below = node.down.iter().map(|(_, child)| cost(*child).validate);
        let below = below.fold(0, u64::saturating_add);
        costs[at] = Some(visits(node, &here, below));
    }
    (costs[0].map_or(0, |visits| visits.validate), recursive)
}

/// Nodes visited for one value, and for its members and items by where they
/// are.
#[derive(Clone, Default)]
struct Sums<'s> {
    here: u64,
    below: BTreeMap<Label<'s>, u64>,
}

impl<'s> Sums<'s> {
    fn of(node: &Node<'s>, below: &[u64]) -> Self {
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

    fn add_below(&mut self, label: Label<'s>, cost: u64) {
        let sum = self.below.entry(label).or_default();
        *sum = sum.saturating_add(cost);
    }

    /// With the member or the item that costs most.
    fn total(&self) -> u64 {
        let sum = |label| self.below.get(&label).copied().unwrap_or(0);
        let members = self.below.iter().filter(|(label, _)| matches!(label, Label::Member(_)));
        let named = members.map(|(_, cost)| *cost).max().unwrap_or(0);
        let below = sum(Label::AnyMember).saturating_add(named).max(sum(Label::Item));
        self.here.saturating_add(below)
    }
}

/// Nodes visited on the way to the deepest member of a value that leads back
/// into the schema as often as it can.
fn visited(graph: &Graph<'_>, order: &[usize]) -> u64 {
    let mut below = vec![0_u64; graph.nodes.len()];
    for _ in 0..VALUE_DEPTH {
        let mut level = vec![(Sums::default(), Sums::default()); graph.nodes.len()];
        for &at in order {
            let node = &graph.nodes[at];
            let mut validate = Sums::of(node, &below);
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

fn visits(node: &Node<'_>, here: &[Visits], below: u64) -> Visits {
    let sum = |of: fn(&Visits) -> u64| here.iter().map(of).fold(0, u64::saturating_add);
    let branches = sum(|visits| visits.validate);
    let mark = sum(|visits| visits.mark).saturating_add(branches).saturating_add(below);
    let mark = mark.saturating_add(1);
    let validate = branches.saturating_add(below).saturating_add(1);
    let validate = if node.unevaluated { validate.saturating_add(mark) } else { validate };
    Visits { validate, mark }
}

/// Nodes on the longest way from the root through all levels of a value.
fn deepest(graph: &Graph<'_>, order: &[usize]) -> u64 {
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
