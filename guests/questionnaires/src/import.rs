//! Parses a questionnaire file: either all questions, or a refusal with an instruction to fix the
//! file. Suspicious content is accepted with a warning that names the row.

use std::collections::{BTreeMap, BTreeSet};

use crate::formula;
use crate::header::{self, ColumnIndexes, Header, MOST_LISTED, UNNAMED};
use crate::refused::FileRefusal;
use crate::rows::{Row, Rows, is_blank};
use crate::text;

/// Maximum size of a questionnaire file, in bytes.
pub(crate) const MOST_BYTES: u64 = 5 * 1024 * 1024;

/// Maximum number of questions of a questionnaire.
pub(crate) const MOST_QUESTIONS: usize = 2_000;

/// Maximum number of warnings listed for a questionnaire; a last one has the number of the others.
const MOST_WARNINGS: usize = 5_000;

/// Questions and warnings of a questionnaire file.
#[derive(Debug)]
pub(crate) struct ParsedFile {
    pub(crate) questions: Vec<ImportedQuestion>,
    /// Warnings about rows of the file, in their order, then about the whole file.
    pub(crate) warnings: Vec<String>,
}

/// One question of a questionnaire file, with its exact text.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct ImportedQuestion {
    pub(crate) question: String,
    pub(crate) reference: Option<String>,
    pub(crate) answer: Option<String>,
    /// Warnings about the row of this question in the file.
    pub(crate) warnings: Vec<String>,
}

/// Parses a questionnaire file.
pub(crate) fn read(bytes: &[u8]) -> Result<ParsedFile, FileRefusal> {
    let text = text::decode(bytes)?;
    let header = header::find(text)?;
    let mut import = QuestionnaireParser::new(&header);
    for row in Rows::new(text, header.delimiter) {
        let row = row?;
        if row.number > header.row {
            import.row(&row);
        }
    }
    import.finish(&header)
}

/// Reason why rows of a questionnaire file are skipped.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SkipReason {
    Above,
    Blank,
    NoQuestion,
    Header,
}

/// State of parsing a questionnaire file.
struct QuestionnaireParser {
    columns: ColumnIndexes,
    /// Number of questions found in the file so far, including those beyond the maximum.
    count: usize,
    questions: Vec<ImportedQuestion>,
    warnings: Vec<String>,
    /// Number of warnings beyond the maximum, which are counted and not listed.
    unlisted: usize,
    /// Number of the file's row that was read last.
    last: usize,
    /// Indexes of columns that are not imported and have a cell that is not blank.
    untaken: BTreeSet<usize>,
    /// Current range of skipped rows: the reason, the first and the last row.
    passed: Option<(SkipReason, usize, usize)>,
    /// Number of the first row with each question text.
    seen: BTreeMap<String, usize>,
    /// Number of the first row with each reference of a question.
    referred: BTreeMap<String, usize>,
}

impl QuestionnaireParser {
    fn new(header: &Header) -> Self {
        let above = header.row - 1;
        Self {
            columns: header.columns,
            count: 0,
            questions: Vec::new(),
            warnings: Vec::new(),
            unlisted: 0,
            last: header.row,
            untaken: BTreeSet::new(),
            passed: (above > 0).then_some((SkipReason::Above, 1, above)),
            seen: BTreeMap::new(),
            referred: BTreeMap::new(),
        }
    }

    fn warn(&mut self, warning: String) {
        if self.warnings.len() < MOST_WARNINGS {
            self.warnings.push(warning);
        } else {
            self.unlisted += 1;
        }
    }

    /// Records a range of skipped rows. Joins the range with the previous one if the reason is the
    /// same.
    fn pass(&mut self, why: SkipReason, from: usize, to: usize) {
        match &mut self.passed {
            Some((reason, _, last)) if *reason == why => *last = to,
            _ => {
                self.tell_passed();
                self.passed = Some((why, from, to));
            }
        }
    }

    fn tell_passed(&mut self) {
        let Some((why, from, to)) = self.passed.take() else { return };
        let one = from == to;
        let rows = if one { format!("Row {from}") } else { format!("Rows {from} to {to}") };
        self.warn(match why {
            SkipReason::Above if one => format!("{rows} stands above the header and was skipped."),
            SkipReason::Above => format!("{rows} stand above the header and were skipped."),
            SkipReason::Blank if one => format!("{rows} is blank and was skipped."),
            SkipReason::Blank => format!("{rows} are blank and were skipped."),
            SkipReason::NoQuestion if one => format!("{rows} has no question and was skipped."),
            SkipReason::NoQuestion => format!("{rows} have no question and were skipped."),
            SkipReason::Header if one => format!("{rows} repeats the header and was skipped."),
            SkipReason::Header => format!("{rows} repeat the header and were skipped."),
        });
    }

