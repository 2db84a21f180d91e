//! A schema as a graph: one node for each subschema, one edge for each keyword
//! that applies another subschema.

use std::collections::HashMap;

use percent_encoding::percent_decode_str;
use serde_json::{Map, Value as Json};

use crate::walk::objects;

/// JSON Schema keywords whose single subschema applies to the same value as the
/// parent.
const IN_PLACE: [&str; 4] = ["not", "if", "then", "else"];
/// JSON Schema keywords whose list of subschemas applies to the same value as
/// the parent.
const BRANCHES: [&str; 3] = ["allOf", "anyOf", "oneOf"];
/// JSON Schema keywords with subschemas by property name that apply to the same
/// value as the parent.
const DEPENDENT: [&str; 2] = ["dependentSchemas", "dependencies"];
/// JSON Schema keywords whose subschema applies to all members, or to those
/// without a schema of their own.
const ANY_MEMBER: [&str; 3] = ["additionalProperties", "unevaluatedProperties", "propertyNames"];
/// JSON Schema keywords with a subschema for items of an array.
const ITEMS: [&str; 5] =
    ["items", "additionalItems", "unevaluatedItems", "contains", "contentSchema"];

/// Part of a JSON value to which the subschema at the end of a graph edge
/// applies.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum JsonValuePart<'s> {
    Member(&'s str),
    AnyMember,
    Item,
}

/// Node of the schema graph: one subschema.
#[derive(Default)]
pub(super) struct SchemaNode<'s> {
    /// Numbers of the nodes whose subschemas apply to the same value as this
    /// node's.
    pub(super) in_place: Vec<usize>,
    /// Numbers of the nodes whose subschemas apply to members and items of the
    /// value, with the part of the value.
    pub(super) down: Vec<(JsonValuePart<'s>, usize)>,
    /// Whether the node's subschema has `unevaluatedProperties` or
    /// `unevaluatedItems`.
    pub(super) unevaluated: bool,
}

/// All subschemas reachable from a root schema. The root is node 0.
pub(super) struct SchemaGraph<'s> {
    pub(super) nodes: Vec<SchemaNode<'s>>,
}

impl<'s> SchemaGraph<'s> {
    /// Builds the graph of a root schema and everything it refers to.
    ///
    /// # Errors
    /// A reference cannot be resolved.
    pub(super) fn of(root: &'s Json) -> Result<Self, String> {
        let mut builder =
            GraphBuilder { root, anchors: anchors(root)?, ids: HashMap::new(), todo: vec![] };
        let mut nodes: Vec<SchemaNode<'s>> = Vec::new();
        builder.id(root);
        while let Some(schema) = builder.todo.get(nodes.len()).copied() {
            nodes.push(builder.node(schema)?);
        }
        Ok(Self { nodes })
    }

    /// Returns the numbers of all nodes, each after the nodes that it leads to,
    /// except along edges of a cycle.
    pub(super) fn post_order(&self) -> Vec<usize> {
        let edges = |node: &SchemaNode<'_>| {
            let down = node.down.iter().map(|(_, child)| *child);
            node.in_place.iter().copied().chain(down).collect()
        };
        self.ordered(edges).0
    }

    /// Returns the numbers of all nodes, each after those that it applies to
    /// the same value.
    ///
    /// # Errors
    /// A schema applies itself to the same value.
    pub(super) fn in_place_order(&self) -> Result<Vec<usize>, String> {
        match self.ordered(|node| node.in_place.clone()) {
            (order, false) => Ok(order),
            (_, true) => Err("a `$ref` leads back to its own schema without going into a member \
                              or an item, so that checking a value would never end"
                .into()),
        }
    }

    /// Returns the numbers of all nodes in depth-first post-order, computed
    /// without recursion, and whether the edges form a cycle.
    fn ordered(&self, edges: impl Fn(&SchemaNode<'s>) -> Vec<usize>) -> (Vec<usize>, bool) {
        #[derive(Clone, Copy, PartialEq)]
        enum VisitMark {
            New,
            UnderWay,
            Done,
        }
        let mut marks = vec![VisitMark::New; self.nodes.len()];
        let (mut order, mut leads_back) = (Vec::with_capacity(self.nodes.len()), false);
        for root in 0..self.nodes.len() {
            let mut stack = vec![(root, None)];
            while let Some((at, children)) = stack.pop() {
                if children.is_none() && marks[at] != VisitMark::New {
                    leads_back |= marks[at] == VisitMark::UnderWay;
                    continue;
                }
                marks[at] = VisitMark::UnderWay;
                let mut children: Vec<usize> = children.unwrap_or_else(|| edges(&self.nodes[at]));
                if let Some(child) = children.pop() {
                    stack.push((at, Some(children)));
                    stack.push((child, None));
                } else {
                    marks[at] = VisitMark::Done;
                    order.push(at);
                }
            }
        }
        (order, leads_back)
    }
}

