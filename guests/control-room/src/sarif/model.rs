//! The members of a SARIF 2.1.0 log that the import reads. Nearly all are optional: scanners omit
//! much that the standard requires, and a strict model would refuse usable files. Section numbers
//! are those of the standard.

use std::collections::BTreeMap;

use serde::de::{Error as _, IgnoredAny};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// A SARIF log. Its `runs` are parsed one by one.
#[derive(Deserialize)]
pub(super) struct Log<'a> {
    pub(super) version: Option<String>,
    #[serde(borrow)]
    pub(super) runs: Option<Vec<&'a RawValue>>,
    #[serde(borrow, rename = "inlineExternalProperties")]
    pub(super) inline: Option<Vec<InlineExternalProperties<'a>>>,
}

/// An item of `inlineExternalProperties` in a log: properties of a run that are stored outside of
/// `runs` (SARIF 3.13.5).
#[derive(Deserialize)]
pub(super) struct InlineExternalProperties<'a> {
    pub(super) guid: Option<String>,
    #[serde(borrow)]
    pub(super) results: Option<Vec<&'a RawValue>>,
}

/// `externalPropertyFileReferences` of a run: references to properties outside of the run (SARIF
/// 3.14.2). Only `results` are read.
#[derive(Default, Deserialize)]
pub(super) struct ExternalReferences {
    pub(super) results: Option<Vec<ExternalReference>>,
    driver: Option<IgnoredAny>,
    extensions: Option<Vec<IgnoredAny>>,
    invocations: Option<Vec<IgnoredAny>>,
    artifacts: Option<Vec<IgnoredAny>>,
}

impl ExternalReferences {
    /// Returns the name of a referenced property on which findings depend and that is not read;
    /// `None` if there is none.
    pub(super) fn unread(&self) -> Option<&'static str> {
        let is_filled = |list: Option<&Vec<IgnoredAny>>| list.is_some_and(|list| !list.is_empty());
        let all = [
            ("driver", self.driver.is_some()),
            ("extensions", is_filled(self.extensions.as_ref())),
            ("invocations", is_filled(self.invocations.as_ref())),
            ("artifacts", is_filled(self.artifacts.as_ref())),
        ];
        all.into_iter().find(|(_, is_referenced)| *is_referenced).map(|(name, _)| name)
    }
}

#[derive(Deserialize)]
pub(super) struct ExternalReference {
    pub(super) guid: Option<String>,
}

/// A `run` of a tool in a SARIF log. Its `results` are parsed one by one.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Run<'a> {
    pub(super) tool: Option<Tool>,
    pub(super) automation_details: Option<AutomationDetails>,
    pub(super) invocations: Option<Vec<Invocation>>,
    pub(super) original_uri_base_ids: Option<BTreeMap<String, ArtifactLocation>>,
    pub(super) artifacts: Option<Vec<Artifact>>,
    pub(super) version_control_provenance: Option<Vec<VersionControl>>,
    #[serde(rename = "externalPropertyFileReferences")]
    pub(super) elsewhere: Option<ExternalReferences>,
    #[serde(borrow)]
    pub(super) results: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize)]
