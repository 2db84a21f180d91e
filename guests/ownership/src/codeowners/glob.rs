//! Matches paths with globs by characters, as git hosts do. The crates for globs compare bytes
//! (`fast-glob`, `globset`) or take exponential time (`glob`).
//!
//! Backtracks at most to the last `*` of a name and to the last `**`. The time of a match grows
//! with the size of the glob times the size of the path.

use std::str::Chars;

/// Whether a path matches a glob. A segment `**` matches any number of folders; as the last
/// segment, it matches everything in a folder. `*` and `?` match within a name.
pub(super) fn path_matches(glob: &str, path: &str) -> bool {
    let (mut globs, mut names) = (glob.split('/'), path.split('/'));
    // Segments after the last `**`, and the names from which they are matched.
    let mut retry = None;
    loop {
        let segment = globs.next();
        if segment == Some("**") {
            if globs.clone().next().is_none() {
                return names.next().is_some();
            }
            retry = Some((globs.clone(), names.clone()));
            continue;
        }
        match (segment, names.next()) {
            (None, None) => return true,
            (Some(_), None) => return false,
            (Some(segment), Some(name)) if name_matches(segment, name) => {}
            _ => {
                let Some((after, from)) = &mut retry else { return false };
                from.next();
                (globs, names) = (after.clone(), from.clone());
            }
        }
    }
}

/// Whether a name matches a segment of a glob.
fn name_matches(mut glob: &str, mut name: &str) -> bool {
    // The glob after the last `*`, and the text from which it is matched.
    let mut retry = None;
    loop {
        if let Some(after) = glob.strip_prefix('*') {
            if after.is_empty() {
                return true;
            }
            glob = after;
            retry = Some((after, name));
        } else if glob.is_empty() && name.is_empty() {
            return true;
        } else if let Some(rest) = rest_after_match(glob, name) {
            (glob, name) = rest;
        } else {
            let Some((after, from)) = retry else { return false };
            let mut letters = from.chars();
            if letters.next().is_none() {
                return false;
            }
            (glob, name) = (after, letters.as_str());
            retry = Some((glob, name));
        }
    }
}

/// Matches the first character of a name. Returns the rest of the glob and of the name; `None` if
/// the character does not match.
fn rest_after_match<'g, 'n>(glob: &'g str, name: &'n str) -> Option<(&'g str, &'n str)> {
    let (mut glob, mut letters) = (glob.chars(), name.chars());
    let letter = letters.next()?;
    let matched = match glob.next()? {
        '?' => true,
        '[' => class_contains(&mut glob, letter),
        '\\' => glob.next() == Some(letter),
        literal => literal == letter,
    };
    matched.then_some((glob.as_str(), letters.as_str()))
}

/// Whether a bracket expression contains a letter. `glob` begins after the `[`, and is left after
/// the `]`.
fn class_contains(glob: &mut Chars<'_>, letter: char) -> bool {
    let negated = glob.as_str().starts_with('!');
    if negated {
        glob.next();
    }
    let mut found = false;
    while let Some(first) = class_member(glob) {
        let mut last = first;
        let mut ahead = glob.clone();
        if ahead.next() == Some('-')
            && let Some(member) = class_member(&mut ahead)
        {
            last = member;
            *glob = ahead;
        }
        found |= (first..=last).contains(&letter);
    }
    found != negated
}

/// Returns the next character of a bracket expression; `None` at its end.
fn class_member(glob: &mut Chars<'_>) -> Option<char> {
    match glob.next()? {
        ']' => None,
        '\\' => glob.next(),
        letter => Some(letter),
    }
}
