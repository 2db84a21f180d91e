//! The rules of a run. A result's rule is found by index, GUID, id or a prefix of the id, in the
//! tool's driver or an extension.

use std::collections::{BTreeSet, HashMap};

use serde_json::{Map, Value};

use super::message::text;
use super::model::{
    DescriptorReference, Invocation, ResultObject, Rule, RuleConfiguration, Tool, ToolComponent,
};
use crate::text::clean;

/// Maximum size of a stored rule id in bytes. Indexes of the database contain it.
const MOST_ID_BYTES: usize = 300;

/// Index of the rules that the driver and the extensions of a SARIF run declare.
pub(super) struct RuleIndex<'a> {
    components: Vec<&'a ToolComponent>,
    /// Indexes of the tool's components (driver and extensions) by lower-case GUID; the first of
    /// equal ones.
    component_by_guid: HashMap<String, usize>,
    /// Indexes of the tool's components by name; the first of equal ones.
    component_by_name: HashMap<&'a str, usize>,
    /// Positions of the rules by id. If several components of the tool have the id, the driver's
    /// rule, or that of the first extension.
    by_id: RuleIdTrie<'a>,
    /// Positions of the rules by id, separately for each component of the tool.
    by_component: Vec<RuleIdTrie<'a>>,
    by_guid: HashMap<String, RulePosition>,
    /// For each invocation, the configurations in `ruleConfigurationOverrides`, by rule.
    overrides: Vec<HashMap<RulePosition, &'a RuleConfiguration>>,
}

/// Returns the ids of the rules that a tool lists and at least one invocation enables; `None` if it
/// lists none.
pub(super) fn checked(tool: &Tool, invocations: &[Invocation]) -> Option<BTreeSet<String>> {
    let rules = RuleIndex::of(tool, invocations);
    let mut listed = rules.each().filter(|(_, rule)| rule.id.is_some()).peekable();
    listed.peek()?;
    let overridden = rules.overridden();
    let enabled = listed.filter(|(place, rule)| {
        rules.is_enabled(rule, overridden.get(place).copied().unwrap_or_default())
    });
    let ids = enabled.filter_map(|(_, rule)| rule.id.as_deref());
    Some(ids.map(|id| clean(id, MOST_ID_BYTES)).collect())
}

/// Index of a tool component (0 for the driver), and index of a rule in its `rules`.
type RulePosition = (usize, usize);

/// Number of invocations that override a rule's configuration, and whether one of them enables it.
type RuleOverrideSummary = (usize, bool);

/// Positions of rules by rule id. Ids are hierarchical (SARIF 3.52.4): a node is a part between
/// slashes. So a search takes one look-up for each part of an id, however long the id is.
#[derive(Default)]
struct RuleIdTrie<'a> {
    /// Nodes by their parent node and part of the rule id. The root is 0.
    nodes: HashMap<(usize, &'a str), usize>,
    rules: HashMap<usize, RulePosition>,
}

impl<'a> RuleIdTrie<'a> {
    /// Adds the position of a rule, unless another rule has its id.
    fn add(&mut self, id: &'a str, place: RulePosition) {
        let node = id.split('/').fold(0, |node, part| {
            let next = self.nodes.len() + 1;
            *self.nodes.entry((node, part)).or_insert(next)
        });
        self.rules.entry(node).or_insert(place);
    }

    /// Returns the nodes of a rule id from the first part on, up to the first unknown part.
    fn path(&self, id: &str) -> impl Iterator<Item = usize> {
        id.split('/').scan(0, move |node, part| {
            *node = *self.nodes.get(&(*node, part))?;
            Some(*node)
        })
    }

    /// Returns the position of the rule with this id, or with the longest prefix of a hierarchical
    /// id (`CA1000` for `CA1000/1`).
    fn find(&self, id: &str) -> Option<RulePosition> {
        self.path(id).filter_map(|node| self.rules.get(&node).copied()).last()
    }
}

/// Rule of a result: its id, and its definition in the SARIF log if there is one.
pub(super) struct FoundRule<'a> {
    /// Id of the rule, `unspecified` if the result names none; never empty.
    pub(super) id: String,
    pub(super) rule: Option<&'a Rule>,
    place: Option<RulePosition>,
}

