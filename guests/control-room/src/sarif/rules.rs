//! Rules of a run: found by index, by id, by the id's beginning, in the driver
//! or in an extension.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::message::text;
use super::model::{Descriptor, Invocation, ResultObject, Rule, Tool, ToolComponent};
use crate::text::clean;

/// Bytes of a rule's id that are kept; it is part of indexes.
const MOST_ID_BYTES: usize = 300;

/// The rules of a run.
pub(super) struct Rules<'a> {
    components: Vec<&'a ToolComponent>,
    by_id: HashMap<&'a str, (usize, usize)>,
    /// Levels that an invocation set instead of the rules' own.
    overrides: HashMap<&'a str, &'a str>,
}

/// A result's rule: what it is called, and what the file says of it.
pub(super) struct FoundRule<'a> {
    /// Never empty.
    pub(super) id: String,
    pub(super) rule: Option<&'a Rule>,
    component: usize,
}

impl<'a> Rules<'a> {
    pub(super) fn of(tool: &'a Tool, invocations: &'a [Invocation]) -> Self {
        let extensions = tool.extensions.iter().flatten();
        let components: Vec<&ToolComponent> = tool.driver.iter().chain(extensions).collect();
        let mut by_id = HashMap::new();
        for (at, component) in components.iter().enumerate() {
            for (index, rule) in component.rules.iter().flatten().enumerate() {
                if let Some(id) = rule.id.as_deref() {
                    by_id.entry(id).or_insert((at, index));
                }
            }
        }
        Self { components, by_id, overrides: overrides(invocations) }
    }

    /// The rule of a result.
    pub(super) fn find(&self, result: &ResultObject) -> FoundRule<'a> {
        let reference = result.rule.as_ref();
        let said = result.rule_id.as_deref().or_else(|| reference?.id.as_deref());
        let said = said.map(str::trim).filter(|id| !id.is_empty());
        let index = result.rule_index.or_else(|| reference?.index);
        let place = self.at_index(reference, index).or_else(|| said.and_then(|id| self.at_id(id)));
        let (component, rule) = match place {
            Some((component, index)) => (component, self.rule(component, index)),
            None => (0, None),
        };
        let id = said.or_else(|| rule?.id.as_deref()).unwrap_or("unspecified");
        FoundRule { id: clean(id, MOST_ID_BYTES), rule, component }
    }

    fn rule(&self, component: usize, index: usize) -> Option<&'a Rule> {
        self.components.get(component)?.rules.as_ref()?.get(index)
    }

    fn at_index(
        &self,
        reference: Option<&Descriptor>,
        index: Option<i64>,
    ) -> Option<(usize, usize)> {
        let index = usize::try_from(index?).ok()?;
        let component = self.component(reference)?;
        self.rule(component, index).map(|_| (component, index))
    }

    /// The component a reference names: an extension by index or name, else the
    /// driver.
    fn component(&self, reference: Option<&Descriptor>) -> Option<usize> {
        let Some(named) = reference.and_then(|rule| rule.tool_component.as_ref()) else {
            return Some(0);
        };
        if let Some(index) = named.index.and_then(|index| usize::try_from(index).ok()) {
            return index.checked_add(1);
        }
        let name = named.name.as_deref()?;
        self.components.iter().position(|component| component.name.as_deref() == Some(name))
    }

    /// By id, or by the longest beginning of a hierarchical id (`CA1000/1`).
    fn at_id(&self, id: &str) -> Option<(usize, usize)> {
        let mut id = id;
        loop {
            if let Some(&place) = self.by_id.get(id) {
                return Some(place);
            }
            id = id.rsplit_once('/')?.0;
        }
    }

    /// A named message of a rule, or of its component.
    pub(super) fn message(&self, rule: &FoundRule<'a>, id: &str) -> Option<&'a str> {
        let own = || rule.rule?.message_strings.as_ref()?.get(id);
        let global =
            || self.components.get(rule.component)?.global_message_strings.as_ref()?.get(id);
        text(own().or_else(global))
    }

    /// The level of a result that says none itself.
    pub(super) fn level(&self, rule: &FoundRule<'a>) -> &'a str {
        let set = || self.overrides.get(rule.rule?.id.as_deref()?).copied();
        let own = || rule.rule?.default_configuration.as_ref()?.level.as_deref();
        set().or_else(own).unwrap_or("warning")
    }
}

fn overrides(invocations: &[Invocation]) -> HashMap<&str, &str> {
    let all = invocations.iter().flat_map(|run| run.rule_configuration_overrides.iter().flatten());
    all.filter_map(|set| {
        let rule = set.descriptor.as_ref()?.id.as_deref()?;
        Some((rule, set.configuration.as_ref()?.level.as_deref()?))
    })
    .collect()
}

impl FoundRule<'_> {
    /// What the rule is called by people, where the file says.
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
