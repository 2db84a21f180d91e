//! Finds the header row and the columns with questions, references and answers, by common column
//! names.

use std::sync::LazyLock;

use area_sdk::text::ellipsize;

use crate::names::{
    ANSWER, ANSWER_ENDS, COUNTS, NOUN, OTHER_ANSWERS, QUESTION, QUESTION_ENDS, REFERENCE,
    VAGUE_QUESTION, split_names,
};
use crate::refused::FileRefusal;
use crate::rows::{DELIMITERS, Row, Rows, is_blank};

/// Maximum number of column names that a refusal or a warning lists.
pub(crate) const MOST_LISTED: usize = 30;

/// A blank column name in [`Header::names`].
pub(crate) const UNNAMED: &str = "\"\"";

/// Indexes, from 0, of the columns of a questionnaire file with questions, references and answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ColumnIndexes {
    pub(crate) question: usize,
    pub(crate) reference: Option<usize>,
    pub(crate) answer: Option<usize>,
    /// Number of columns in the header row of the questionnaire file.
    pub(crate) width: usize,
}

/// The header row of a questionnaire file, and the delimiter of its cells.
#[derive(Debug)]
pub(crate) struct Header {
    pub(crate) delimiter: u8,
    /// Number of the header row in the questionnaire file, from 1.
    pub(crate) row: usize,
    pub(crate) columns: ColumnIndexes,
    /// Column names in the header row, for messages.
    pub(crate) names: Vec<String>,
    /// Indexes of columns that were not chosen but also have names of questions or answers.
    pub(crate) rivals: Vec<usize>,
}

/// Delimiters as characters. A column name with one of them may be several columns, or not.
const SEPARATORS: [char; 3] = [',', ';', '\t'];

/// Returns the letters, digits and delimiters of a column name in lower case, without text in
/// brackets at its end ("Question (required)").
fn plain(name: &str) -> String {
    let name = name.trim().trim_end_matches(['*', ':']);
    let name = match (name.rfind(['(', '[']), name.ends_with([')', ']'])) {
        (Some(at), true) if at > 0 => &name[..at],
        _ => name,
    };
    let kept = |c: &char| c.is_alphanumeric() || *c == '#' || SEPARATORS.contains(c);
    name.chars().filter(kept).flat_map(char::to_lowercase).collect()
}

/// Like [`plain`], for the text before the first comma of a column's name ("Question, in full").
/// Not before `;` or a tab, which more likely separate columns.
fn plain_beginning(name: &str) -> String {
    plain(name.split(',').next().unwrap_or_default())
}

/// Column names in the form that [`plain`] returns. Computed once, because every row is compared
/// with them.
type KnownColumnNames = LazyLock<Vec<String>>;

static QUESTIONS: KnownColumnNames = LazyLock::new(|| plain_names(QUESTION));
static NOUNS: KnownColumnNames = LazyLock::new(|| plain_names(NOUN));
static VAGUE_QUESTIONS: KnownColumnNames = LazyLock::new(|| plain_names(VAGUE_QUESTION));
static REFERENCES: KnownColumnNames = LazyLock::new(|| plain_names(REFERENCE));
static ANSWERS: KnownColumnNames = LazyLock::new(|| plain_names(ANSWER));

fn plain_names(names: &[&str]) -> Vec<String> {
    split_names(names).map(plain).collect()
}

/// Returns the index of the first column with the best of these names; better names come first.
fn named(columns: &[String], names: &[String]) -> Option<usize> {
    names.iter().find_map(|name| columns.iter().position(|column| column == name))
}

/// Returns the index of a column whose name has one of these suffixes ("Security question", "Vendor
/// answers") and none of the prefixes that give it another meaning.
fn ending(columns: &[String], ends: &[&str], others: &[&[&str]]) -> Option<usize> {
    columns.iter().position(|name| ends_with(name, ends, others))
}

fn ends_with(name: &str, ends: &[&str], others: &[&[&str]]) -> bool {
    let other = others.iter().copied().flatten().any(|begin| name.starts_with(begin));
    ends.iter().any(|end| name.ends_with(end)) && !other && !name.contains(SEPARATORS)
}

fn is_answer(name: &str) -> bool {
    ANSWERS.iter().any(|known| known == name)
        || ends_with(name, &ANSWER_ENDS, &[&COUNTS, &OTHER_ANSWERS])
}

