//! Parses lines of a CODEOWNERS file into rules.

use std::collections::HashMap;
use std::rc::Rc;

use area_sdk::text::truncate_chars;

use super::{Codeowners, Dialect, OwnerReference, Pattern, Rule, Section, Warning};
use crate::codeowners::pattern::MOST_PATTERN_BYTES;

/// Maximum size of a CODEOWNERS file in bytes, the limit of GitHub.
pub(crate) const MOST_BYTES: u64 = 3 * 1024 * 1024;

/// Maximum number of rules in a file; the largest public files have a tenth of this number.
const MOST_RULES: usize = 20_000;

/// Maximum number of sections in a file.
const MOST_SECTIONS: usize = 1_000;

/// Maximum number of owners of a rule or a heading.
const MOST_OWNERS: usize = 500;

/// Maximum number of warnings that parsing a CODEOWNERS file returns.
const MOST_WARNINGS: usize = 500;

/// Reason why a CODEOWNERS file cannot be parsed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ParseError {
    /// The CODEOWNERS file is not UTF-8.
    NotText,
    /// The CODEOWNERS file has more than 20,000 rules.
    TooManyRules,
    /// The CODEOWNERS file has more than 1,000 sections.
    TooManySections,
}

impl ParseError {
    /// Returns the error code, and an instruction to fix the file.
    pub(crate) fn code_and_fix(self) -> (&'static str, &'static str) {
        match self {
            Self::NotText => ("not_utf8", "The file is not UTF-8; save it as UTF-8."),
            Self::TooManyRules => {
                ("too_many_rules", "The file has more than 20,000 rules; join some of them.")
            }
            Self::TooManySections => {
                ("too_many_sections", "The file has more than 1,000 sections; join some of them.")
            }
        }
    }
}

/// Parses a CODEOWNERS file. Without a given dialect, a file with sections or exclusions of GitLab
/// is parsed in GitLab's dialect, any other in GitHub's.
pub(crate) fn parse(content: &[u8], dialect: Option<Dialect>) -> Result<Codeowners, ParseError> {
    let text = std::str::from_utf8(content).map_err(|_| ParseError::NotText)?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut parser = Parser::new(dialect.unwrap_or_else(|| sniff(text)));
    for (line, number) in text.lines().zip(1..) {
        parser.line = number;
        parser.read(line.trim());
        if parser.rules > MOST_RULES {
            return Err(ParseError::TooManyRules);
        }
        if parser.file.sections.len() > MOST_SECTIONS {
            return Err(ParseError::TooManySections);
        }
    }
    Ok(parser.file)
}

fn sniff(text: &str) -> Dialect {
    let mut lines = text.lines().map(str::trim);
    let gitlab =
        |line: &str| line.starts_with('!') || heading(line).is_some() || line.contains(" @@");
    if lines.any(gitlab) { Dialect::Gitlab } else { Dialect::Github }
}

struct Parser {
    file: Codeowners,
    /// Index in `sections` of the section to which the next rule belongs.
    section: usize,
    default_owners: Rc<[String]>,
    /// Indexes of the sections in `sections`, by lower-case name.
    by_name: HashMap<String, usize>,
    line: u32,
    rules: usize,
}

impl Parser {
    fn new(dialect: Dialect) -> Self {
        let sections = vec![Section::default()];
        let file = Codeowners { dialect, sections, warnings: Vec::new() };
        let (default_owners, by_name) = (Rc::default(), HashMap::new());
        Self { file, section: 0, default_owners, by_name, line: 0, rules: 0 }
    }

    fn warn(&mut self, message: impl Into<String>) {
        if self.file.warnings.len() < MOST_WARNINGS {
            let warning = Warning { line: self.line, message: message.into() };
            self.file.warnings.push(warning);
        }
    }

    fn read(&mut self, line: &str) {
        if line.is_empty() || line.starts_with('#') {
            return;
        }
        if line.starts_with("@@@") {
            self.warn("read as a rule: groups of Bitbucket (`@@@`) are not supported");
        }
        match self.file.dialect {
            Dialect::Github => self.read_github(line),
            Dialect::Gitlab => self.read_gitlab(line),
        }
    }

    fn read_github(&mut self, line: &str) {
        if line.starts_with('!') {
            return self.warn("skipped: GitHub has no exclusions");
        }
        if line.starts_with("\\#") {
            return self.warn("skipped: GitHub has no patterns that begin with #");
        }
        if heading(line).is_some() {
            return self.warn("skipped: GitHub has no sections");
        }
        let (pattern, rest) = split_pattern(line);
        let words = rest.split_whitespace().take_while(|word| !word.starts_with('#'));
        let owners: Vec<&str> = words.collect();
        let is_owner = |word: &str| {
            !matches!(OwnerReference::read(word), None | Some(OwnerReference::Role(_)))
        };
        if let Some(word) = owners.iter().find(|word| !is_owner(word)) {
            return self.warn(format!("skipped: {} is not an owner", shown(word)));
        }
        if owners.len() > MOST_OWNERS {
            return self.warn("skipped: a rule has at most 500 owners");
        }
        if pattern.contains('[') {
            self.warn("GitHub has no character ranges: [ and ] are ordinary characters");
        }
        let owners = owners.into_iter().map(ToOwned::to_owned).collect();
        self.add(pattern, owners, false);
    }

