//! SQL for declared fields and their comparisons. On both databases, nulls sort
//! first and text is compared by bytes.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::Backend;
use super::query::QueryError;
use super::scope::AccessibleCollection;
use super::sql::{Sql, SqlParameter};
use assurance_core::domain::document::{FieldTest, FieldValue, QueryCondition};
use assurance_core::domain::manifest::FieldKind;

/// Maximum length of the text in a substring condition, in characters.
const MAX_NEEDLE: usize = 1_000;
/// Maximum number of fields in one condition of a query.
const MAX_FIELDS: usize = 32;
/// Maximum number of values in one condition of a query.
pub(super) const MAX_VALUES: usize = 1_000;

/// A field that a collection declares.
#[derive(Clone, Copy, Debug)]
pub(super) struct DeclaredField<'a> {
    pub(super) name: &'a str,
    pub(super) kind: FieldKind,
}

impl AccessibleCollection {
    /// Returns the collection's declared field with this name; an error if
    /// there is none.
    pub(super) fn field(&self, name: &str) -> Result<DeclaredField<'_>, QueryError> {
        self.fields
            .get_key_value(name)
            .map(|(name, kind)| DeclaredField { name, kind: *kind })
            .ok_or_else(|| {
                QueryError::Misuse(format!("{} declares no field {name:?}", self.full_name))
            })
    }
}

impl DeclaredField<'_> {
    /// Returns the SQL expression of the field's value, the same as in indexes.
    pub(super) fn sql(self, backend: Backend) -> String {
        let name = self.name;
        match (backend, self.kind) {
            (Backend::Sqlite, _) => format!("(body->>'{name}')"),
            (Backend::Postgres, FieldKind::Text) => format!("(body->>'{name}') COLLATE \"C\""),
            (Backend::Postgres, FieldKind::Integer) => format!("((body->>'{name}')::bigint)"),
            (Backend::Postgres, FieldKind::Boolean) => format!("((body->>'{name}')::boolean)"),
        }
    }

    /// Converts a value to a parameter of this field's type; `None` for null.
    pub(super) fn arg(self, value: &FieldValue) -> Result<Option<SqlParameter>, QueryError> {
        match (self.kind, value) {
            (_, FieldValue::Null) => Ok(None),
            (FieldKind::Text, FieldValue::Text(text)) => Ok(Some(SqlParameter::Text(text.clone()))),
            (FieldKind::Integer, FieldValue::Integer(number)) => {
                Ok(Some(SqlParameter::Integer(*number)))
            }
            (FieldKind::Boolean, FieldValue::Boolean(truth)) => {
                Ok(Some(SqlParameter::Boolean(*truth)))
            }
            (kind, value) => Err(QueryError::Misuse(format!(
                "field {:?} holds {}, not {value:?}",
                self.name,
                kind_name(kind)
            ))),
        }
    }
}

fn kind_name(kind: FieldKind) -> &'static str {
    match kind {
        FieldKind::Text => "text",
        FieldKind::Integer => "an integer",
        FieldKind::Boolean => "a boolean",
    }
}

/// Appends ` AND (…)` for one condition of a query.
pub(super) fn push_condition(
    sql: &mut Sql,
    scope: &AccessibleCollection,
    folding: &str,
    condition: &QueryCondition,
) -> Result<(), QueryError> {
    if condition.fields.is_empty() || condition.fields.len() > MAX_FIELDS {
        return Err(QueryError::Misuse(format!("a condition names 1 to {MAX_FIELDS} fields")));
    }
    sql.push(" AND (");
    for (at, name) in condition.fields.iter().enumerate() {
        if at > 0 {
            sql.push(" OR ");
        }
        push_test(sql, scope.field(name)?, folding, &condition.test)?;
    }
    sql.push(")");
    Ok(())
}

fn push_test(
    sql: &mut Sql,
    field: DeclaredField<'_>,
    folding: &str,
    test: &FieldTest,
) -> Result<(), QueryError> {
    let name = field.sql(sql.backend);
    match test {
        FieldTest::Equals(value) => push_equals(sql, field, &name, value),
        FieldTest::OneOf(values) => push_one_of(sql, field, &name, values),
        FieldTest::Range(from, to) => push_range(sql, field, &name, from.as_ref(), to.as_ref()),
        FieldTest::Prefix(text) => push_prefix(sql, field, &name, text),
        FieldTest::Contains(text) => push_contains(sql, field, folding, text),
    }
}

