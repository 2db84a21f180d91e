//! The names by which a CODEOWNERS file calls owners.

/// What kind of name an owner's is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Identity<'a> {
    /// `@user`, or a GitLab group of that name.
    Name(&'a str),
    /// `@organisation/team`, or a GitLab group within another.
    Team(&'a str),
    /// `@@maintainer`: GitLab's role.
    Role(&'a str),
    Email(&'a str),
}

impl<'a> Identity<'a> {
    /// The owner that a word of a line names, if it names one.
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

/// GitLab nests groups at most 20 deep.
const MOST_LEVELS: usize = 21;

fn is_name(text: &str) -> bool {
    let letters = |letter: char| letter.is_alphanumeric() || "-_.".contains(letter);
    (1..=255).contains(&text.len()) && text.chars().all(letters)
}

/// An address without quoting or comments; more is never seen in these files.
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

/// What stands before the `@` of an address.
pub(crate) fn email_local_part(email: &str) -> Option<&str> {
    email.rsplit_once('@').map(|(local, _)| local)
}
