//! Collects the workspace's records for a question: counts of all kinds, and single records that an
//! answer can cite.

use std::collections::BTreeMap;

use area_sdk::prelude::*;
use area_sdk::text::ellipsize;
use area_sdk::{DocumentError, Scope, Value};
use area_shared::catalog::Repository;
use area_shared::counts::{Advisory, Deployment, Question, RemediationProgram, component_count};
use area_shared::evidence::EvidenceRecord;

use crate::records::{AdvisoryMatch, Audit, Component, Finding, Questionnaire};
use crate::redact::redact;

/// Maximum number of repositories whose names are searched for in the question.
const REPOSITORIES: u32 = 500;

/// Maximum number of findings that are collected for an answer.
const FINDINGS: u32 = 8;

/// Maximum number of components that are collected for an answer, once for names in the question
/// and once for advisories in the question.
const COMPONENTS: u32 = 8;

/// Maximum number of words of a question that are compared with names.
const WORDS: usize = 40;

/// Maximum number of questionnaires, and of audits, that are collected for an answer.
const LATEST: u32 = 3;

/// Number of evidence kinds of which the latest record is collected for an answer.
const KINDS: usize = 5;

/// Maximum length of the title or detail of a collected record, in characters.
const MOST_CHARACTERS: usize = 300;

/// Severities, worst first.
pub(crate) const SEVERITIES: [&str; 5] = ["critical", "high", "medium", "low", "none"];

/// Number of records by the value of a property, for example by severity.
pub(crate) type CountsByValue = BTreeMap<String, u64>;

/// Numbers of the workspace's records, by kind of record.
#[derive(Debug, Default, Serialize)]
pub(crate) struct RecordCounts {
    pub(crate) repositories: u64,
    /// Number of audits by state.
    pub(crate) audits: CountsByValue,
    /// Number of open findings by severity.
    pub(crate) open_findings: CountsByValue,
    pub(crate) components: u64,
    pub(crate) advisories: u64,
    pub(crate) deployments: u64,
    pub(crate) questionnaires: u64,
    /// Number of questions in questionnaires by status.
    pub(crate) questions: CountsByValue,
    /// Number of evidence records by kind.
    pub(crate) evidence: CountsByValue,
    pub(crate) remediation_programs: u64,
    /// Number of open findings by severity, for each repository that the question names.
    pub(crate) named_repositories: BTreeMap<String, CountsByValue>,
}

/// Kind of a record that an answer can cite.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CitableRecordKind {
    Audit,
    Component,
    Evidence,
    Finding,
    Questionnaire,
}

impl CitableRecordKind {
    fn letter(self) -> char {
        match self {
            Self::Audit => 'A',
            Self::Component => 'D',
            Self::Evidence => 'E',
            Self::Finding => 'F',
            Self::Questionnaire => 'Q',
        }
    }
}

/// A record of the workspace that an answer can cite.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct CitableRecord {
    /// Label in citations: a letter for the kind and a number, for example `F1`.
    pub(crate) label: String,
    pub(crate) kind: CitableRecordKind,
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) detail: String,
}

/// Records from which an answer is created: counts, and the records that it can cite.
#[derive(Debug, Default)]
pub(crate) struct CollectedRecords {
    pub(crate) facts: RecordCounts,
    pub(crate) sources: Vec<CitableRecord>,
}

/// Names of the workspace's repositories, by id.
type RepositoryNames = BTreeMap<String, String>;

type DocumentResult<T> = Result<T, DocumentError>;

impl CollectedRecords {
    fn add(&mut self, kind: CitableRecordKind, id: String, title: &str, detail: &str) {
        let number = 1 + self.sources.iter().filter(|source| source.kind == kind).count();
        let label = format!("{}{number}", kind.letter());
        let (title, detail) = (shortened(title), shortened(detail));
        self.sources.push(CitableRecord { label, kind, id, title, detail });
    }