    fn row(&mut self, row: &Row) {
        if row.number > self.last + 1 {
            self.pass(SkipReason::Blank, self.last + 1, row.number - 1);
        }
        self.last = row.number;
        if row.filled() == 0 {
            self.pass(SkipReason::Blank, row.number, row.number);
        } else if is_blank(row.cell(self.columns.question)) {
            self.pass(SkipReason::NoQuestion, row.number, row.number);
        } else if self.columns.repeated_by(row) {
            self.pass(SkipReason::Header, row.number, row.number);
        } else {
            self.tell_passed();
            self.question(row);
        }
    }

    fn question(&mut self, row: &Row) {
        self.count += 1;
        if self.count > MOST_QUESTIONS {
            return;
        }
        let cell = |column: Option<usize>| {
            let cell = row.cell(column?);
            (!is_blank(cell)).then(|| cell.to_owned())
        };
        let mut question = ImportedQuestion {
            question: row.cell(self.columns.question).to_owned(),
            reference: cell(self.columns.reference),
            answer: cell(self.columns.answer),
            warnings: Vec::new(),
        };
        question.warnings = self.judge(row, &question);
        self.note_untaken(row);
        for warning in &question.warnings {
            self.warn(warning.clone());
        }
        self.questions.push(question);
    }

    fn note_untaken(&mut self, row: &Row) {
        let columns = self.columns;
        let taken = |at| at == columns.question || Some(at) == columns.reference;
        let cells = row.cells().take(columns.width).enumerate();
        let filled = cells.filter(|(at, cell)| !taken(*at) && !is_blank(cell));
        self.untaken.extend(filled.map(|(at, _)| at));
    }

    /// Warns of ignored columns that may have questions or answers: without an answer column, all
    /// of them, otherwise those with such names.
    fn tell_untaken(&mut self, header: &Header) {
        let unanswered = self.columns.answer.is_none();
        let untaken = self.untaken.iter().filter(|at| unanswered || header.rivals.contains(at));
        let columns = untaken.filter_map(|&at| header.names.get(at));
        let names: Vec<&str> = columns.map(String::as_str).take(MOST_LISTED).collect();
        if names.is_empty() {
            return;
        }
        let (row, names) = (header.row, names.join(", "));
        self.warn(if unanswered {
            format!(
                "Row {row}: no column has a known name for answers, so no answers are imported. \
                The ignored columns are {names}; rename the one with the answers to \"Answer\"."
            )
        } else {
            format!(
                "Row {row}: one column with questions and one with answers are imported. The \
                ignored columns with such names are {names}; to import one, rename it to \
                \"Question\" or \"Answer\", and the other."
            )
        });
    }

    /// Warns of filled columns without a name after the answer column: a table with a column for
    /// each of "Yes" and "No" may name only the first.
    fn tell_unnamed(&mut self, header: &Header) {
        let Some(answer) = self.columns.answer else { return };
        let after = header.names.iter().enumerate().skip(answer + 1);
        let unnamed = after.take_while(|(_, name)| *name == UNNAMED).map(|(at, _)| at);
        let filled = unnamed.filter(|at| self.untaken.contains(at)).take(MOST_LISTED);
        let numbers: Vec<String> = filled.map(|at| (at + 1).to_string()).collect();
        if !numbers.is_empty() {
            self.warn(format!(
                "Row {}: columns without a name follow the one with answers. The ignored ones are \
                {}; if they have answers, such as a mark for \"No\", write these into the column \
                with answers.",
                header.row,
                numbers.join(", ")
            ));
        }
    }

    /// Returns the warnings about the row of a question in the file.
    fn judge(&mut self, row: &Row, question: &ImportedQuestion) -> Vec<String> {
        let number = row.number;
        let mut warnings = Vec::new();
        let text = folded(&question.question);
        if let Some(first) = first_row(&mut self.seen, text, number) {
            warnings.push(format!("Row {number}: the same question is in row {first}."));
        }
        let reference = question.reference.as_deref().map(folded);
        if let Some(first) = reference.and_then(|text| first_row(&mut self.referred, text, number))
        {
            warnings.push(format!("Row {number}: the same reference is in row {first}."));
        }
        let texts = [
            ("question", Some(&question.question)),
            ("reference", question.reference.as_ref()),
            ("answer", question.answer.as_ref()),
        ];
        for (what, text) in texts {
            warnings.extend(text.into_iter().flat_map(|text| odd(number, what, text)));
        }
        if row.stray_quote {
            warnings.push(format!(
                "Row {number}: text follows the closing quotation mark of a cell; the text is \
                kept, without the quotation marks before it."
            ));
        }
        if row.cells().skip(self.columns.width).any(|cell| !is_blank(cell)) {
            warnings.push(format!(
                "Row {number} has more cells than the header; the rest was ignored."
            ));
        }
        warnings
    }

