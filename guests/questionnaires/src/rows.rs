//! Splits CSV text into rows (RFC 4180), numbered as in a spreadsheet: a blank line is a row, and a
//! cell with several lines is part of one row.

use std::borrow::Cow;
use std::io::{Chain, Cursor, Read as _};

use csv::{Reader, ReaderBuilder, StringRecord};

use crate::refused::FileRefusal;

/// Supported delimiters of cells in a questionnaire file.
pub(crate) const DELIMITERS: [u8; 3] = [b',', b';', b'\t'];

/// Maximum length of a cell, in characters; the limit of spreadsheets.
pub(crate) const MOST_CELL_CHARACTERS: usize = 32_767;

/// Maximum number of columns; the limit of spreadsheets.
const MOST_COLUMNS: usize = 16_384;

/// Row that is appended to the text. If the CSV reader does not return it as a row of its own, a
/// quotation mark was not closed; the reader reports no error for that.
const LAST_ROW: &str = "\nend of file\n";

/// A row of a CSV text that is not blank.
#[derive(Debug)]
pub(crate) struct Row {
    /// Number of the row in the CSV text from 1, including blank rows.
    pub(crate) number: usize,
    /// Whether a cell has text after its closing quotation mark.
    pub(crate) stray_quote: bool,
    record: StringRecord,
}

impl Row {
    /// Returns the cells of the row in the order of the columns.
    pub(crate) fn cells(&self) -> impl Iterator<Item = &str> {
        self.record.iter()
    }

    /// Returns the cell of a column; empty if the row has fewer columns.
    pub(crate) fn cell(&self, column: usize) -> &str {
        self.record.get(column).unwrap_or_default()
    }

    /// Returns the number of cells of the row that are not blank.
    pub(crate) fn filled(&self) -> usize {
        self.cells().filter(|cell| !is_blank(cell)).count()
    }

    fn check(&self) -> Result<(), FileRefusal> {
        let hint = "Shorten it, or split the question into several rows.";
        let too_long = |cell: &str| {
            cell.len() > MOST_CELL_CHARACTERS && cell.chars().count() > MOST_CELL_CHARACTERS
        };
        if let Some(column) = self.cells().position(too_long) {
            let (row, column) = (self.number, column + 1);
            let message =
                format!("Row {row}: the cell in column {column} has more than 32,767 characters.");
            return Err(FileRefusal::new(message, hint));
        }
        if self.record.len() > MOST_COLUMNS {
            let message = format!("Row {} has more than 16,384 cells.", self.number);
            return Err(FileRefusal::new(
                message,
                "Keep the columns of questions and answers only.",
            ));
        }
        Ok(())
    }
}

/// Whether a cell has no visible characters.
pub(crate) fn is_blank(cell: &str) -> bool {
    let invisible = |c: char| c.is_whitespace() || matches!(c, '\u{200b}' | '\u{feff}' | '\u{a0}');
    cell.chars().all(invisible)
}

/// Bytes of a text, followed by those of [`LAST_ROW`].
type TextWithSentinelRow<'a> = Chain<Cursor<Cow<'a, [u8]>>, &'static [u8]>;

/// Iterator over the rows of a CSV text that are not blank.
#[derive(Debug)]
pub(crate) struct Rows<'a> {
    text: Cow<'a, str>,
    delimiter: u8,
    reader: Reader<TextWithSentinelRow<'a>>,
    number: usize,
    ended: bool,
}

impl<'a> Rows<'a> {
    pub(crate) fn new(text: &'a str, delimiter: u8) -> Self {
        let text = without_blanks_before_quotes(text, delimiter);
        let bytes = match &text {
            Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
            Cow::Owned(text) => Cow::Owned(text.clone().into_bytes()),
        };
        let source = Cursor::new(bytes).chain(LAST_ROW.as_bytes());
        let reader = ReaderBuilder::new()
            .delimiter(delimiter)
            .has_headers(false)
            .flexible(true)
            .from_reader(source);
        Self { text, delimiter, reader, number: 0, ended: false }
    }

    /// Returns the number of blank lines from this offset to the next row, and the offset of that
    /// row.
    fn blank_lines(&self, from: usize) -> (usize, usize) {
        let bytes = self.text.as_bytes();
        let byte = |at: usize| bytes.get(at).copied();
        let mut at = from;
        // Skip the second half of the previous row's line end.
        if at > 0 && byte(at - 1) == Some(b'\r') && byte(at) == Some(b'\n') {
            at += 1;
        }
        let mut count = 0;
        while let Some(b'\r' | b'\n') = byte(at) {
            let pair = byte(at) == Some(b'\r') && byte(at + 1) == Some(b'\n');
            at += if pair { 2 } else { 1 };
            count += 1;
        }
        (count, at)
    }