    /// Returns the collected records of one kind.
    pub(crate) fn of(&self, kind: CitableRecordKind) -> impl Iterator<Item = &CitableRecord> {
        self.sources.iter().filter(move |source| source.kind == kind)
    }
}

/// Shortens a text to one line and replaces credentials in it.
fn shortened(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    ellipsize(&redact(&text), MOST_CHARACTERS)
}

/// Collects the workspace's records that help to answer a question.
pub(crate) fn collect(scope: &Scope, question: &str) -> DocumentResult<CollectedRecords> {
    let names = repository_names(scope)?;
    let named = named_in(question, &names);
    let mut known = CollectedRecords { facts: counts(scope)?, sources: Vec::new() };
    for id in &named {
        let name = names.get(id).cloned().unwrap_or_default();
        let counts = open_findings(scope, Some(id))?;
        known.facts.named_repositories.insert(name, counts);
    }
    add_findings(scope, &mut known, question, &named, &names)?;
    add_components(scope, &mut known, question, &names)?;
    add_audits(scope, &mut known, &named, &names)?;
    add_questionnaires(scope, &mut known)?;
    add_evidence(scope, &mut known)?;
    Ok(known)
}

fn count<T: Document>(scope: &Scope) -> DocumentResult<u64> {
    scope.documents::<T>().query().count()
}

fn count_by<T: Document>(scope: &Scope, field: &str) -> DocumentResult<CountsByValue> {
    Ok(counted(scope.documents::<T>().query().count_by(&[field])?))
}

fn counted(groups: Vec<(Vec<Value>, u64)>) -> CountsByValue {
    let named = groups.into_iter().filter_map(|(values, count)| match values.into_iter().next() {
        Some(Value::Text(value)) => Some((value, count)),
        _ => None,
    });
    named.collect()
}

fn counts(scope: &Scope) -> DocumentResult<RecordCounts> {
    Ok(RecordCounts {
        repositories: count::<Repository>(scope)?,
        audits: count_by::<Audit>(scope, "state")?,
        open_findings: open_findings(scope, None)?,
        components: component_count(scope)?,
        advisories: count::<Advisory>(scope)?,
        deployments: scope.documents::<Deployment>().query().equals("current", true).count()?,
        questionnaires: count::<Questionnaire>(scope)?,
        questions: count_by::<Question>(scope, "status")?,
        evidence: count_by::<EvidenceRecord>(scope, "kind")?,
        remediation_programs: count::<RemediationProgram>(scope)?,
        named_repositories: BTreeMap::new(),
    })
}

fn open_findings(scope: &Scope, repository: Option<&String>) -> DocumentResult<CountsByValue> {
    let open = scope.documents::<Finding>().query().equals("open", true);
    let open = open.equals_if("repository_id", repository);
    Ok(counted(open.count_by(&["risk_severity"])?))
}

/// Returns the names of repositories, by id.
fn repository_names(scope: &Scope) -> DocumentResult<RepositoryNames> {
    let all = scope.documents::<Repository>().query().limit(REPOSITORIES).list()?;
    Ok(all.into_iter().map(|repository| (repository.id, repository.value.name)).collect())
}

/// Returns the ids of repositories whose name is a word of the question.
fn named_in(question: &str, names: &RepositoryNames) -> Vec<String> {
    let question = question.to_lowercase();
    let part = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '/' | '.');
    let words: Vec<&str> = question
        .split(|c| !part(c))
        .map(|word| word.trim_end_matches('.'))
        .filter(|word| !word.is_empty())
        .collect();
    let named = names.iter().filter(|(_, name)| words.contains(&name.to_lowercase().as_str()));
    named.map(|(id, _)| id.clone()).take(LATEST as usize).collect()
}

