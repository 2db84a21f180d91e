//! Cells that spreadsheets would run as formulas (CSV injection). The import warns about such cells
//! and stores them unchanged; the export neutralizes them.

use std::borrow::Cow;

/// First characters with which spreadsheets recognize a formula.
const LEADS: [char; 6] = ['=', '+', '-', '@', '\t', '\r'];

/// Returns the first character of a cell if a spreadsheet may read the cell as a formula.
pub(crate) fn lead(cell: &str) -> Option<char> {
    cell.chars().next().filter(|first| LEADS.contains(first))
}

/// Returns the name of a cell's first character for a message, for example "tab".
pub(crate) fn name(lead: char) -> String {
    match lead {
        '\t' => "a tab".to_owned(),
        '\r' => "a carriage return".to_owned(),
        other => format!("\"{other}\""),
    }
}

/// Prefixes a cell that may be a formula with an apostrophe, so that spreadsheets read it as text.
pub(crate) fn disarmed(cell: &str) -> Cow<'_, str> {
    match lead(cell) {
        Some(_) => Cow::Owned(format!("'{cell}")),
        None => Cow::Borrowed(cell),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_lead_is_seen_and_disarmed() {
        for cell in ["=1+1", "+49", "-5", "@SUM(A1)", "\t=1", "\r=1"] {
            assert!(lead(cell).is_some(), "{cell:?}");
            assert_eq!(disarmed(cell), format!("'{cell}"));
        }
        for cell in ["", "1=1", "'=1", " =1", "a@b"] {
            assert_eq!((lead(cell), disarmed(cell).as_ref()), (None, cell));
        }
    }
}
