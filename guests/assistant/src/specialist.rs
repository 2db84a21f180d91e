//! Answers from the workspace's records without a model. It counts and lists records and adds no
//! other claims.

use crate::facts::{CitableRecord, CitableRecordKind, CollectedRecords, CountsByValue, SEVERITIES};

/// First sentence of every answer without a model.
pub(crate) const NOTICE: &str = "No model endpoint is ready, so this answer comes from the \
                                 workspace's own records, without a language model.";

/// A topic of the workspace's records that a question can be about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum QuestionTopic {
    Findings,
    Dependencies,
    Questionnaires,
    Evidence,
    Audits,
}

/// Every topic with prefixes of words that indicate it, separated by spaces.
const TOPICS: [(QuestionTopic, &str); 5] = [
    (
        QuestionTopic::Findings,
        "finding vulnerab severit critical risk issue secur cve ghsa remediat fix weakness \
         schwachstelle risik befund faille",
    ),
    (
        QuestionTopic::Dependencies,
        "dependenc component package librar sbom advisor deploy version abhängigkeit paket \
         dépendance",
    ),
    (
        QuestionTopic::Questionnaires,
        "questionnaire question answer approv fragebogen frage réponse",
    ),
    (QuestionTopic::Evidence, "evidence proof record envelope attest nachweis preuve"),
    (QuestionTopic::Audits, "audit scan repositor commit branch when prüfung"),
];

/// Returns the topics of a question; all topics if no word indicates one.
fn topics(question: &str) -> Vec<QuestionTopic> {
    let question = question.to_lowercase();
    let words: Vec<&str> = question.split(|c: char| !c.is_alphanumeric()).collect();
    let said = |begins: &str| {
        begins.split(' ').any(|begin| words.iter().any(|word| word.starts_with(begin)))
    };
    let asked = TOPICS.iter().filter(|(_, begins)| said(begins));
    let asked: Vec<QuestionTopic> = asked.map(|(topic, _)| *topic).collect();
    if asked.is_empty() { TOPICS.iter().map(|(topic, _)| *topic).collect() } else { asked }
}

/// Returns the topics that the answer covers: those of the question, and dependencies if the
/// question names one.
fn about(question: &str, known: &CollectedRecords) -> Vec<QuestionTopic> {
    let mut topics = topics(question);
    let named = known.of(CitableRecordKind::Component).next().is_some();
    if named && !topics.contains(&QuestionTopic::Dependencies) {
        topics.push(QuestionTopic::Dependencies);
    }
    topics
}

/// Returns the answer to a question, created from the collected records without a model.
pub(crate) fn answer(question: &str, known: &CollectedRecords) -> String {
    let mut parts = vec![NOTICE.to_owned()];
    for topic in about(question, known) {
        parts.push(match topic {
            QuestionTopic::Findings => findings(known),
            QuestionTopic::Dependencies => dependencies(known),
            QuestionTopic::Questionnaires => questionnaires(known),
            QuestionTopic::Evidence => evidence(known),
            QuestionTopic::Audits => audits(known),
        });
    }
    parts.join("\n\n")
}

/// Formats a count with its noun: "1 finding", "2 findings", "no findings".
fn number(count: u64, one: &str, many: &str) -> String {
    match count {
        0 => format!("no {many}"),
        1 => format!("1 {one}"),
        _ => format!("{count} {many}"),
    }
}

/// Formats counts by severity: "3 critical, 1 high".
fn severities(counts: &CountsByValue) -> String {
    let known = SEVERITIES.iter().filter_map(|&name| Some((name, *counts.get(name)?)));
    let others = counts.iter().filter(|(name, _)| !SEVERITIES.contains(&name.as_str()));
    let all = known.chain(others.map(|(name, count)| (name.as_str(), *count)));
    all.map(|(name, count)| format!("{count} {name}")).collect::<Vec<_>>().join(", ")
}

/// Formats counts by kind: "3 finding, 1 sbom".
fn listed(counts: &CountsByValue) -> String {
    counts.iter().map(|(name, count)| format!("{count} {name}")).collect::<Vec<_>>().join(", ")
}