fn push_equals(
    sql: &mut Sql,
    field: DeclaredField<'_>,
    name: &str,
    value: &FieldValue,
) -> Result<(), QueryError> {
    match field.arg(value)? {
        None => sql.push(name).push(" IS NULL"),
        Some(_) if has_nul(value) => sql.push("1 = 0"),
        Some(arg) => sql.push(name).push(" = ").bind(arg),
    };
    Ok(())
}

fn push_one_of(
    sql: &mut Sql,
    field: DeclaredField<'_>,
    name: &str,
    values: &[FieldValue],
) -> Result<(), QueryError> {
    if values.len() > MAX_VALUES {
        return Err(QueryError::Misuse(format!("one-of lists at most {MAX_VALUES} values")));
    }
    let (mut texts, mut integers, mut booleans, mut null) = (vec![], vec![], vec![], false);
    for value in values {
        match field.arg(value)? {
            None => null = true,
            Some(_) if has_nul(value) => {}
            Some(SqlParameter::Text(text)) => texts.push(text),
            Some(SqlParameter::Integer(number)) => integers.push(number),
            Some(SqlParameter::Boolean(truth)) => booleans.push(truth),
            Some(other) => unreachable!("{other:?} is not a field's value"),
        }
    }
    let list = match field.kind {
        FieldKind::Text => SqlParameter::Texts(texts),
        FieldKind::Integer => SqlParameter::Integers(integers),
        FieldKind::Boolean => SqlParameter::Booleans(booleans),
    };
    sql.push(name).push(" ").bind_any(list);
    if null {
        sql.push(" OR ").push(name).push(" IS NULL");
    }
    Ok(())
}

fn push_range(
    sql: &mut Sql,
    field: DeclaredField<'_>,
    name: &str,
    from: Option<&FieldValue>,
    to: Option<&FieldValue>,
) -> Result<(), QueryError> {
    // A null is in no range, not even in one without bounds.
    sql.push("(").push(name).push(" IS NOT NULL");
    for (operator, value) in from.map(|v| (" >= ", v)).into_iter().chain(to.map(|v| (" < ", v))) {
        let Some(arg) = field.arg(&without_nul(value))? else {
            return Err(QueryError::Misuse("a bound of a range must not be null".into()));
        };
        sql.push(" AND ").push(name).push(operator).bind(arg);
    }
    sql.push(")");
    Ok(())
}

fn push_prefix(
    sql: &mut Sql,
    field: DeclaredField<'_>,
    name: &str,
    text: &str,
) -> Result<(), QueryError> {
    only_text(field, "prefix")?;
    if text.contains('\0') {
        sql.push("1 = 0");
        return Ok(());
    }
    // A range comparison, because an index cannot answer LIKE in every locale.
    let from = FieldValue::Text(text.to_owned());
    let to = after_prefix(text).map(FieldValue::Text);
    push_range(sql, field, name, Some(&from), to.as_ref())
}

fn push_contains(
    sql: &mut Sql,
    field: DeclaredField<'_>,
    folding: &str,
    text: &str,
) -> Result<(), QueryError> {
    only_text(field, "contains")?;
    if text.chars().count() > MAX_NEEDLE {
        return Err(QueryError::Misuse(format!("contains takes at most {MAX_NEEDLE} characters")));
    }
    if text.contains('\0') {
        sql.push("1 = 0");
        return Ok(());
    }
    let name = field.name;
    match sql.backend {
        Backend::Sqlite => sql.push(&format!("(body->>'{name}') GLOB ")).bind(glob_pattern(text)),
        // Uses the plain expression, so that a pg_trgm index can answer it.
        Backend::Postgres => {
            sql.push(&format!("(body->>'{name}'){folding} ILIKE ")).bind(like_pattern(text))
        }
    };
    Ok(())
}

fn only_text(field: DeclaredField<'_>, test: &str) -> Result<(), QueryError> {
    if field.kind == FieldKind::Text {
        return Ok(());
    }
    let kind = kind_name(field.kind);
    Err(QueryError::Misuse(format!("{test} tests text; field {:?} holds {kind}", field.name)))
}

/// Returns whether the value contains U+0000. Stored text never does, so
/// nothing equals such a value.
fn has_nul(value: &FieldValue) -> bool {
    matches!(value, FieldValue::Text(text) if text.contains('\0'))
}

/// Replaces U+0000 in a bound of a range, because PostgreSQL does not accept it
/// even in parameters. Among texts without it, the range that begins at `ab\0…`
/// begins at `ab\u{1}`.
fn without_nul(value: &FieldValue) -> FieldValue {
    match value {
        FieldValue::Text(text) => FieldValue::Text(match text.split_once('\0') {
            Some((before, _)) => format!("{before}\u{1}"),
            None => text.clone(),
        }),
        other => other.clone(),
    }
}

