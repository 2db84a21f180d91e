//! E-mail domains whose users sign in with a provider. A domain belongs to at most one provider of
//! a workspace, because the domain is the document's id.

use area_sdk::prelude::*;
use area_sdk::{DocumentError, Scope};

/// Maximum length of an e-mail domain, in characters: that of a document's id.
const MAX_DOMAIN: usize = 200;

/// Assignment of an e-mail domain to an identity provider; the document's id is the domain.
#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "StoredDomain")]
pub(crate) struct DomainAssignment {
    provider_id: Uuid,
}

document!(DomainAssignment, "domains");

/// Returns e-mail domains in lower case, sorted, without duplicates.
pub(crate) fn normalized(given: &[String]) -> Result<Vec<String>> {
    let mut domains = Vec::with_capacity(given.len());
    for (index, given) in given.iter().enumerate() {
        let domain = given.trim().to_ascii_lowercase();
        if !is_domain(&domain) {
            return Err(Problem::validation(
                format!("/domains/{index}"),
                format!("is not a domain name of at most {MAX_DOMAIN} characters"),
            )
            .hint("Write example.com; names beyond ASCII in their DNS form (xn--…)."));
        }
        domains.push(domain);
    }
    domains.sort_unstable();
    domains.dedup();
    Ok(domains)
}

/// Whether a text is a host name with at least two labels (RFC 1123).
fn is_domain(text: &str) -> bool {
    let letters = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(letters)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let last_is_a_name = text
        .rsplit('.')
        .next()
        .is_some_and(|last| last.starts_with(|first: char| first.is_ascii_lowercase()));
    text.len() <= MAX_DOMAIN && text.contains('.') && text.split('.').all(label) && last_is_a_name
}

/// Replaces the e-mail domains of an identity provider.
pub(crate) fn assign(
    scope: &Scope,
    provider_id: Uuid,
    had: &[String],
    domains: &[String],
) -> Result<()> {
    release(scope, had.iter().filter(|domain| !domains.contains(domain)))?;
    for domain in domains.iter().filter(|domain| !had.contains(domain)) {
        let taken = scope.documents::<DomainAssignment>().find(domain)?;
        let made = match taken {
            Some(_) => Err(DocumentError::AlreadyExists),
            None => scope.documents().create(domain, &DomainAssignment { provider_id }),
        };
        made.map_err(|error| match error {
            DocumentError::AlreadyExists => {
                let detail = format!("Another identity provider has the domain {domain}.");
                Problem::conflict("domain_taken", detail)
                    .hint("Remove it from that provider first.")
            }
            other => other.into(),
        })?;
    }
    Ok(())
}

/// Releases the e-mail domains of an identity provider.
pub(crate) fn release<'a>(
    scope: &Scope,
    domains: impl IntoIterator<Item = &'a String>,
) -> Result<()> {
    for domain in domains {
        if let Some(stored) = scope.documents::<DomainAssignment>().find(domain)? {
            scope.documents().delete(&stored)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn domains_are_names_in_lower_case_each_once() {
        let given = ["Example.COM", " b.example ", "example.com"].map(ToOwned::to_owned);
        assert_eq!(normalized(&given), Ok(vec!["b.example".to_owned(), "example.com".to_owned()]));
        let longest = format!("{}example.org", "a.".repeat(94));
        assert_eq!(normalized(std::slice::from_ref(&longest)), Ok(vec![longest]));
        for wrong in [
            "localhost",
            "",
            ".",
            "a..b",
            "-a.example",
            "a-.example",
            "a_b.example",
            "bücher.example",
            "127.0.0.1",
            "a@b.example",
            "https://a.example",
            "example.com.",
            &"a".repeat(64),
            &format!("{}aexample.org", "a.".repeat(95)),
        ] {
            let refused = normalized(&[wrong.to_owned()]).expect_err(wrong);
            assert_eq!(refused.violations[0].pointer, "/domains/0");
        }
    }
}