    fn offset(&self) -> usize {
        usize::try_from(self.reader.position().byte()).unwrap_or(usize::MAX)
    }

    fn unclosed(&self) -> FileRefusal {
        let message = format!(
            "Row {}: a quotation mark is opened and never closed, so the rest of the file would \
             be one cell.",
            self.number
        );
        FileRefusal::new(
            message,
            "Close it, and write a quotation mark inside a cell twice (\"\").",
        )
    }

    fn read(&mut self) -> Result<Option<Row>, FileRefusal> {
        let mut record = StringRecord::new();
        let (blank, at) = self.blank_lines(self.offset());
        let read = self.reader.read_record(&mut record);
        read.map_err(|error| FileRefusal::new(error.to_string(), "Save the file as CSV UTF-8."))?;
        if at >= self.text.len() {
            self.ended = true;
            return Ok(None);
        }
        self.number += blank + 1;
        let end = self.offset().min(self.text.len());
        let written = self.text.as_bytes().get(at..end).unwrap_or_default();
        let stray_quote = goes_on_behind_quote(written, self.delimiter);
        let row = Row { number: self.number, stray_quote, record };
        if self.offset() >= self.text.len() + LAST_ROW.len() {
            return Err(self.unclosed());
        }
        row.check()?;
        Ok(Some(row))
    }
}

/// Removes the blanks between a delimiter and a quoted cell, as spreadsheets do. A cell with text
/// after its closing quotation mark is not quoted, and keeps them.
fn without_blanks_before_quotes(text: &str, delimiter: u8) -> Cow<'_, str> {
    if !text.contains(" \"") && !text.contains("\t\"") {
        return Cow::Borrowed(text);
    }
    let blank = |c: char| c == ' ' || (c == '\t' && delimiter != b'\t');
    let ends = |c: char| c == char::from(delimiter) || matches!(c, '\r' | '\n');
    let is_quoted = |cell: &str| {
        let after = closing_quote(cell).map(|end| cell[end..].trim_start_matches(blank));
        after.is_some_and(|after| after.is_empty() || after.starts_with(ends))
    };
    let (mut kept, mut rest) = (String::with_capacity(text.len()), text);
    while !rest.is_empty() {
        let trimmed = rest.trim_start_matches(blank);
        let cell = if is_quoted(trimmed) { trimmed } else { rest };
        let quoted = if cell.starts_with('"') { closing_quote(cell) } else { Some(0) };
        let from = quoted.unwrap_or(cell.len());
        let end = cell[from..].find(ends).map_or(cell.len(), |at| from + at + 1);
        kept.push_str(&cell[..end]);
        rest = &cell[end..];
    }
    Cow::Owned(kept)
}

/// Returns the offset after the closing quotation mark of a cell that begins with one; `None` if
/// the cell does not begin with one, or does not end.
fn closing_quote(cell: &str) -> Option<usize> {
    let inside = cell.strip_prefix('"')?;
    let mut quotes = inside.match_indices('"').map(|(at, _)| at).peekable();
    while let Some(at) = quotes.next() {
        if quotes.next_if_eq(&(at + 1)).is_none() {
            return Some(at + 2);
        }
    }
    None
}

/// Whether a cell of an unparsed row has text after its closing quotation mark.
fn goes_on_behind_quote(record: &[u8], delimiter: u8) -> bool {
    let (mut begins, mut quoted) = (true, false);
    let mut bytes = record.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        let opens = begins && byte == b'"';
        begins = !quoted && byte == delimiter;
        if opens {
            quoted = true;
        } else if quoted && byte == b'"' && bytes.next_if_eq(&b'"').is_none() {
            quoted = false;
            let ends = |next: &u8| [delimiter, b'\r', b'\n'].contains(next);
            if bytes.peek().is_some_and(|next| !ends(next)) {
                return true;
            }
        }
    }
    false
}