/// Returns the reference column. Without a name of references, this is the column of a noun that
/// the name of the question column begins with ("Control" next to "Control description").
fn reference(names: &[String], question: usize) -> Option<usize> {
    let begins = |name: &String| names[question].starts_with(name.as_str());
    let noun = |(at, name): (usize, &String)| {
        let is_noun = NOUNS.contains(name) || name == "question";
        (at != question && is_noun && begins(name)).then_some(at)
    };
    named(names, &REFERENCES).or_else(|| names.iter().enumerate().find_map(noun))
}

/// Certainty that a row of a questionnaire file is its header.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum HeaderCertainty {
    /// The row names only a question column, or one by an ambiguous name and no answer column, as
    /// a row above the header also may.
    Perhaps,
    /// The row names a question column by its suffix and a reference or answer column, or a
    /// question column by an ambiguous name and an answer column.
    Likely,
    /// The row names a question column by an unambiguous name, and a reference or answer column.
    Sure,
}

impl ColumnIndexes {
    /// Returns the columns that a row names, with the certainty that it is the header; `None` if
    /// the row cannot be one.
    fn of(row: &Row) -> Option<(Self, HeaderCertainty)> {
        if let Some(found) = Self::by_names(row, plain) {
            return Some(found);
        }
        if !row.cells().any(|name| name.contains(',')) {
            return None;
        }
        let (columns, surety) = Self::by_names(row, plain_beginning)?;
        let accompanied = surety > HeaderCertainty::Perhaps;
        accompanied.then_some((columns, HeaderCertainty::Likely))
    }

    fn by_names(row: &Row, plain: fn(&str) -> String) -> Option<(Self, HeaderCertainty)> {
        let filled = row.filled();
        if filled < 2 {
            return None;
        }
        let names: Vec<String> = row.cells().map(plain).collect();
        let answer =
            named(&names, &ANSWERS).or_else(|| names.iter().position(|name| is_answer(name)));
        let accompanied = answer.is_some() || named(&names, &REFERENCES).is_some();
        let enough = |_: &usize| filled > 2 || accompanied;
        let exact = named(&names, &QUESTIONS);
        let suffixed = ending(&names, &QUESTION_ENDS, &[&COUNTS]).filter(enough);
        let noun = named(&names, &NOUNS);
        let vague = || named(&names, &VAGUE_QUESTIONS).filter(enough);
        let question = exact.or(suffixed).or(noun).or_else(vague)?;
        let surety = match (exact, suffixed, noun) {
            _ if !accompanied => HeaderCertainty::Perhaps,
            (Some(_), ..) | (None, None, Some(_)) => HeaderCertainty::Sure,
            (None, None, None) if answer.is_none() => HeaderCertainty::Perhaps,
            _ => HeaderCertainty::Likely,
        };
        let reference = reference(&names, question);
        Some((Self { question, reference, answer, width: names.len() }, surety))
    }

    /// Whether a row repeats the header, for example at the top of each page of a long table.
    pub(crate) fn repeated_by(&self, row: &Row) -> bool {
        Self::by_names(row, plain).is_some_and(|(columns, _)| columns == *self)
    }

    /// Returns the indexes of columns that were not chosen but also have names of questions or
    /// answers. An ambiguous name counts if the question column has the name of a noun.
    fn rivals(&self, header: &Row) -> Vec<usize> {
        let names: Vec<String> = header.cells().map(plain).collect();
        let by_noun = NOUNS.contains(&names[self.question]);
        let is_rival = |name: &String| {
            QUESTIONS.contains(name)
                || NOUNS.contains(name)
                || ends_with(name, &QUESTION_ENDS, &[&COUNTS])
                || by_noun && VAGUE_QUESTIONS.contains(name)
                || is_answer(name)
        };
        let taken = [Some(self.question), self.reference, self.answer];
        (0..names.len()).filter(|&at| !taken.contains(&Some(at)) && is_rival(&names[at])).collect()
    }
}

/// Returns the header row of a questionnaire file for one delimiter: the first possible one, unless
/// a later row is more certain.
fn under(text: &str, delimiter: u8) -> Option<(Header, HeaderCertainty)> {
    let rows = Rows::new(text, delimiter).map_while(Result::ok);
    let mut headers = rows.filter_map(|row| {
        let (columns, surety) = ColumnIndexes::of(&row)?;
        let names = row.cells().map(listed).collect();
        let rivals = columns.rivals(&row);
        Some((Header { delimiter, row: row.number, columns, names, rivals }, surety))
    });
    let first = headers.next()?;
    if first.1 > HeaderCertainty::Perhaps {
        return Some(first);
    }
    headers.find(|(_, surety)| *surety == HeaderCertainty::Sure).or(Some(first))
}

