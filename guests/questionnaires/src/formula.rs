//! What a spreadsheet takes for a formula (CSV injection): told at the import,
//! where it is kept as it is, and disarmed at the export.

use std::borrow::Cow;

/// First characters that a spreadsheet may begin to compute at.
const LEADS: [char; 6] = ['=', '+', '-', '@', '\t', '\r'];

/// The character at which a spreadsheet would begin to compute.
pub(crate) fn lead(cell: &str) -> Option<char> {
    cell.chars().next().filter(|first| LEADS.contains(first))
}

/// A lead as a person reads it.
pub(crate) fn name(lead: char) -> String {
    match lead {
        '\t' => "a tab".to_owned(),
        '\r' => "a carriage return".to_owned(),
        other => format!("\"{other}\""),
    }
}

/// The cell with an apostrophe before a lead, which spreadsheets take for
/// "this is text".
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
