//! Resolves SARIF messages: a text, the id of a text of the rule, or a text in Markdown, with
//! arguments inserted.

use super::model::{Message, MessageString};
use super::rules::{FoundRule, RuleIndex};
use crate::text::clean;

/// Maximum size of a result's stored message, in bytes.
const MOST_BYTES: usize = 2000;
/// Size of a message in bytes from which no more arguments are inserted. It is larger than
/// [`MOST_BYTES`], because white space at the beginning is removed.
const MOST_FILLED_BYTES: usize = 20 * MOST_BYTES;

/// Returns the text of a SARIF result's `message`, with the arguments inserted; empty if there is
/// none.
pub(super) fn resolve(
    message: Option<&Message>,
    rules: &RuleIndex<'_>,
    rule: &FoundRule<'_>,
) -> String {
    let Some(message) = message else { return String::new() };
    let named = || rules.message(rule, message.id.as_deref()?);
    let text = message.text.as_deref().or_else(named).unwrap_or_default();
    filled(text, message)
}

/// Returns the `markdown` of a SARIF result's `message`, with the arguments inserted; empty if it
/// has none. Some scanners, such as typos, write no `text` with it.
pub(super) fn markdown(message: Option<&Message>) -> String {
    let markdown = message.and_then(|message| Some((message.markdown.as_deref()?, message)));
    markdown.map(|(text, message)| filled(text, message)).unwrap_or_default()
}

fn filled(text: &str, message: &Message) -> String {
    let arguments = message.arguments.as_deref().unwrap_or_default();
    clean(&fill(text, arguments), MOST_BYTES)
}

/// Returns the `text` of a `multiformatMessageString`, trimmed; `None` if it is empty.
pub(super) fn text(text: Option<&MessageString>) -> Option<&str> {
    text?.text.as_deref().map(str::trim).filter(|text| !text.is_empty())
}

/// Replaces `{0}`, `{1}`, … in a message by the arguments, and `{{` and `}}` by braces. Without
/// arguments, returns the text unchanged. Of a long text, the end may stay unchanged too.
fn fill(text: &str, arguments: &[String]) -> String {
    if arguments.is_empty() {
        return text.to_owned();
    }
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['{', '}']).filter(|_| filled.len() < MOST_FILLED_BYTES) {
        let (before, from) = rest.split_at(at);
        filled.push_str(before);
        if let Some((argument, after)) = placeholder(from, arguments) {
            filled.push_str(argument);
            rest = after;
        } else {
            let brace = &from[..1];
            filled.push_str(brace);
            rest = from[1..].strip_prefix(brace).unwrap_or(&from[1..]);
        }
    }
    filled.push_str(rest);
    filled
}

/// Parses a placeholder such as `{0}` at the beginning of a text. Returns the argument to insert
/// and the rest of the text; `None` if there is no placeholder.
fn placeholder<'a>(text: &'a str, arguments: &'a [String]) -> Option<(&'a str, &'a str)> {
    let text = text.strip_prefix('{')?;
    // Only digits are searched, since the closing brace of another text may be far away.
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, after) = text.split_at(digits);
    let argument = arguments.get(number.parse::<usize>().ok()?)?;
    Some((argument, after.strip_prefix('}')?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_put_in_and_doubled_braces_are_braces() {
        let arguments = ["x".to_owned(), "{0}".to_owned()];
        assert_eq!(fill("'{0}' is {{not}} {1}, {7}", &arguments), "'x' is {not} {0}, {7}");
        assert_eq!(fill("{", &arguments), "{");
        assert_eq!(fill("{ż}{0", &arguments), "{ż}{0");
        assert_eq!(fill("{0} {{", &[]), "{0} {{");
        assert_eq!(fill("{+0} {0 } {}", &arguments), "{+0} {0 } {}");
    }

    #[test]
    fn a_long_message_gets_no_more_arguments() {
        let filled = fill(&"{0}".repeat(100), &["x".repeat(1 << 20)]);
        assert!(filled.len() < 2 << 20, "{}", filled.len());
    }
}
