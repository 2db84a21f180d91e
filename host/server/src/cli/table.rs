//! Tables of what people read at a terminal. Programs read `--json`.

use comfy_table::{Table, presets};
use serde_json::Value as Json;

use super::output;

/// Characters of a digest that people read and type.
const DIGEST: usize = 12;
/// Characters of a time that people read, to the minute.
const MINUTE: usize = "2026-11-24T14:05".len();
/// A cell without a value.
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

/// One line without control characters: a cell may contain text of others.
fn plain(cell: &str) -> String {
    cell.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// The beginning of a digest.
pub(super) fn digest(digest: &Json) -> String {
    digest.as_str().map_or(NONE, |digest| digest.get(..DIGEST).unwrap_or(digest)).to_owned()
}

/// A time in UTC, to the minute.
pub(super) fn minute(time: &Json) -> String {
    let shown = |time: &str| time.get(..MINUTE).map(|minute| minute.replace('T', " "));
    time.as_str().and_then(shown).unwrap_or_else(|| NONE.to_owned())
}

/// A text or number.
pub(super) fn text(value: &Json) -> String {
    match value {
        Json::Null => NONE.to_owned(),
        Json::String(text) if text.is_empty() => NONE.to_owned(),
        Json::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The items of a list; none of anything else.
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
