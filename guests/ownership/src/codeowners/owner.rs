//! Names of owners in a CODEOWNERS file.

/// An owner as written in a CODEOWNERS file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum OwnerReference<'a> {
    /// The owner is written as `@user`, or is a top-level GitLab group.
    Name(&'a str),
    /// The owner is written as `@organisation/team`, or is a nested GitLab group.
    Team(&'a str),
    /// The owner is a role of GitLab, for example `@@maintainer`.
    Role(&'a str),
    Email(&'a str),
}

impl<'a> OwnerReference<'a> {
    /// Parses a word as an owner; `None` if the word is not one.
    pub(crate) fn read(word: &'a str) -> Option<Self> {
        if let Some(role) = word.strip_prefix("@@") {
            return is_name(role).then_some(Self::Role(role));
        }
        let Some(name) = word.strip_prefix('@') else {
            return is_email(word).then_some(Self::Email(word));
        };
        let mut parts = name.split('/');
        let good = parts.clone().count() <= MOST_LEVELS && parts.all(is_name);
        let kind = if name.contains('/') { Self::Team } else { Self::Name };
        good.then(|| kind(name))
    }
}

/// Maximum number of levels of a GitLab group's path: 20 nested groups and the name itself.
const MOST_LEVELS: usize = 21;

fn is_name(text: &str) -> bool {
    let letters = |letter: char| letter.is_alphanumeric() || "-_.".contains(letter);
    (1..=255).contains(&text.len()) && text.chars().all(letters)
}

/// Whether a word is an e-mail address without quoted parts or comments.
fn is_email(word: &str) -> bool {
    let Some((local, domain)) = word.rsplit_once('@') else { return false };
    let in_local =
        |letter: char| letter.is_alphanumeric() || "!#$%&'*+/=?^_`{|}~.-".contains(letter);
    let label = |label: &str| {
        !label.is_empty() && label.chars().all(|letter| letter.is_alphanumeric() || letter == '-')
    };
    word.len() <= 254
        && !local.is_empty()
        && local.chars().all(in_local)
        && domain.contains('.')
        && domain.split('.').all(label)
}

/// Returns the part of an e-mail address before the `@`.
pub(crate) fn email_local_part(email: &str) -> Option<&str> {
    email.rsplit_once('@').map(|(local, _)| local)
}