/// Returns the smallest text greater than all texts with this prefix; `None` if
/// there is none.
fn after_prefix(prefix: &str) -> Option<String> {
    let mut chars: Vec<char> = prefix.chars().collect();
    while let Some(last) = chars.pop() {
        let next = match last {
            // The code point after U+D7FF is a surrogate, not a character.
            '\u{D7FF}' => Some('\u{E000}'),
            last => char::from_u32(u32::from(last) + 1),
        };
        if let Some(next) = next {
            chars.push(next);
            return Some(chars.into_iter().collect());
        }
    }
    None
}

/// Returns the `ILIKE` pattern that finds a substring. Wildcards in the text
/// are escaped by a backslash.
pub(super) fn like_pattern(text: &str) -> String {
    let mut pattern = String::from("%");
    for c in text.chars() {
        if matches!(c, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern + "%"
}

/// Returns the `GLOB` pattern that finds a substring. Each letter becomes the
/// set of its cases, because SQLite's `LIKE` and `lower` handle ASCII only.
fn glob_pattern(text: &str) -> String {
    let mut pattern = String::from("*");
    for c in text.chars() {
        let folded = fold(c);
        let others = CASES.get(&folded).map(Vec::as_slice).unwrap_or_default();
        if matches!(c, '*' | '?' | '[') || !others.is_empty() {
            pattern.push('[');
            pattern.push(folded);
            pattern.extend(others);
            pattern.push(']');
        } else {
            pattern.push(c);
        }
    }
    pattern + "*"
}

/// All letters that differ only in case from a folded letter, by the folded
/// letter.
static CASES: LazyLock<HashMap<char, Vec<char>>> = LazyLock::new(|| {
    let mut cases: HashMap<char, Vec<char>> = HashMap::new();
    // No letter after this range has cases.
    for c in ('\0'..='\u{1FFFF}').filter(|&c| fold(c) != c) {
        cases.entry(fold(c)).or_default().push(c);
    }
    cases
});

/// Returns the folded letter that is the same for all cases of `c`: Unicode's
/// simple case folding, which never turns one character into several.
fn fold(c: char) -> char {
    // Its capital is `I`, but the dot distinguishes it from `i`.
    if c == 'ı' {
        return c;
    }
    let upper = single(c, c.to_uppercase());
    single(upper, upper.to_lowercase())
}

/// Returns the result of a case conversion of `c`, or `c` itself if that would
/// be several characters.
fn single(c: char, mut cased: impl ExactSizeIterator<Item = char>) -> char {
    if cased.len() == 1 { cased.next().unwrap_or(c) } else { c }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn patterns_hold_no_wildcard_of_the_text() {
        assert_eq!(like_pattern(r"50%_\"), r"%50\%\_\\%");
        assert_eq!(glob_pattern("a*É?[]^"), "*[aA][*][éÉ][?][[]]^*");
    }

    #[test]
    fn every_case_of_a_letter_is_found() {
        for cases in ["σςΣ", "ßẞ", "kK\u{212A}", "ǆǅǄ", "µμΜ", "sſS"] {
            for c in cases.chars() {
                let pattern = glob_pattern(&c.to_string());
                assert!(cases.chars().all(|case| pattern.contains(case)), "{c}: {pattern}");
                assert_eq!(pattern.chars().count(), cases.chars().count() + 4, "{c}: {pattern}");
            }
        }
        assert_eq!(glob_pattern("iıİ"), "*[iI]ıİ*");
    }

    #[test]
    fn the_last_character_has_no_successor() {
        assert_eq!(after_prefix("a\u{10FFFF}").as_deref(), Some("b"));
        assert_eq!(after_prefix("\u{10FFFF}"), None);
        assert_eq!(after_prefix("\u{D7FF}").as_deref(), Some("\u{E000}"));
    }

    proptest! {
        #[test]
        fn a_prefix_is_a_range(prefix in ".{0,3}", text in ".{0,5}") {
            let in_range = text.as_str() >= prefix.as_str()
                && after_prefix(&prefix).is_none_or(|end| text < end);
            prop_assert_eq!(in_range, text.starts_with(&prefix));
            let longer = format!("{prefix}{text}");
            prop_assert!(after_prefix(&prefix).is_none_or(|end| longer < end));
        }
    }
}