/// Returns ids of rules and advisories in a question, such as CVE-2021-44228: words with a letter,
/// a digit and a dash.
fn identifiers(question: &str) -> Vec<String> {
    let part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/' | ':');
    let words = question.split(|c| !part(c)).map(|word| word.trim_end_matches(['.', ':']));
    let looks = |word: &&str| {
        word.contains(['-', '/', '_'])
            && word.contains(|c: char| c.is_ascii_digit())
            && word.contains(|c: char| c.is_ascii_alphabetic())
    };
    words.filter(looks).take(10).map(ToOwned::to_owned).collect()
}

/// Returns findings whose rule is named in the question.
fn findings_by_rule(scope: &Scope, question: &str) -> DocumentResult<Vec<Stored<Finding>>> {
    let mut rules = identifiers(question);
    rules.extend(identifiers(&question.to_uppercase()));
    if rules.is_empty() {
        return Ok(Vec::new());
    }
    scope.documents::<Finding>().query().one_of("rule_id", rules).limit(FINDINGS).list()
}

/// Returns the worst open findings of these repositories; of all repositories if none is given.
fn worst_findings(scope: &Scope, repositories: &[String]) -> DocumentResult<Vec<Stored<Finding>>> {
    let mut worst = Vec::new();
    let mut room = FINDINGS;
    for severity in SEVERITIES {
        let open = scope.documents::<Finding>().query().equals("open", true);
        let open = open.equals("risk_severity", severity);
        let open = match repositories {
            [] => open,
            some => open.one_of("repository_id", some),
        };
        let found = open.limit(room).list()?;
        room -= u32::try_from(found.len()).unwrap_or(room);
        worst.extend(found);
        if room == 0 {
            break;
        }
    }
    Ok(worst)
}

fn add_findings(
    scope: &Scope,
    known: &mut CollectedRecords,
    question: &str,
    named: &[String],
    names: &RepositoryNames,
) -> DocumentResult<()> {
    let mut findings = findings_by_rule(scope, question)?;
    if findings.is_empty() {
        findings = worst_findings(scope, named)?;
    }
    for finding in findings {
        let detail = format!(
            "{}, {}, rule {} of {}, repository {}",
            finding.risk_severity,
            finding.state,
            finding.rule_id,
            finding.tool,
            name_of(names, finding.repository_id)
        );
        known.add(CitableRecordKind::Finding, finding.id.clone(), &finding.title, &detail);
    }
    Ok(())
}

/// Adds components that the question names, and components affected by an advisory that it names.
fn add_components(
    scope: &Scope,
    known: &mut CollectedRecords,
    question: &str,
    names: &RepositoryNames,
) -> DocumentResult<()> {
    let keys: Vec<String> = identifiers(question).iter().map(|id| id.to_uppercase()).collect();
    if !keys.is_empty() {
        let affected = scope.documents::<AdvisoryMatch>().query().equals("latest", true);
        for found in affected.one_of("advisory_key", keys).limit(COMPONENTS).list()? {
            let place = place(names, found.ecosystem.as_deref(), found.repository_id);
            let detail = format!("affected by {}, {place}", found.advisory_key);
            let title = versioned(&found.name, found.value.version.as_deref());
            known.add(CitableRecordKind::Component, found.component_id.clone(), &title, &detail);
        }
    }
    let words = words(question);
    if !words.is_empty() {
        let named = scope.documents::<Component>().query().equals("latest", true);
        for found in named.one_of("name", words).limit(COMPONENTS).list()? {
            let detail = place(names, found.ecosystem.as_deref(), found.repository_id);
            let title = versioned(&found.name, found.value.version.as_deref());
            known.add(CitableRecordKind::Component, found.id.clone(), &title, &detail);
        }
    }
    Ok(())
}

fn versioned(name: &str, version: Option<&str>) -> String {
    version.map_or_else(|| name.to_owned(), |version| format!("{name} {version}"))
}