/// Returns the header row of a questionnaire file, for the delimiter that gives the highest
/// certainty, then the most columns.
pub(crate) fn find(text: &str) -> Result<Header, FileRefusal> {
    let found = DELIMITERS.iter().rev().filter_map(|&delimiter| under(text, delimiter));
    let best = found.max_by_key(|(header, surety)| (*surety, header.columns.width));
    best.map(|(header, _)| header).ok_or_else(|| no_question_column(text))
}

/// Returns the refusal of a questionnaire file without a question column. The message lists the
/// existing column names.
fn no_question_column(text: &str) -> FileRefusal {
    let first = |delimiter| {
        let mut rows = Rows::new(text, delimiter).map_while(Result::ok);
        rows.find(|row| row.filled() >= 2)
    };
    let widest = DELIMITERS.iter().rev().filter_map(|&delimiter| first(delimiter));
    let Some(row) = widest.max_by_key(Row::filled) else {
        return FileRefusal::new(
            "The file has no row with two cells or more.",
            "Separate the cells by commas, semicolons or tabs, and give the file a header row \
             with a column named \"Question\" next to another.",
        );
    };
    let headers: Vec<String> =
        row.cells().filter(|cell| !is_blank(cell)).take(MOST_LISTED).map(listed).collect();
    let hint = format!(
        "The headers found in row {} are {}. Rename the column with the questions to \
        \"Question\".",
        row.number,
        headers.join(", ")
    );
    FileRefusal::new("The file has no column with a known name for questions.", hint)
}

