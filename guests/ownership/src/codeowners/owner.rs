//! Names of owners in a CODEOWNERS file.

/// Kind of an owner's name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Identity<'a> {
    /// `@user`, or a GitLab group with this name.
    Name(&'a str),
    /// `@organisation/team`, or a nested GitLab group.
    Team(&'a str),
    /// `@@maintainer`: a role in GitLab.
    Role(&'a str),
    Email(&'a str),
}

impl<'a> Identity<'a> {
    /// Parses a word as an owner.
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

/// Maximum nesting of GitLab groups is 20, plus the name itself.
const MOST_LEVELS: usize = 21;

fn is_name(text: &str) -> bool {
    let letters = |letter: char| letter.is_alphanumeric() || "-_.".contains(letter);
    (1..=255).contains(&text.len()) && text.chars().all(letters)
}

/// Whether a word is an e-mail address without quotes or comments.
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

/// Returns the part of an address before the `@`.
pub(crate) fn email_local_part(email: &str) -> Option<&str> {
    email.rsplit_once('@').map(|(local, _)| local)
}