/// Formats records as a list, one on each line.
fn lines<'a>(sources: impl Iterator<Item = &'a CitableRecord>) -> String {
    sources.map(|s| format!("\n- [{}] {}: {}", s.label, s.title, s.detail)).collect()
}

/// Formats the sum of counts with its noun, and the given parts: "5 audits (4 completed, 1
/// failed)".
fn sum(counts: &CountsByValue, one: &str, many: &str, parts: &str) -> String {
    let total: u64 = counts.values().sum();
    let number = number(total, one, many);
    if total == 0 { number } else { format!("{number} ({parts})") }
}

/// Formats the number of open findings: "6 open (2 critical, 4 low)", "none open".
fn open(counts: &CountsByValue) -> String {
    match counts.values().sum::<u64>() {
        0 => "none open".to_owned(),
        total => format!("{total} open ({})", severities(counts)),
    }
}

fn findings(known: &CollectedRecords) -> String {
    let mut text = format!("Findings: {}.", open(&known.facts.open_findings));
    for (name, counts) in &known.facts.named_repositories {
        text += &format!(" In {name}: {}.", open(counts));
    }
    let programs = known.facts.remediation_programs;
    let programs = number(programs, "remediation program", "remediation programs");
    text + &format!(" Against them: {programs}.") + &lines(known.of(CitableRecordKind::Finding))
}

fn dependencies(known: &CollectedRecords) -> String {
    let facts = &known.facts;
    format!(
        "Dependencies: the inventory has {}, {} and {}.{}",
        number(facts.components, "component", "components"),
        number(facts.advisories, "advisory", "advisories"),
        number(facts.deployments, "deployment", "deployments"),
        lines(known.of(CitableRecordKind::Component))
    )
}

fn questionnaires(known: &CollectedRecords) -> String {
    let questions = &known.facts.questions;
    format!(
        "Questionnaires: {} with {}.{}",
        number(known.facts.questionnaires, "questionnaire", "questionnaires"),
        sum(questions, "question", "questions", &listed(questions)),
        lines(known.of(CitableRecordKind::Questionnaire))
    )
}

fn evidence(known: &CollectedRecords) -> String {
    let kinds = &known.facts.evidence;
    format!(
        "Evidence: {}.{}",
        sum(kinds, "record", "records", &listed(kinds)),
        lines(known.of(CitableRecordKind::Evidence))
    )
}

fn audits(known: &CollectedRecords) -> String {
    let states = &known.facts.audits;
    format!(
        "Audits: {} of {}.{}",
        sum(states, "audit", "audits", &listed(states)),
        number(known.facts.repositories, "repository", "repositories"),
        lines(known.of(CitableRecordKind::Audit))
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_tell_the_topic_and_none_means_all() {
        assert_eq!(topics("How many CVEs?"), [QuestionTopic::Findings]);
        assert_eq!(
            topics("Which packages did the last scan see?"),
            [QuestionTopic::Dependencies, QuestionTopic::Audits]
        );
        assert_eq!(topics("Hello!").len(), TOPICS.len());
    }

    #[test]
    fn an_empty_workspace_is_said_to_be_empty() {
        let text = answer("Hello!", &CollectedRecords::default());
        for said in [
            NOTICE,
            "Findings: none open.",
            "no components, no advisories and no deployments",
            "no questionnaires with no questions",
            "no records",
            "no audits of no repositories",
        ] {
            assert!(text.contains(said), "{text}");
        }
    }

    #[test]
    fn counts_are_told_worst_first() {
        let counts = |pairs: &[(&str, u64)]| {
            pairs
                .iter()
                .map(|(name, count)| ((*name).to_owned(), *count))
                .collect::<CountsByValue>()
        };
        let mut known = CollectedRecords::default();
        known.facts.open_findings = counts(&[("low", 1), ("critical", 2), ("odd", 3)]);
        known.facts.named_repositories.insert("shop".to_owned(), counts(&[("low", 1)]));
        let text = findings(&known);
        assert!(text.contains("Findings: 6 open (2 critical, 1 low, 3 odd)."), "{text}");
        assert!(text.contains("In shop: 1 open (1 low)."), "{text}");
    }
}