impl Iterator for Rows<'_> {
    type Item = Result<Row, FileRefusal>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let read = self.read();
        self.ended |= read.is_err();
        read.transpose()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> Result<Vec<(usize, Vec<String>)>, FileRefusal> {
        let owned = |row: Row| (row.number, row.cells().map(ToOwned::to_owned).collect());
        Rows::new(text, b',').map(|row| row.map(owned)).collect()
    }

    fn row(number: usize, cells: &[&str]) -> (usize, Vec<String>) {
        (number, cells.iter().map(|&cell| cell.to_owned()).collect())
    }

    #[test]
    fn rows_are_numbered_as_a_spreadsheet_numbers_them() {
        for end in ["\n", "\r\n", "\r"] {
            let text = ["\n\na,b\n", "\"x\n\ny\",\"\"\"\"\n", "\n\n,\n", "c,d"].concat();
            let expected = [
                row(3, &["a", "b"]),
                row(4, &[&format!("x{end}{end}y"), "\""]),
                row(7, &["", ""]),
                row(8, &["c", "d"]),
            ];
            let text = text.replace('\n', end);
            assert_eq!(read(&text).as_deref(), Ok(&expected[..]), "{end:?}");
            assert_eq!(read(&(text + end + end)).as_deref(), Ok(&expected[..]), "{end:?}");
        }
    }

    #[test]
    fn a_quotation_mark_that_stays_open_is_told() {
        for text in ["a,b\n1,\"open", "a,b\n1,\"open\n\n", "a,b\n1,\"\"\"", "a,b\n1,\"x\"\"\n"] {
            let refused = read(text).expect_err(text);
            assert!(refused.message.starts_with("Row 2: a quotation mark"), "{}", refused.message);
        }
        assert_eq!(read("a,5\" disk\n"), Ok(vec![row(1, &["a", "5\" disk"])]));
        assert_eq!(read("a,\"\""), Ok(vec![row(1, &["a", ""])]));
    }

    #[test]
    fn blanks_before_a_quoted_cell_are_skipped() {
        for (text, cells) in [
            ("1, \"a, b\", c\n", &["1", "a, b", " c"][..]),
            (" \"a\nb\" ,\t\"\"\n", &["a\nb ", ""]),
            ("1, \"a \"\"b\"\", c\"\n", &["1", "a \"b\", c"]),
            ("1, \"a\" and \"b\", c\n", &["1", " \"a\" and \"b\"", " c"]),
            ("1, \"open, c\n", &["1", " \"open", " c"]),
            ("\"x, \"\"y\"\"\",é, \"z\"", &["x, \"y\"", "é", "z"]),
        ] {
            assert_eq!(read(text), Ok(vec![row(1, cells)]), "{text:?}");
        }
        assert_eq!(
            read("a, \"b\nc\"\r\n\r\nd, \"e\"\r\n"),
            Ok(vec![row(1, &["a", "b\nc"]), row(3, &["d", "e"])])
        );
        let tabs: Vec<usize> =
            Rows::new("\t\"a\"\n", b'\t').map(|row| row.expect("a row").cells().count()).collect();
        assert_eq!(tabs, [2]);
    }

    #[test]
    fn cells_are_counted_in_characters() {
        let long = "é".repeat(MOST_CELL_CHARACTERS);
        assert_eq!(read(&format!("a,{long}\n")), Ok(vec![row(1, &["a", &long])]));
        let refused = read(&format!("\na,{long}é\n")).expect_err("too long");
        assert!(refused.message.starts_with("Row 2: the cell in column 2"), "{}", refused.message);
        assert!(read(&",".repeat(MOST_COLUMNS)).is_err());
    }

    /// Quotes a cell as in RFC 4180.
    fn quoted(cell: &str) -> String {
        format!("\"{}\"", cell.replace('"', "\"\""))
    }

    proptest! {
        #[test]
        fn what_is_quoted_comes_out_as_it_was(
            cells in prop::collection::vec(prop::collection::vec("[ -~\r\n\té,;\"]{0,8}", 1..5), 1..6),
            end in prop::sample::select(vec!["\n", "\r\n", "\r"]),
        ) {
            let lines = cells.iter().map(|row| {
                row.iter().map(|cell| quoted(cell)).collect::<Vec<_>>().join(",")
            });
            let text = lines.collect::<Vec<_>>().join(end);
            let found: Vec<Vec<String>> =
                read(&text).expect("rows").into_iter().map(|(_, cells)| cells).collect();
            prop_assert_eq!(found, cells);
        }

        #[test]
        fn no_text_makes_it_panic(text in "[a\"',;\t\r\n é]{0,60}") {
            for delimiter in DELIMITERS {
                let _ = Rows::new(&text, delimiter).collect::<Vec<_>>();
            }
        }
    }
}