    fn finish(mut self, header: &Header) -> Result<ParsedFile, FileRefusal> {
        self.tell_passed();
        if self.count == 0 {
            let message =
                format!("The file has no question below the header in row {}.", header.row);
            return Err(FileRefusal::new(
                message,
                "Put one question into each row below the header.",
            ));
        }
        if self.count > MOST_QUESTIONS {
            let message = format!("The file has {} questions; the maximum is 2,000.", self.count);
            return Err(FileRefusal::new(message, "Split it into several questionnaires."));
        }
        self.tell_untaken(header);
        self.tell_unnamed(header);
        if self.unlisted > 0 {
            let more = format!("{} more warnings are not listed here.", self.unlisted);
            self.warnings.push(more);
        }
        Ok(ParsedFile { questions: self.questions, warnings: self.warnings })
    }
}

/// Normalizes letter case and white space, so that texts can be compared.
fn folded(text: &str) -> String {
    text.to_lowercase().split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the number of an earlier row with this text; `None` if this row is the first.
fn first_row(seen: &mut BTreeMap<String, usize>, text: String, row: usize) -> Option<usize> {
    let first = *seen.entry(text).or_insert(row);
    (first != row).then_some(first)
}

/// Returns warnings about unusual content of a question or answer in a row.
fn odd(row: usize, what: &str, text: &str) -> Vec<String> {
    let mut warnings = Vec::new();
    let lines = lines(text);
    if lines > 1 {
        warnings.push(format!("Row {row}: the {what} has {lines} lines."));
    }
    if let Some(lead) = formula::lead(text) {
        let lead = formula::name(lead);
        warnings.push(format!(
            "Row {row}: the {what} begins with {lead}, like a formula; it is stored unchanged and \
            escaped in exports."
        ));
    }
    warnings
}

/// Returns the number of lines of a text; accepts all line ends.
fn lines(text: &str) -> usize {
    let pairs = text.matches("\r\n").count();
    1 + text.matches(['\r', '\n']).count() - pairs
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn imported(text: &str) -> ParsedFile {
        read(text.as_bytes()).expect("an import")
    }

    #[test]
    fn cells_are_kept_to_the_character_and_odd_ones_warned_of() {
        let file = imported(
            "ID;Question;Answer\n\
             1;  Do you?  ;=1+1\n\
             ;\"First\nsecond\r\nthird\"; \n\
             1;do  YOU?;-\n\
             2;@here;a;b\n",
        );
        let found = file.questions.iter().map(|question| {
            (question.reference.as_deref(), question.question.as_str(), question.answer.as_deref())
        });
        assert_eq!(
            found.collect::<Vec<_>>(),
            [
                (Some("1"), "  Do you?  ", Some("=1+1")),
                (None, "First\nsecond\r\nthird", None),
                (Some("1"), "do  YOU?", Some("-")),
                (Some("2"), "@here", Some("a")),
            ]
        );
        let formula = "like a formula; it is stored unchanged and escaped in exports.";
        assert_eq!(
            file.warnings,
            [
                format!("Row 2: the answer begins with \"=\", {formula}"),
                "Row 3: the question has 3 lines.".to_owned(),
                "Row 4: the same question is in row 2.".to_owned(),
                "Row 4: the same reference is in row 2.".to_owned(),
                format!("Row 4: the answer begins with \"-\", {formula}"),
                format!("Row 5: the question begins with \"@\", {formula}"),
                "Row 5 has more cells than the header; the rest was ignored.".to_owned(),
            ]
        );
        let own: Vec<&String> =
            file.questions.iter().flat_map(|question| &question.warnings).collect();
        assert_eq!(own, file.warnings.iter().collect::<Vec<_>>());
    }

    #[test]
    fn rows_without_a_question_are_passed_over_and_named() {
        let file = imported(
            "Our questions\n\nRef,Question\n\n,\n \n1,One?\nSection B\nSection C,\n2,Two?\n\
             Ref,Question\n3,Three?\n,\n",
        );
        assert_eq!(file.questions.len(), 3);
        assert_eq!(
            file.warnings,
            [
                "Rows 1 to 2 stand above the header and were skipped.",
                "Rows 4 to 6 are blank and were skipped.",
                "Rows 8 to 9 have no question and were skipped.",
                "Row 11 repeats the header and was skipped.",
                "Row 13 is blank and was skipped.",
            ]
        );
    }

    #[test]
    fn columns_that_may_hold_answers_are_named_where_none_is_known_to() {
        let file = imported("ID,Question,Our position,Notes,\n1,One?,Yes,,x\n2,Two?,,,\n");
        assert_eq!(
            file.warnings,
            ["Row 1: no column has a known name for answers, so no answers are imported. The \
              ignored columns are \"Our position\", \"\"; rename the one with the answers to \"Answer\"."]
        );
        assert_eq!(imported("ID,Question,Notes\n1,One?,\n").warnings, [""; 0]);
        assert_eq!(imported("ID,Question,Notes,Answer\n1,One?,x,\n").warnings, [""; 0]);
    }

    #[test]
    fn ignored_columns_with_names_of_questions_or_answers_are_named() {
        for (text, named) in [
            ("ID,Question,Answer,Vendor Answer\n1,Do you?,,Yes we do\n", "\"Vendor Answer\""),
            ("Control,Description,Response\nAC-1,Limit access?,Yes\n", "\"Description\""),
            ("Ref,Question,Question Details,Answer\n1,A?,B?,\n", "\"Question Details\""),
        ] {
            let warnings = imported(text).warnings;
            assert_eq!(warnings.len(), 1, "{text}: {warnings:?}");
            assert!(warnings[0].starts_with("Row 1: one column with questions"), "{warnings:?}");
            assert!(warnings[0].contains(&format!("such names are {named};")), "{warnings:?}");
        }
        assert_eq!(imported("ID,Question,Answer,Vendor Answer\n1,A?,Yes,\n").warnings, [""; 0]);
    }

    #[test]
    fn columns_without_a_name_after_the_answers_are_named() {
        let head = "ID,Consensus Assessment Questions,Consensus Assessment Answers,,,Notes\n";
        let below = ",,Yes,No,Not Applicable,\n1,One?,X,,,\n2,Two?,,X,,why\n";
        let warnings = imported(&format!("{head}{below}")).warnings;
        assert_eq!(warnings.len(), 2, "{warnings:?}");
        assert!(warnings[1].contains("The ignored ones are 4;"), "{warnings:?}");
        assert_eq!(imported(&format!("{head}1,One?,Yes,,,why\n")).warnings, [""; 0]);
    }

    #[test]
    fn text_behind_a_closing_quotation_mark_is_told() {
        let file = imported("ID,Question\n\"1\",\"abc\"def\r\n2,\"a \"\"b\"\"\"\n3,5\" disk\n");
        assert_eq!(file.questions[0].question, "abcdef");
        assert_eq!(file.warnings.len(), 1);
        assert!(file.warnings[0].starts_with("Row 2: text follows the closing quotation mark"));
        assert_eq!(file.questions[0].warnings, file.warnings);
        assert_eq!(imported("ID,Question\n1,\"abc\"def").warnings.len(), 1);
        assert_eq!(imported("ID,Question\n1,\"abc\"").warnings, [""; 0]);
    }

    #[test]
    fn two_thousand_questions_are_taken_and_no_more() {
        let file = |count: usize| {
            let rows = (1..=count).map(|n| format!("{n},Question {n}?\n"));
            format!("ID,Question\n{}", rows.collect::<String>())
        };
        assert_eq!(imported(&file(2000)).questions.len(), 2000);
        let refused = read(file(2345).as_bytes()).expect_err("too many");
        assert_eq!(refused.message, "The file has 2345 questions; the maximum is 2,000.");
        let refused = read(file(0).as_bytes()).expect_err("none");
        assert_eq!(refused.message, "The file has no question below the header in row 1.");
    }

    #[test]
    fn warnings_are_listed_up_to_a_bound_and_then_counted() {
        let rows = "1,=x\n,\n".repeat(2000);
        let file = imported(&format!("ID,Question\n{rows}"));
        assert_eq!(file.warnings.len(), MOST_WARNINGS + 1);
        assert_eq!(
            file.warnings.last().map(String::as_str),
            Some("2998 more warnings are not listed here.")
        );
        assert_eq!(file.questions[1999].warnings.len(), 3);
    }

    proptest! {
        #[test]
        fn every_row_is_a_question_or_named(
            rows in prop::collection::vec("[a-c]{0,2}(,[a-c=\n]{0,3}){0,2}", 0..12),
        ) {
            let body: String = rows.iter().map(|row| row.replace('\n', "") + "\n").collect();
            if let Ok(file) = read(format!("ID,Question,Answer\n{body}1,end,\n").as_bytes()) {
                let warnings = file.warnings.join("\n");
                for (row, text) in rows.iter().enumerate() {
                    let question = text.replace('\n', "").split(',').nth(1).map(str::len);
                    if question.unwrap_or_default() == 0 {
                        prop_assert!(warnings.contains("skipped"), "row {row} of {rows:?}");
                    }
                }
                prop_assert!(file.questions.len() <= rows.len() + 1);
            }
        }
    }
}