/// Shortens a column name for a message.
fn listed(cell: &str) -> String {
    const MOST: usize = 60;
    let shown: String = cell.trim().chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    format!("\"{}\"", ellipsize(&shown, MOST))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(header: &str) -> Option<(usize, Option<usize>, Option<usize>)> {
        let found = find(&format!("{header}\n1,2,3\n")).ok()?.columns;
        Some((found.question, found.reference, found.answer))
    }

    #[test]
    fn columns_are_found_by_their_common_names() {
        for (header, expected) in [
            ("ID,Question,Answer", (1, Some(0), Some(2))),
            ("Question ID,Section,Question,Type,Choices,Response", (2, Some(0), Some(5))),
            ("chapter_id,section_id,req_id,req_description,L", (3, Some(2), None)),
            ("Nr.;Frage;Antwort", (1, Some(0), Some(2))),
            ("N°\tIntitulé de la question\tRéponse", (1, None, Some(2))),
            ("#,Control Description (required),Vendor Response:", (1, Some(0), Some(2))),
            ("QuestionID,QuestionText", (1, Some(0), None)),
            ("Domain,Vendor security question*,Owner", (1, None, None)),
            ("ID,Question,Vendor Answers,Additional Information", (1, Some(0), Some(2))),
            ("Question,Vendor Responses", (0, None, Some(1))),
            ("Question ID,Question,CSP CAIQ Answer,Expected Answer", (1, Some(0), Some(2))),
            ("ID,Question,Expected Answer,Response", (1, Some(0), Some(3))),
            ("ID,Question,Expected Answer", (1, Some(0), None)),
            ("#,Question,Yes/No,Comments", (1, Some(0), Some(2))),
            ("Réf;Question;Réponse du fournisseur", (1, None, Some(2))),
            ("Ques Num,Question/Request,Response", (1, Some(0), Some(2))),
            ("Nr;Sicherheitsfrage;Antwort", (1, Some(0), Some(2))),
            ("番号,質問事項,回答", (1, Some(0), Some(2))),
            ("Control ID,Assessment Objective,Status", (1, Some(0), None)),
            ("ID;Question, details;Answer", (1, Some(0), Some(2))),
            ("编号,问题,回答", (1, None, Some(2))),
            ("№,ВОПРОС,Ответ", (1, None, Some(2))),
            ("Ref,Description", (1, Some(0), None)),
            ("Title,Description,Guidance", (1, None, None)),
            ("Control,Control Description,Response", (1, Some(0), Some(2))),
            ("Question,Question Text,Response", (1, Some(0), Some(2))),
            ("Requirement,Requirement Description,Response", (1, Some(0), Some(2))),
            ("Criteria,Criteria Description,Response", (1, Some(0), Some(2))),
            ("Requirement,PCI DSS Question,Response", (1, None, Some(2))),
            ("Control ID,Control,Control Question", (2, Some(0), None)),
            ("ID,Question,Possible Answers", (1, Some(0), None)),
            ("ID,Question,Required Response,Type of response", (1, Some(0), None)),
            ("ID,Question,Acceptable Answer,Vendor Answer", (1, Some(0), Some(3))),
            ("ID,Question,Default Answer,Answer", (1, Some(0), Some(3))),
        ] {
            assert_eq!(columns(header), Some(expected), "{header}");
        }
    }

    #[test]
    fn rows_above_the_header_are_passed_over() {
        let text = "sep=;\nSupplier questions;;\n;;\nDescription;What we ask\nRef;Question;Reply\n";
        let header = find(text).expect("a header");
        assert_eq!((header.row, header.delimiter), (5, b';'));
        assert_eq!(header.columns.answer, Some(2));
    }

    #[test]
    fn a_title_that_speaks_of_questions_is_no_header() {
        for title in [
            "Contact for questions,security@acme.com",
            "Open questions,3",
            "Questions,45",
            "Instructions,Please answer every question",
            "Scope,Production,Vendor questions,0",
            "Subject:,Vendor security review 2026,Ref:,VS-17",
            "Item,Cloud CRM,No.,4711",
        ] {
            let header = find(&format!("{title}\n\nID,Question,Answer\n1,Do you?,Yes\n"));
            assert_eq!(header.map(|header| header.row), Ok(3), "{title}");
        }
        assert!(find("Contact for questions,a@b.c\nName,Colour\n").is_err());
    }

    #[test]
    fn a_row_of_the_table_is_no_header() {
        let text = "Title,Description,Guidance\nAccess,Control,Who?\nA,Is that a question,b\n";
        assert_eq!(find(text).map(|header| header.row), Ok(1));
        let text = "Section,Question\nA,Question\n";
        assert_eq!(find(text).map(|header| header.row), Ok(1));
    }

    #[test]
    fn the_delimiter_is_the_one_that_gives_the_header_most_columns() {
        let text = "Ref;Question, in full;Question;Answer, if any;Question\n";
        assert_eq!(find(text).map(|header| header.delimiter), Ok(b';'));
        assert_eq!(find("Ref\tQuestion\n").map(|header| header.delimiter), Ok(b'\t'));
    }

    #[test]
    fn a_comma_in_a_column_name_does_not_delimit() {
        for (text, expected) in [
            ("Nr;Frage, ausführlich;Antwort\n1;Auch, hier?;Ja\n", (1, Some(0), Some(2))),
            ("ID;Security question, mandatory;Vendor response, free text", (1, Some(0), Some(2))),
            ("Question, or request;Answer\n", (0, None, Some(1))),
        ] {
            let header = find(text).expect(text);
            let columns = header.columns;
            let found = (columns.question, columns.reference, columns.answer);
            assert_eq!((header.delimiter, found), (b';', expected), "{text}");
        }
        assert!(find("Nr;Unsere Frage, ausführlich;Antwort, kurz\n").is_ok());
        assert!(find("Nr;Worum es geht, als Frage;Antwort\n").is_err(), "no column of questions");
    }

    #[test]
    fn a_file_without_a_question_column_is_refused_with_its_headers() {
        let refused = find("Notes\nName;Colour, shade;\"a\nb\"\n1;2;3\n").expect_err("refused");
        assert_eq!(
            refused.hint,
            "The headers found in row 2 are \"Name\", \"Colour, shade\", \"a b\". Rename the \
            column with the questions to \"Question\"."
        );
        assert!(
            find("Question\nDo you?\n").expect_err("one column").hint.contains("next to another")
        );
        assert!(find("Title,Description\n").is_err(), "a title and its description");
        assert!(find("Number of questions,45\n").is_err(), "a count");
    }

    #[test]
    fn no_name_stands_for_two_things() {
        let lists = [QUESTION, NOUN, VAGUE_QUESTION, REFERENCE, ANSWER];
        let all = || lists.iter().flat_map(|list| split_names(list));
        for name in all() {
            assert_eq!(all().filter(|other| plain(other) == plain(name)).count(), 1, "{name}");
        }
    }
}