struct GraphBuilder<'s> {
    root: &'s Json,
    anchors: HashMap<&'s str, &'s Json>,
    /// Numbers of the nodes, by the memory address of their subschema.
    ids: HashMap<usize, usize>,
    todo: Vec<&'s Json>,
}

impl<'s> GraphBuilder<'s> {
    fn id(&mut self, schema: &'s Json) -> usize {
        let (next, todo) = (self.ids.len(), &mut self.todo);
        *self.ids.entry(std::ptr::from_ref(schema).addr()).or_insert_with(|| {
            todo.push(schema);
            next
        })
    }

    fn node(&mut self, schema: &'s Json) -> Result<SchemaNode<'s>, String> {
        let Json::Object(members) = schema else { return Ok(SchemaNode::default()) };
        let mut node = SchemaNode {
            unevaluated: ["unevaluatedProperties", "unevaluatedItems"]
                .iter()
                .any(|keyword| members.contains_key(*keyword)),
            ..SchemaNode::default()
        };
        self.same_value(members, &mut node)?;
        for (name, member) in by_name(members, "properties") {
            node.down.push((JsonValuePart::Member(name), self.id(member)));
        }
        let any = by_name(members, "patternProperties").map(|(_, member)| member);
        for schema in any.chain(ANY_MEMBER.iter().filter_map(|keyword| members.get(*keyword))) {
            node.down.push((JsonValuePart::AnyMember, self.id(schema)));
        }
        let single = ITEMS.iter().filter_map(|keyword| members.get(*keyword));
        let listed = ["prefixItems", "items"].into_iter().flat_map(|of| list(members, of));
        for schema in single.chain(listed) {
            node.down.push((JsonValuePart::Item, self.id(schema)));
        }
        Ok(node)
    }

    fn same_value(
        &mut self,
        members: &'s Map<String, Json>,
        node: &mut SchemaNode<'s>,
    ) -> Result<(), String> {
        for keyword in ["$ref", "$dynamicRef"] {
            if let Some(target) = members.get(keyword).and_then(Json::as_str) {
                let schema = self.resolve(target)?;
                node.in_place.push(self.id(schema));
            }
        }
        let single = IN_PLACE.iter().filter_map(|keyword| members.get(*keyword));
        let branches = BRANCHES.into_iter().flat_map(|of| list(members, of));
        let dependent = DEPENDENT.into_iter().flat_map(|of| by_name(members, of));
        for schema in single.chain(branches).chain(dependent.map(|(_, schema)| schema)) {
            node.in_place.push(self.id(schema));
        }
        Ok(())
    }

    fn resolve(&self, target: &str) -> Result<&'s Json, String> {
        let fragment = target.strip_prefix('#').ok_or_else(|| {
            format!("it refers to {target:?}; references may only begin with `#`")
        })?;
        let fragment = percent_decode_str(fragment).decode_utf8_lossy();
        let found = match fragment.starts_with('/') || fragment.is_empty() {
            true => self.root.pointer(&fragment),
            false => self.anchors.get(&*fragment).copied(),
        };
        found.ok_or_else(|| format!("it refers to {target:?}, which it does not define"))
    }
}

fn list<'s>(members: &'s Map<String, Json>, keyword: &str) -> impl Iterator<Item = &'s Json> {
    members.get(keyword).and_then(Json::as_array).into_iter().flatten()
}

fn by_name<'s>(
    members: &'s Map<String, Json>,
    keyword: &str,
) -> impl Iterator<Item = (&'s String, &'s Json)> {
    members.get(keyword).and_then(Json::as_object).into_iter().flatten()
}

/// Returns the subschemas that have an anchor, by the anchor's name.
fn anchors(root: &Json) -> Result<HashMap<&str, &Json>, String> {
    let mut found = HashMap::new();
    for object in objects(root) {
        let is = |name: &str| object[name].is_string();
        if is("$id") && !std::ptr::eq(object, root) || is("$recursiveRef") {
            return Err("it has `$id` or `$recursiveRef` below its root, which would give \
                        its references other targets; use `$defs` and `#/$defs/NAME`"
                .into());
        }
        for keyword in ["$anchor", "$dynamicAnchor"] {
            if let Some(name) = object[keyword].as_str() {
                found.insert(name, object);
            }
        }
    }
    Ok(found)
}