    fn read_gitlab(&mut self, line: &str) {
        if let Some(heading) = lenient_heading(line) {
            return self.begin_section(&heading);
        }
        if line.starts_with('[') || line.starts_with("^[") {
            self.warn("not a section heading: read as a rule");
        }
        let (line, exclusion) = match line.strip_prefix('!') {
            Some(line) => (line, true),
            None => (line, false),
        };
        let (pattern, rest) = split_pattern(line);
        if exclusion {
            if !rest.trim().is_empty() {
                self.warn("an exclusion has no owners: they are ignored");
            }
            return self.add(pattern, Rc::default(), true);
        }
        // A comment or malformed owners after the pattern replace the default owners too.
        let owners = match rest.trim() {
            "" => Rc::clone(&self.default_owners),
            words => self.gitlab_owners(words),
        };
        // The pound sign is escaped only where the line would be a comment.
        let pattern =
            pattern.strip_prefix('\\').filter(|rest| rest.starts_with('#')).unwrap_or(pattern);
        self.add(pattern, owners, false);
    }

    /// Returns the owners among the words of a line in GitLab's dialect, and warns about other
    /// words outside comments.
    fn gitlab_owners(&mut self, words: &str) -> Rc<[String]> {
        let (mut owners, mut commented) = (Vec::new(), false);
        for word in words.split_whitespace() {
            commented |= word.starts_with('#');
            if OwnerReference::read(word).is_some() {
                owners.push(word.to_owned());
            } else if !commented {
                self.warn(format!("{} is not an owner: it is skipped", shown(word)));
            }
        }
        if commented {
            self.warn("GitLab has no comments after a rule: owners in the comment count");
        }
        if owners.len() > MOST_OWNERS {
            self.warn("a rule has at most 500 owners: further ones are ignored");
            owners.truncate(MOST_OWNERS);
        }
        owners.into()
    }

    fn begin_section(&mut self, heading: &SectionHeading<'_>) {
        let (owners, beyond) = split_comment(heading.rest);
        if !owners.is_empty() && !owners.starts_with(char::is_whitespace) || is_unread(beyond) {
            self.warn("read as a section heading, as GitLab does");
        }
        self.default_owners = self.gitlab_owners(owners);
        let zero = |count: &str| count.trim().parse::<u32>().is_ok_and(|count| count == 0);
        if heading.approvals.is_some_and(zero) {
            self.warn("a section requires at least one approval: 1 is assumed");
        }
        self.section = match self.by_name.get(&heading.name.to_lowercase()) {
            Some(&known) => {
                self.file.sections[known].optional &= heading.optional;
                known
            }
            None => self.new_section(heading),
        };
    }

    fn new_section(&mut self, heading: &SectionHeading<'_>) -> usize {
        let index = self.file.sections.len();
        self.by_name.insert(heading.name.to_lowercase(), index);
        let optional = heading.optional;
        self.file.sections.push(Section { optional, ..Section::default() });
        index
    }

    fn add(&mut self, text: &str, owners: Rc<[String]>, exclusion: bool) {
        if text.is_empty() || text.len() > MOST_PATTERN_BYTES {
            return self.warn("skipped: a pattern has 1 to 1,024 bytes");
        }
        let pattern = Pattern::compile(text, self.file.dialect);
        let rule = Rule { line: self.line, text: text.to_owned(), pattern, owners };
        let section = &mut self.file.sections[self.section];
        if exclusion { &mut section.exclusions } else { &mut section.rules }.push(rule);
        self.rules += 1;
    }
}

/// Returns the first characters of a word, for a message.
fn shown(word: &str) -> String {
    format!("`{}`", truncate_chars(word, 60))
}

/// Splits a line at the first white space that is not escaped.
fn split_pattern(line: &str) -> (&str, &str) {
    let mut escaped = false;
    let end = line.find(|letter: char| {
        let ends = letter.is_whitespace() && !escaped;
        escaped = letter == '\\' && !escaped;
        ends
    });
    line.split_at(end.unwrap_or(line.len()))
}

struct SectionHeading<'a> {
    optional: bool,
    name: &'a str,
    /// Number of required approvals, as written in the second pair of brackets.
    approvals: Option<&'a str>,
    /// Text after the brackets of a section heading: owners, and text that may be a comment.
    rest: &'a str,
}

/// Parses a section heading `^[Name][2] @owner # why`; `None` for any other line.
fn heading(line: &str) -> Option<SectionHeading<'_>> {
    let heading = lenient_heading(line)?;
    let (owners, _) = split_comment(heading.rest);
    let good = (heading.rest.is_empty() || heading.rest.starts_with(char::is_whitespace))
        && owners.split_whitespace().all(|word| OwnerReference::read(word).is_some());
    good.then_some(heading)
}

/// Parses a section heading as GitLab does, with any text after the brackets.
fn lenient_heading(line: &str) -> Option<SectionHeading<'_>> {
    let (line, optional) = match line.strip_prefix('^') {
        Some(line) => (line, true),
        None => (line, false),
    };
    let (name, rest) = line.strip_prefix('[')?.split_once(']')?;
    let count = |text: &str| text.chars().all(|c| c.is_ascii_digit() || c.is_whitespace());
    let approvals = rest.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    let (approvals, rest) = match approvals.filter(|(approvals, _)| count(approvals)) {
        Some((approvals, rest)) => (Some(approvals), rest),
        None => (None, rest),
    };
    let good = !name.trim().is_empty() && !name.contains('[') && !rest.starts_with('[');
    good.then(|| SectionHeading { optional, name: name.trim(), approvals, rest })
}

/// Whether text other than a comment follows the owners of a section heading.
fn is_unread(beyond: &str) -> bool {
    !beyond.is_empty() && !beyond.starts_with('#')
}

/// Splits the text after the brackets of a section heading into owners and comment.
fn split_comment(rest: &str) -> (&str, &str) {
    let in_owners = |c: char| c.is_alphanumeric() || c.is_whitespace() || "@_.-/+".contains(c);
    rest.split_at(rest.find(|c| !in_owners(c)).unwrap_or(rest.len()))
}