/// Describes where a component is used: ecosystem and repository.
fn place(names: &RepositoryNames, ecosystem: Option<&str>, repository: Option<Uuid>) -> String {
    let repository = name_of(names, repository);
    format!("{}, repository {repository}", ecosystem.unwrap_or("unknown ecosystem"))
}

/// Returns words of a question that can be package names.
fn words(question: &str) -> Vec<String> {
    let part = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '/' | '@' | ':');
    let words = question.split(|c| !part(c)).map(|word| word.trim_end_matches(['.', ':']));
    words.filter(|word| word.len() > 1).take(WORDS).map(ToOwned::to_owned).collect()
}

fn name_of(names: &RepositoryNames, repository: Option<Uuid>) -> String {
    let id = repository.map(|id| id.to_string()).unwrap_or_default();
    names.get(&id).cloned().unwrap_or(id)
}

fn add_audits(
    scope: &Scope,
    known: &mut CollectedRecords,
    named: &[String],
    names: &RepositoryNames,
) -> DocumentResult<()> {
    let completed = scope.documents::<Audit>().query().equals("state", "completed");
    let completed = match named {
        [] => completed,
        some => completed.one_of("repository_id", some),
    };
    for audit in completed.descending("started_at").limit(LATEST).list()? {
        let title = format!("Audit of {}", name_of(names, audit.repository_id));
        let commit = audit.commit_sha.as_deref().unwrap_or("no commit named");
        let at = audit.completed_at.unwrap_or(audit.updated_at);
        let detail = format!("completed {at}, {commit}");
        known.add(CitableRecordKind::Audit, audit.id.clone(), &title, &detail);
    }
    Ok(())
}

fn add_questionnaires(scope: &Scope, known: &mut CollectedRecords) -> DocumentResult<()> {
    let latest = scope.documents::<Questionnaire>().query().limit(LATEST).list()?;
    for questionnaire in latest {
        let detail = format!(
            "{} of {} answers approved",
            questionnaire.approved_count, questionnaire.question_count
        );
        let id = questionnaire.id.clone();
        known.add(CitableRecordKind::Questionnaire, id, &questionnaire.title, &detail);
    }
    Ok(())
}

/// Adds the latest record of each of some kinds of evidence.
fn add_evidence(scope: &Scope, known: &mut CollectedRecords) -> DocumentResult<()> {
    let kinds: Vec<String> = known.facts.evidence.keys().take(KINDS).cloned().collect();
    for kind in kinds {
        let records = scope.documents::<EvidenceRecord>().query().equals("kind", &kind);
        let Some(record) = records.descending("observed_at").first()? else { continue };
        let at = record.observed_at;
        let detail = format!("{}, about {}, observed {at}", record.kind, record.subject_key);
        known.add(CitableRecordKind::Evidence, record.id.clone(), &record.summary, &detail);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_names_rules_and_repositories() {
        let found =
            identifiers("Is CVE-2021-44228 (or GHSA-jfh8-c2jp-5v3q.) in java/sql-injection2?");
        assert_eq!(found, ["CVE-2021-44228", "GHSA-jfh8-c2jp-5v3q", "java/sql-injection2"]);
        assert!(identifiers("How well-known is it in 2026?").is_empty());
        assert_eq!(words("Is a @acme/ui 2.0, or lodash. used?")[1..4], ["@acme/ui", "2.0", "or"]);
        let names = ["shop", "shop-api", "Acme/Web"].map(|name| (name.to_owned(), name.to_owned()));
        let names = BTreeMap::from(names);
        assert_eq!(named_in("What about Shop-API and acme/web.", &names), ["Acme/Web", "shop-api"]);
        assert!(named_in("What about shops?", &names).is_empty());
    }

    #[test]
    fn titles_are_one_line_and_bounded() {
        assert_eq!(shortened(" a\n b "), "a b");
        assert_eq!(shortened(&"é".repeat(400)).chars().count(), MOST_CHARACTERS + 1);
    }
}
