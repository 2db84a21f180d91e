//! Spreadsheet formulas in cells (CSV injection). The import warns about them and stores them
//! unchanged; the export neutralizes them.

use std::borrow::Cow;

/// First characters that may begin a formula.
const LEADS: [char; 6] = ['=', '+', '-', '@', '\t', '\r'];

/// Returns the first character if it may begin a formula.
pub(crate) fn lead(cell: &str) -> Option<char> {
    cell.chars().next().filter(|first| LEADS.contains(first))
}

/// Returns the character's name for a message.
pub(crate) fn name(lead: char) -> String {
    match lead {
        '\t' => "a tab".to_owned(),
        '\r' => "a carriage return".to_owned(),
        other => format!("\"{other}\""),
    }
}

/// Prefixes a cell that may be a formula with an apostrophe, which marks text in spreadsheets.
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