impl<'a> RuleIndex<'a> {
    pub(super) fn of(tool: &'a Tool, invocations: &'a [Invocation]) -> Self {
        let extensions = tool.extensions.iter().flatten();
        let components: Vec<&ToolComponent> = tool.driver.iter().chain(extensions).collect();
        let mut rules = Self {
            components,
            component_by_guid: HashMap::new(),
            component_by_name: HashMap::new(),
            by_id: RuleIdTrie::default(),
            by_component: Vec::new(),
            by_guid: HashMap::new(),
            overrides: Vec::new(),
        };
        rules.list();
        rules.overrides = invocations.iter().map(|one| rules.overrides_of(one)).collect();
        rules
    }

    /// Returns all rules that the tool's components declare, with their positions.
    fn each(&self) -> impl Iterator<Item = (RulePosition, &'a Rule)> {
        self.components.iter().enumerate().flat_map(|(at, component)| {
            let rules = component.rules.iter().flatten().enumerate();
            rules.map(move |(index, rule)| ((at, index), rule))
        })
    }

    /// Returns the positions of the rules whose configuration invocations override, with a summary
    /// of the overrides.
    fn overridden(&self) -> HashMap<RulePosition, RuleOverrideSummary> {
        let mut overridden = HashMap::<_, RuleOverrideSummary>::new();
        for (place, configuration) in self.overrides.iter().flatten() {
            let (invocations, is_enabled) = overridden.entry(*place).or_default();
            *invocations += 1;
            *is_enabled |= configuration.is_enabled();
        }
        overridden
    }

    /// Whether at least one invocation checks a rule, by its override or by the rule's default.
    fn is_enabled(&self, rule: &Rule, (overriding, is_enabled): RuleOverrideSummary) -> bool {
        let default = rule.default_configuration.as_ref().is_none_or(RuleConfiguration::is_enabled);
        let by_default = self.overrides.is_empty() || overriding < self.overrides.len();
        is_enabled || default && by_default
    }

    fn list(&mut self) {
        for (at, component) in self.components.iter().enumerate() {
            if let Some(guid) = &component.guid {
                self.component_by_guid.entry(guid.to_ascii_lowercase()).or_insert(at);
            }
            if let Some(name) = component.name.as_deref() {
                self.component_by_name.entry(name).or_insert(at);
            }
            let mut of_component = RuleIdTrie::default();
            for (index, rule) in component.rules.iter().flatten().enumerate() {
                if let Some(id) = rule.id.as_deref() {
                    self.by_id.add(id, (at, index));
                    of_component.add(id, (at, index));
                }
                if let Some(guid) = &rule.guid {
                    self.by_guid.entry(guid.to_ascii_lowercase()).or_insert((at, index));
                }
            }
            self.by_component.push(of_component);
        }
    }

