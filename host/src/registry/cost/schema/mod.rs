//! The cost of a schema: how many of its nodes a validator, a page or a
//! comparison may visit, each counted as often as references and branches lead
//! to it.
//!
//! The schema becomes a graph whose edges stay at the same value or go down
//! into a member or an item. Counting visits each edge once, so it is cheap
//! however large the count is. All arithmetic saturates.

mod graph;

use std::collections::HashMap;

use serde_json::Value as Json;

use graph::{Graph, Label, Node};

/// How deep a JSON value can be nested that the host reads.
const VALUE_DEPTH: usize = 128;

/// Nodes on the longest way through a schema and a value. A validator takes
/// some hundred bytes of stack for each.
const MAX_DEPTH: u64 = 2_048;

/// The number of nodes that a schema expands to. A reference to a schema that
/// is being expanded counts as one, unless a value can make the validator
/// follow it more than once at each level: then every level counts.
///
/// # Errors
/// The schema has a reference that cannot be followed, that leads back to
/// itself at the same value, or that nests too deep.
pub(in super::super) fn nodes(schema: &Json) -> Result<u64, String> {
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
    let visited = if recursive { visited(&graph, &order) } else { 0 };
    Ok(expanded.max(visited))
}

/// What validating and then marking what was evaluated visit. `unevaluated…`
/// marks by validating the branches again.
#[derive(Clone, Copy, Default, PartialEq)]
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

/// Nodes visited on the way to the deepest member of a value that leads back
/// into the schema as often as it can.
fn visited(graph: &Graph<'_>, order: &[usize]) -> u64 {
    let mut above = vec![Visits::default(); graph.nodes.len()];
    for _ in 0..VALUE_DEPTH {
        let mut level = vec![Visits::default(); graph.nodes.len()];
        for &at in order {
            let node = &graph.nodes[at];
            let here: Vec<Visits> = node.in_place.iter().map(|child| level[*child]).collect();
            level[at] = visits(node, &here, widest(node, &above));
        }
        if level == above {
            break;
        }
        above = level;
    }
    above[0].validate
}

/// The most that one member or item of a value leads to.
fn widest(node: &Node<'_>, costs: &[Visits]) -> u64 {
    let (mut any, mut items) = (0_u64, 0_u64);
    let mut members: HashMap<&str, u64> = HashMap::new();
    for (label, child) in &node.down {
        let cost = costs[*child].validate;
        match label {
            Label::Member(name) => {
                let sum = members.entry(name).or_default();
                *sum = sum.saturating_add(cost);
            }
            Label::AnyMember => any = any.saturating_add(cost),
            Label::Item => items = items.saturating_add(cost),
        }
    }
    let named = members.values().copied().max().unwrap_or(0);
    any.saturating_add(named).max(items)
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
