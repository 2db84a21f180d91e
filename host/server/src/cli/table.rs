//! Tables for people at a terminal. Programs use `--json`.

use comfy_table::{Table, presets};
use serde_json::Value as Json;

use super::output;

/// Length of a shown digest, in characters.
const DIGEST: usize = 12;
/// Length of a shown time, in characters; precise to the minute.
const MINUTE: usize = "2026-11-24T14:05".len();
/// Text of a table cell without a value.
pub(super) const NONE: &str = "-";

/// Prints rows under their headings; only the headings if there are no rows.
pub(super) fn print(headings: &[&str], rows: Vec<Vec<String>>) {
    output::line(render(headings, rows));
}

fn render(headings: &[&str], rows: Vec<Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(headings.to_vec());
    for row in rows {
        table.add_row(row.iter().map(|cell| plain(cell)).collect::<Vec<_>>());
    }
    table.column_iter_mut().for_each(|column| {
        column.set_padding((0, 2));
    });
    table.trim_fmt()
}

/// Returns the text of a cell in one line without control characters, because
/// it may come from other people.
fn plain(cell: &str) -> String {
    cell.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// Returns the first characters of a digest; `-` without a digest.
pub(super) fn digest(digest: &Json) -> String {
    digest.as_str().map_or(NONE, |digest| digest.get(..DIGEST).unwrap_or(digest)).to_owned()
}

/// Formats a time in UTC, precise to the minute; `-` without a time.
pub(super) fn minute(time: &Json) -> String {
    let shown = |time: &str| time.get(..MINUTE).map(|minute| minute.replace('T', " "));
    time.as_str().and_then(shown).unwrap_or_else(|| NONE.to_owned())
}

/// Formats a JSON string or number; `-` for null or an empty string.
pub(super) fn text(value: &Json) -> String {
    match value {
        Json::Null => NONE.to_owned(),
        Json::String(text) if text.is_empty() => NONE.to_owned(),
        Json::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Returns the items of a JSON array; an empty slice for other values.
pub(super) fn items(list: &Json) -> &[Json] {
    list.as_array().map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_cells_and_lines_end_with_text() {
        let rows = vec![
            vec!["support".to_owned(), "0.1.0".to_owned()],
            vec!["ab".to_owned(), "a\u{1b}[31m\nb".to_owned()],
        ];
        let text = render(&["NAME", "VERSION"], rows);
        assert_eq!(text, "NAME     VERSION\nsupport  0.1.0\nab       a [31m b");
    }

    #[test]
    fn a_cell_is_short() {
        assert_eq!(digest(&json!("0123456789abcdef")), "0123456789ab");
        assert_eq!(minute(&json!("2026-11-24T14:05:06.789Z")), "2026-11-24 14:05");
        assert_eq!((text(&json!(7)), text(&json!(null))), ("7".to_owned(), "-".to_owned()));
    }
}
