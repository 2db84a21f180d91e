//! A schema as a graph: one node for each subschema, one edge for each keyword
//! that applies another.

use std::collections::HashMap;

use percent_encoding::percent_decode_str;
use serde_json::{Map, Value as Json};

/// Keywords with one subschema for the same value.
const IN_PLACE: [&str; 4] = ["not", "if", "then", "else"];
/// Keywords with a list of subschemas for the same value.
const BRANCHES: [&str; 3] = ["allOf", "anyOf", "oneOf"];
/// Keywords with subschemas by name, for the same value.
const DEPENDENT: [&str; 2] = ["dependentSchemas", "dependencies"];
/// Keywords with a subschema for each member whose name is not listed.
const ANY_MEMBER: [&str; 3] = ["additionalProperties", "unevaluatedProperties", "propertyNames"];
/// Keywords with a subschema for items.
const ITEMS: [&str; 5] =
    ["items", "additionalItems", "unevaluatedItems", "contains", "contentSchema"];

/// Where in a value an edge leads that goes down.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Label<'s> {
    Member(&'s str),
    AnyMember,
    Item,
}

/// One subschema.
#[derive(Default)]
pub(super) struct Node<'s> {
    /// Subschemas for the same value.
    pub(super) in_place: Vec<usize>,
    /// Subschemas for its members and items.
    pub(super) down: Vec<(Label<'s>, usize)>,
    /// It has `unevaluatedProperties` or `unevaluatedItems`.
    pub(super) unevaluated: bool,
}

/// What a root schema reaches. The root is node 0.
pub(super) struct Graph<'s> {
    pub(super) nodes: Vec<Node<'s>>,
}

impl<'s> Graph<'s> {
    /// # Errors
    /// A reference that cannot be followed.
    pub(super) fn of(root: &'s Json) -> Result<Self, String> {
        let mut builder =
            Builder { root, anchors: anchors(root)?, ids: HashMap::new(), todo: vec![] };
        let mut nodes: Vec<Node<'s>> = Vec::new();
        builder.id(root);
        while let Some(schema) = builder.todo.get(nodes.len()).copied() {
            nodes.push(builder.node(schema)?);
        }
        Ok(Self { nodes })
    }

    /// All nodes, each after those that it applies; what leads back comes
    /// later.
    pub(super) fn post_order(&self) -> Vec<usize> {
        let edges = |node: &Node<'_>| {
            let down = node.down.iter().map(|(_, child)| *child);
            node.in_place.iter().copied().chain(down).collect()
        };
        self.ordered(edges).0
    }

    /// All nodes, each after those that it applies to the same value.
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

    /// Depth-first, without recursion, and whether an edge leads back to a
    /// node under way.
    fn ordered(&self, edges: impl Fn(&Node<'s>) -> Vec<usize>) -> (Vec<usize>, bool) {
        #[derive(Clone, Copy, PartialEq)]
        enum Mark {
            New,
            UnderWay,
            Done,
        }
        let mut marks = vec![Mark::New; self.nodes.len()];
        let (mut order, mut leads_back) = (Vec::with_capacity(self.nodes.len()), false);
        for root in 0..self.nodes.len() {
            let mut stack = vec![(root, None)];
            while let Some((at, children)) = stack.pop() {
                if children.is_none() && marks[at] != Mark::New {
                    leads_back |= marks[at] == Mark::UnderWay;
                    continue;
                }
                marks[at] = Mark::UnderWay;
                let mut children: Vec<usize> = children.unwrap_or_else(|| edges(&self.nodes[at]));
                if let Some(child) = children.pop() {
                    stack.push((at, Some(children)));
                    stack.push((child, None));
                } else {
                    marks[at] = Mark::Done;
                    order.push(at);
                }
            }
        }
        (order, leads_back)
    }
}

struct Builder<'s> {
    root: &'s Json,
    anchors: HashMap<&'s str, &'s Json>,
    /// By address.
    ids: HashMap<usize, usize>,
    todo: Vec<&'s Json>,
}

impl<'s> Builder<'s> {
    fn id(&mut self, schema: &'s Json) -> usize {
        let (next, todo) = (self.ids.len(), &mut self.todo);
        *self.ids.entry(std::ptr::from_ref(schema).addr()).or_insert_with(|| {
            todo.push(schema);
            next
        })
    }

    fn node(&mut self, schema: &'s Json) -> Result<Node<'s>, String> {
        let Json::Object(members) = schema else { return Ok(Node::default()) };
        let mut node = Node {
            unevaluated: ["unevaluatedProperties", "unevaluatedItems"]
                .iter()
                .any(|keyword| members.contains_key(*keyword)),
            ..Node::default()
        };
        self.same_value(members, &mut node)?;
        for (name, member) in by_name(members, "properties") {
            node.down.push((Label::Member(name), self.id(member)));
        }
        let any = by_name(members, "patternProperties").map(|(_, member)| member);
        for schema in any.chain(ANY_MEMBER.iter().filter_map(|keyword| members.get(*keyword))) {
            node.down.push((Label::AnyMember, self.id(schema)));
        }
        let single = ITEMS.iter().filter_map(|keyword| members.get(*keyword));
        let listed = ["prefixItems", "items"].into_iter().flat_map(|of| list(members, of));
        for schema in single.chain(listed) {
            node.down.push((Label::Item, self.id(schema)));
        }
        Ok(node)
    }

    fn same_value(
        &mut self,
        members: &'s Map<String, Json>,
        node: &mut Node<'s>,
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

/// Subschemas by their anchors.
fn anchors(root: &Json) -> Result<HashMap<&str, &Json>, String> {
    let mut found = HashMap::new();
    let mut waiting = vec![root];
    while let Some(value) = waiting.pop() {
        match value {
            Json::Object(members) => {
                let is = |name: &str| members.get(name).is_some_and(Json::is_string);
                if is("$id") && !std::ptr::eq(value, root) || is("$recursiveRef") {
                    return Err(
                        "it has `$id` or `$recursiveRef` below its root, which would give \
                                its references other targets; use `$defs` and `#/$defs/NAME`"
                            .into(),
                    );
                }
                for keyword in ["$anchor", "$dynamicAnchor"] {
                    if let Some(name) = members.get(keyword).and_then(Json::as_str) {
                        found.insert(name, value);
                    }
                }
                waiting.extend(members.values());
            }
            Json::Array(items) => waiting.extend(items),
            _ => {}
        }
    }
    Ok(found)
}