    fn overrides_of(
        &self,
        invocation: &'a Invocation,
    ) -> HashMap<RulePosition, &'a RuleConfiguration> {
        let all = invocation.rule_configuration_overrides.iter().flatten();
        all.filter_map(|set| {
            let descriptor = set.descriptor.as_ref()?;
            let place = self.place(Some(descriptor), descriptor.index, descriptor.id.as_deref())?;
            Some((place, set.configuration.as_ref()?))
        })
        .collect()
    }

    /// Returns the rule to which a result refers.
    pub(super) fn find(&self, result: &ResultObject) -> FoundRule<'a> {
        let reference = result.rule.as_ref();
        let said = result.rule_id.as_deref().or_else(|| reference?.id.as_deref());
        let said = said.map(str::trim).filter(|id| !id.is_empty());
        let index = result.rule_index.or_else(|| reference?.index);
        let place = self.place(reference, index, said);
        let rule = place.and_then(|(component, index)| self.rule(component, index));
        let id = said.or_else(|| rule?.id.as_deref()).unwrap_or("unspecified");
        FoundRule { id: clean(id, MOST_ID_BYTES), rule, place }
    }

    /// Returns the position of a rule that is referenced by index, GUID or id: in the referenced
    /// component of the tool, otherwise in any component (SARIF 3.52.3).
    fn place(
        &self,
        reference: Option<&DescriptorReference>,
        index: Option<i64>,
        id: Option<&str>,
    ) -> Option<RulePosition> {
        let guid = reference.and_then(|rule| rule.guid.as_deref());
        let by_guid = || self.by_guid.get(&guid?.to_ascii_lowercase()).copied();
        let in_named = || {
            let named = reference.filter(|rule| rule.tool_component.is_some())?;
            self.by_component.get(self.component(Some(named))?)?.find(id?)
        };
        let anywhere = || self.by_id.find(id?);
        let by_index = self.at_index(reference, index);
        by_index.or_else(by_guid).or_else(in_named).or_else(anywhere)
    }

    fn rule(&self, component: usize, index: usize) -> Option<&'a Rule> {
        self.components.get(component)?.rules.as_ref()?.get(index)
    }

    fn at_index(
        &self,
        reference: Option<&DescriptorReference>,
        index: Option<i64>,
    ) -> Option<(usize, usize)> {
        let index = usize::try_from(index?).ok()?;
        let component = self.component(reference)?;
        self.rule(component, index).map(|_| (component, index))
    }

    /// Returns the index of the tool's component to which a rule reference points: an extension by
    /// index, GUID or name; the driver if it names none.
    fn component(&self, reference: Option<&DescriptorReference>) -> Option<usize> {
        let Some(named) = reference.and_then(|rule| rule.tool_component.as_ref()) else {
            return Some(0);
        };
        if let Some(index) = named.index.and_then(|index| usize::try_from(index).ok()) {
            return index.checked_add(1);
        }
        let guid = named.guid.as_ref().map(|guid| guid.to_ascii_lowercase());
        let by_guid = guid.and_then(|guid| self.component_by_guid.get(&guid));
        let by_name = || self.component_by_name.get(named.name.as_deref()?);
        by_guid.or_else(by_name).copied()
    }

    /// Returns the message string with this id: of the rule, otherwise of the rule's component
    /// (`globalMessageStrings`).
    pub(super) fn message(&self, rule: &FoundRule<'a>, id: &str) -> Option<&'a str> {
        let own = || rule.rule?.message_strings.as_ref()?.get(id);
        let component = rule.place.map_or(0, |(component, _)| component);
        let global = || self.components.get(component)?.global_message_strings.as_ref()?.get(id);
        text(own().or_else(global))
    }

    /// Returns the level for a result that has no `level`: that in the override of its invocation,
    /// otherwise the rule's default, otherwise `warning`. If the run has one invocation, a result
    /// need not reference it.
    pub(super) fn level(&self, rule: &FoundRule<'a>, invocation: Option<i64>) -> &'a str {
        let named = invocation.and_then(|index| usize::try_from(index).ok());
        let overrides = match (&self.overrides[..], named) {
            ([only], _) => Some(only),
            (several, Some(index)) => several.get(index),
            (_, None) => None,
        };
        let set = || overrides?.get(&rule.place?).copied()?.level.as_deref();
        let own = || rule.rule?.default_configuration.as_ref()?.level.as_deref();
        set().or_else(own).unwrap_or("warning")
    }
}

impl FoundRule<'_> {
    /// Returns the rule's short description, otherwise its full one; `None` if the log has neither.
    pub(super) fn heading(&self) -> Option<&str> {
        let rule = self.rule?;
        text(rule.short_description.as_ref()).or_else(|| text(rule.full_description.as_ref()))
    }

    pub(super) fn name(&self) -> Option<&str> {
        self.rule?.name.as_deref().map(str::trim).filter(|name| !name.is_empty())
    }

    pub(super) fn properties(&self) -> Option<&Map<String, Value>> {
        self.rule?.properties.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_found_by_the_longest_prefix_of_its_id() {
        let mut rules = RuleIdTrie::default();
        for (index, id) in ["A", "A/b", "A", "A/b/c/d", ""].into_iter().enumerate() {
            rules.add(id, (0, index));
        }
        let found = |id| rules.find(id).map(|(_, index)| index);
        assert_eq!((found("A"), found("A/b"), found("A/b/c")), (Some(0), Some(1), Some(1)));
        assert_eq!((found("A/b/c/d/e"), found("A/x/b"), found("A/")), (Some(3), Some(0), Some(0)));
        assert_eq!((found("/A"), found("Ab"), found("b/A")), (Some(4), None, None));
    }

    #[test]
    fn an_id_of_many_parts_is_looked_up_once_for_each_known_part() {
        let mut rules = RuleIdTrie::default();
        rules.add("A", (0, 0));
        let id = format!("A{}", "/".repeat(900_000));
        assert_eq!((rules.path(&id).count(), rules.find(&id)), (1, Some((0, 0))));
    }
}
