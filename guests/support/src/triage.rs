//! Category and priority of a case, derived from its words.
//!
//! A rule is a list of words. It matches if one of them occurs in the subject or the description as
//! a whole word, ignoring case. The first matching rule decides, so a security report that mentions
//! an invoice is a security report.

use area_sdk::prelude::*;

/// Category of a support case.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Category {
    /// The case reports that unauthorized access is possible.
    Security,
    /// The case is a question about payments or invoices.
    Billing,
    /// The case is about a user who cannot sign in or lacks a permission.
    Access,
    /// The case is a problem with the integration of another service.
    Integration,
    /// The case has any other subject.
    General,
}

/// Priority of a support case.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Priority {
    /// The case is to be handled immediately.
    Urgent,
    /// The case is to be handled today.
    High,
    /// The case is to be handled in order of arrival.
    Normal,
    /// The case is to be handled after all others.
    Low,
}

/// Text for the OpenAPI document: the rules for category and priority.
pub(crate) const DESCRIPTION: &str = "\
Category and priority are derived from whole words of subject and description, case ignored; the \
first rule that holds decides.\n\n\
Category: `security` (security, vulnerability, breach, leak, leaked, exploit, phishing, cve, \
compromised, malware), `billing` (billing, invoice, invoices, payment, refund, subscription, \
charge, charged, vat), `access` (login, password, mfa, 2fa, sso, locked, permission, permissions, \
invitation, access, role), `integration` (webhook, webhooks, api, integration, github, gitlab, \
sarif, sbom, upload, connector, token), else `general`.\n\n\
Priority: `urgent` (urgent, emergency, outage, down, breach, compromised, critical), `high` \
(blocked, blocking, broken, locked, production, cannot, asap, or any case of category security), \
`low` (question, suggestion, feature, typo, cosmetic, feedback), else `normal`.";

const CATEGORIES: [(Category, &[&str]); 4] = [
    (
        Category::Security,
        &[
            "security",
            "vulnerability",
            "breach",
            "leak",
            "leaked",
            "exploit",
            "phishing",
            "cve",
            "compromised",
            "malware",
        ],
    ),
    (
        Category::Billing,
        &[
            "billing",
            "invoice",
            "invoices",
            "payment",
            "refund",
            "subscription",
            "charge",
            "charged",
            "vat",
        ],
    ),
    (
        Category::Access,
        &[
            "login",
            "password",
            "mfa",
            "2fa",
            "sso",
            "locked",
            "permission",
            "permissions",
            "invitation",
            "access",
            "role",
        ],
    ),
    (
        Category::Integration,
        &[
            "webhook",
            "webhooks",
            "api",
            "integration",
            "github",
            "gitlab",
            "sarif",
            "sbom",
            "upload",
            "connector",
            "token",
        ],
    ),
];

const PRIORITIES: [(Priority, &[&str]); 3] = [
    (
        Priority::Urgent,
        &["urgent", "emergency", "outage", "down", "breach", "compromised", "critical"],
    ),
    (Priority::High, &["blocked", "blocking", "broken", "locked", "production", "cannot", "asap"]),
    (Priority::Low, &["question", "suggestion", "feature", "typo", "cosmetic", "feedback"]),
];

/// Length of the longest word in the rules, in bytes; longer words of a case match no rule.
const LONGEST: usize = 16;

/// Returns a bit for each rule: whether a word of the rule occurs in the subject or description.
fn holding<K>(texts: [&str; 2], rules: &[(K, &[&str])]) -> u8 {
    let words = texts.into_iter().flat_map(|text| text.split(|c: char| !c.is_alphanumeric()));
    words.filter(|word| (1..=LONGEST).contains(&word.len())).fold(0, |held, word| {
        let holds = |(_, list): &(K, &[&str])| list.iter().any(|w| w.eq_ignore_ascii_case(word));
        (0..).zip(rules).fold(held, |held, (bit, rule)| held | u8::from(holds(rule)) << bit)
    })
}

/// Returns the category or priority of the first matching rule; `held` has a bit for each rule.
fn first<K: Copy>(held: u8, rules: &[(K, &[&str])]) -> Option<K> {
    rules.get(held.trailing_zeros() as usize).map(|(kind, _)| *kind)
}

/// Returns category and priority of a case with this subject and description.
#[must_use]
pub fn triage(subject: &str, description: &str) -> (Category, Priority) {
    let texts = [subject, description];
    let category = first(holding(texts, &CATEGORIES), &CATEGORIES).unwrap_or(Category::General);
    let priority = match first(holding(texts, &PRIORITIES), &PRIORITIES) {
        Some(Priority::Urgent) => Priority::Urgent,
        _ if category == Category::Security => Priority::High,
        Some(priority) => priority,
        None => Priority::Normal,
    };
    (category, priority)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_rule_that_holds_decides() {
        let cases = [
            ("Invoice", "of a leaked key", Category::Security, Priority::High),
            ("INVOICE wrong", "the VAT", Category::Billing, Priority::Normal),
            ("Cannot log in", "SSO says no", Category::Access, Priority::High),
            ("Webhook question", "which events?", Category::Integration, Priority::Low),
            ("Site is down", "the api too", Category::Integration, Priority::Urgent),
            ("Hello", "world", Category::General, Priority::Normal),
        ];
        for (subject, description, category, priority) in cases {
            assert_eq!(triage(subject, description), (category, priority), "{subject}");
        }
    }

    #[test]
    fn words_are_whole_words() {
        assert_eq!(triage("downtown", "rapid vats").0, Category::General);
        assert_eq!(triage("api-key", "it's fine").0, Category::Integration);
        assert_eq!(triage("", "ÜBERDOWN down-").1, Priority::Urgent);
    }

    #[test]
    fn the_documentation_names_every_word() {
        let lists =
            CATEGORIES.iter().map(|rule| rule.1).chain(PRIORITIES.iter().map(|rule| rule.1));
        for word in lists.flatten() {
            assert!(word.len() <= LONGEST && DESCRIPTION.contains(word), "{word}");
        }
    }
}