pub(super) struct Tool {
    pub(super) driver: Option<ToolComponent>,
    pub(super) extensions: Option<Vec<ToolComponent>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ToolComponent {
    pub(super) guid: Option<String>,
    pub(super) name: Option<String>,
    pub(super) version: Option<String>,
    pub(super) semantic_version: Option<String>,
    pub(super) rules: Option<Vec<Rule>>,
    pub(super) global_message_strings: Option<BTreeMap<String, MessageString>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Rule {
    pub(super) id: Option<String>,
    pub(super) guid: Option<String>,
    pub(super) name: Option<String>,
    pub(super) short_description: Option<MessageString>,
    pub(super) full_description: Option<MessageString>,
    pub(super) message_strings: Option<BTreeMap<String, MessageString>>,
    pub(super) default_configuration: Option<RuleConfiguration>,
    pub(super) relationships: Option<Vec<Relationship>>,
    #[serde(default)]
    pub(super) properties: Option<Map<String, Value>>,
}

#[derive(Deserialize)]
pub(super) struct MessageString {
    pub(super) text: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct RuleConfiguration {
    pub(super) level: Option<String>,
    #[serde(default)]
    enabled: Value,
}

impl RuleConfiguration {
    /// Whether the configuration enables the rule; true without `enabled` (SARIF 3.50.2).
    pub(super) fn is_enabled(&self) -> bool {
        self.enabled != Value::Bool(false)
    }
}

#[derive(Deserialize)]
pub(super) struct Relationship {
    pub(super) target: Option<DescriptorReference>,
}

/// A `reportingDescriptorReference` to a rule or a taxon (SARIF 3.52).
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DescriptorReference {
    pub(super) id: Option<String>,
    #[serde(default, deserialize_with = "whole")]
    pub(super) index: Option<i64>,
    pub(super) guid: Option<String>,
    pub(super) tool_component: Option<ComponentReference>,
}

#[derive(Deserialize)]
pub(super) struct ComponentReference {
    pub(super) name: Option<String>,
    #[serde(default, deserialize_with = "whole")]
    pub(super) index: Option<i64>,
    pub(super) guid: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct AutomationDetails {
    pub(super) id: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Invocation {
    pub(super) execution_successful: Option<bool>,
    #[serde(default, deserialize_with = "perhaps")]
    pub(super) working_directory: Option<ArtifactLocation>,
    pub(super) rule_configuration_overrides: Option<Vec<ConfigurationOverride>>,
}

#[derive(Deserialize)]
pub(super) struct ConfigurationOverride {
    pub(super) descriptor: Option<DescriptorReference>,
    pub(super) configuration: Option<RuleConfiguration>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct VersionControl {
    pub(super) revision_id: Option<String>,
    /// Folder in which the repository's root was checked out (SARIF 3.23.9).
    #[serde(default, deserialize_with = "perhaps")]
    pub(super) mapped_to: Option<ArtifactLocation>,
}

#[derive(Deserialize)]
pub(super) struct Artifact {
    pub(super) location: Option<ArtifactLocation>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ArtifactLocation {
    pub(super) uri: Option<String>,
    pub(super) uri_base_id: Option<String>,
    #[serde(default, deserialize_with = "whole")]
    pub(super) index: Option<i64>,
}

/// Members of a `result` by which results are grouped: references to the rule, and fingerprints.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ResultGroupingKey<'a> {
    pub(super) rule_id: Option<String>,
    pub(super) rule_index: Option<i64>,
    pub(super) rule: Option<DescriptorReference>,
    #[serde(borrow)]
    pub(super) fingerprints: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) partial_fingerprints: Option<BTreeMap<String, &'a RawValue>>,
}

/// A `result` of a run: one problem that a tool reported.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ResultObject {
    pub(super) rule_id: Option<String>,
    #[serde(default, deserialize_with = "whole")]
    pub(super) rule_index: Option<i64>,
    pub(super) rule: Option<DescriptorReference>,
    pub(super) provenance: Option<Provenance>,
    pub(super) kind: Option<String>,
    pub(super) level: Option<String>,
    pub(super) message: Option<Message>,
    pub(super) locations: Option<Vec<Location>>,
    pub(super) fingerprints: Option<BTreeMap<String, Value>>,
    pub(super) partial_fingerprints: Option<BTreeMap<String, Value>>,
    pub(super) suppressions: Option<Vec<Suppression>>,
    pub(super) baseline_state: Option<String>,
    pub(super) properties: Option<Map<String, Value>>,
}

/// `resultProvenance`: the invocation that produced a result.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Provenance {
    #[serde(default, deserialize_with = "whole")]
    pub(super) invocation_index: Option<i64>,
}

#[derive(Deserialize)]
pub(super) struct Message {
    pub(super) text: Option<String>,
    pub(super) markdown: Option<String>,
    pub(super) id: Option<String>,
    pub(super) arguments: Option<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Location {
    pub(super) physical_location: Option<PhysicalLocation>,
    pub(super) logical_locations: Option<Vec<LogicalLocation>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PhysicalLocation {
    pub(super) artifact_location: Option<ArtifactLocation>,
    pub(super) region: Option<Region>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct LogicalLocation {
    pub(super) name: Option<String>,
    pub(super) fully_qualified_name: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Region {
    #[serde(default, deserialize_with = "whole")]
    pub(super) start_line: Option<i64>,
    #[serde(default, deserialize_with = "whole")]
    pub(super) start_column: Option<i64>,
    #[serde(default, deserialize_with = "whole")]
    pub(super) end_line: Option<i64>,
    #[serde(default, deserialize_with = "whole")]
    pub(super) end_column: Option<i64>,
    pub(super) snippet: Option<MessageString>,
}

#[derive(Deserialize)]
pub(super) struct Suppression {
    pub(super) kind: Option<String>,
    pub(super) status: Option<String>,
    pub(super) justification: Option<String>,
}

/// Parses an artifact location that is optional for findings; `None` if it is invalid.
fn perhaps<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<ArtifactLocation>, D::Error> {
    Ok(serde_json::from_value(Value::deserialize(deserializer)?).ok())
}

/// Parses a whole number of a SARIF log, which JSON may write as `10.0` ("integer" in JSON Schema
/// draft 6 and later).
fn whole<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<i64>, D::Error> {
    let Some(number) = Option::<serde_json::Number>::deserialize(deserializer)? else {
        return Ok(None);
    };
    let float = || number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() < 1e15);
    #[expect(clippy::cast_possible_truncation, reason = "it is whole and small enough")]
    let whole = number.as_i64().or_else(|| float().map(|float| float as i64));
    whole.map(Some).ok_or_else(|| D::Error::custom(format!("{number} is not a whole number")))
}
