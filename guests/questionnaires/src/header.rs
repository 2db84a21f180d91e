//! Which column is which: the header row, found by the names that people give
//! to the columns of their questionnaires.

use crate::refused::Refused;
use crate::rows::{DELIMITERS, Row, Rows, is_blank};

/// The rules of the import, for the operation's documentation.
pub(crate) const DESCRIPTION: &str = "\
RFC 4180 in UTF-8, with or without a byte order mark; cells are separated by commas, semicolons or \
tabs, whichever gives the header row most columns. At most 5 MiB, 2,000 questions, 32,767 \
characters a cell. All or nothing: a file that cannot be read is refused with the row and what to \
mend in it.\n\n\
The header is the first row with two cells or more and a column with questions; rows above it are \
passed over. Column names are compared by their letters and digits, in lower case, without what \
stands in brackets at the end.\n\n\
- Questions: question(s), question text, question wording, question description, anything that \
ends in question(s), requirement(s), requirement text, requirement description, req description, \
control question, control(s), control text, control description, query, prompt, inquiry, \
criterion, criteria; Frage(n), Fragetext, Fragestellung, Anforderung(en); exigence(s), intitulé de \
la question, libellé de la question; pregunta(s), requisito(s); domanda, domande; pergunta(s), \
questão, questões; vraag, vragen; spørgsmål, spørsmål, fråga, frågor, kysymys; pytanie, pytania, \
otázka, kérdés, întrebare, soru; ερώτηση, вопрос, питання; 问题, 問題, 質問, 질문. In a header row \
with a reference or answer column, or three columns, also: description, statement, item, item \
description, item text, topic, subject, text, detail(s), Beschreibung, descripción.\n\
- References: reference(s), ref, ref id, ref no, reference id, reference number; question id, no, \
nr, number, ref, reference, #; q id, q no, q #; requirement id, requirement number, req id, req \
no; control id, control number, control ref; item id, item no, item number; id, no, nr, num, \
number, #, s no, sl no, sr no, serial no, code, key; Nummer, Referenz, référence, referencia, \
номер.\n\
- Answers: answer(s), answer text, your answer, response(s), response text, your response, reply; \
vendor answer, vendor response, vendor reply, supplier answer, supplier response, company \
response, provider response; Antwort(en), réponse(s), respuesta(s), risposta, risposte, \
resposta(s), antwoord, svar, odpowiedź, ответ, 回答, 答案, 답변.\n\n\
Cells are kept to the character. An answer that is in the file is kept as `answer`, and the \
question stays `unanswered` until somebody answers it here. Blank rows, rows without a question \
and repeated headers are skipped; duplicates, cells of several lines and cells that begin as a \
formula does (`=`, `+`, `-`, `@`, tab, carriage return) are kept; each with a warning that names \
the row, in the questionnaire's `warnings` and, where it is about a question, in that question's \
too. The questions are in the order of the file, `position` from 1.";

/// How many headers a refusal lists.
const MOST_LISTED: usize = 30;

/// Names of the column with the questions, the better ones first. Names are
/// compared by their letters and digits, in lower case.
pub(crate) const QUESTION: [&str; 60] = [
    // English
    "question",
    "questions",
    "question text",
    "question wording",
    "question description",
    "requirement",
    "requirements",
    "requirement text",
    "requirement description",
    "req description",
    "control question",
    "control",
    "controls",
    "control text",
    "control description",
    "query",
    "prompt",
    "inquiry",
    "criterion",
    "criteria",
    // German
    "frage",
    "fragen",
    "fragetext",
    "fragestellung",
    "anforderung",
    "anforderungen",
    // French
    "exigence",
    "exigences",
    "intitulé de la question",
    "libellé de la question",
    // Spanish
    "pregunta",
    "preguntas",
    "requisito",
    "requisitos",
    // Italian
    "domanda",
    "domande",
    // Portuguese
    "pergunta",
    "perguntas",
    "questão",
    "questões",
    // Dutch
    "vraag",
    "vragen",
    // Danish, Norwegian, Swedish, Finnish
    "spørgsmål",
    "spørsmål",
    "fråga",
    "frågor",
    "kysymys",
    // Polish, Czech, Hungarian, Romanian, Turkish
    "pytanie",
    "pytania",
    "otázka",
    "kérdés",
    "întrebare",
    "soru",
    // Greek, Russian, Ukrainian
    "ερώτηση",
    "вопрос",
    "питання",
    // Chinese, Japanese, Korean
    "问题",
    "問題",
    "質問",
    "질문",
];

/// Names that mean the questions only in a header row that is one for sure:
/// with a reference or an answer column beside, or three columns in all.
pub(crate) const VAGUE_QUESTION: [&str; 12] = [
    "description",
    "statement",
    "item",
    "item description",
    "item text",
    "topic",
    "subject",
    "text",
    "detail",
    "details",
    "beschreibung",
    "descripción",
];

/// Names of the column with the customer's own references.
pub(crate) const REFERENCE: [&str; 44] = [
    "reference",
    "references",
    "ref",
    "ref id",
    "ref no",
    "reference id",
    "reference number",
    "question id",
    "question no",
    "question nr",
    "question number",
    "question ref",
    "question reference",
    "question #",
    "q id",
    "q no",
    "q #",
    "requirement id",
    "requirement number",
    "req id",
    "req no",
    "control id",
    "control number",
    "control ref",
    "item id",
    "item no",
    "item number",
    "id",
    "no",
    "nr",
    "num",
    "number",
    "#",
    "s no",
    "sl no",
    "sr no",
    "serial no",
    "code",
    "key",
    "nummer",
    "referenz",
    "référence",
    "referencia",
    "номер",
];

/// Names of the column with answers that were given already.
pub(crate) const ANSWER: [&str; 33] = [
    "answer",
    "answers",
    "answer text",
    "your answer",
    "response",
    "responses",
    "response text",
    "your response",
    "reply",
    "vendor answer",
    "vendor response",
    "vendor reply",
    "supplier answer",
    "supplier response",
    "company response",
    "provider response",
    "antwort",
    "antworten",
    "réponse",
    "réponses",
    "respuesta",
    "respuestas",
    "risposta",
    "risposte",
    "resposta",
    "respostas",
    "antwoord",
    "svar",
    "odpowiedź",
    "ответ",
    "回答",
    "答案",
    "답변",
];

/// Where questions, references and answers are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Columns {
    pub(crate) question: usize,
    pub(crate) reference: Option<usize>,
    pub(crate) answer: Option<usize>,
    /// How many columns the header row names.
    pub(crate) width: usize,
}

/// A header row, and how the text around it is separated.
#[derive(Debug)]
pub(crate) struct Header {
    pub(crate) delimiter: u8,
    /// The row it is in.
    pub(crate) row: usize,
    pub(crate) columns: Columns,
}

/// Letters and digits of a name, in lower case; what stands in brackets at its
/// end ("Question (required)") is no part of it.
fn plain(name: &str) -> String {
    let name = name.trim().trim_end_matches(['*', ':']);
    let name = match (name.rfind(['(', '[']), name.ends_with([')', ']'])) {
        (Some(at), true) if at > 0 => &name[..at],
        _ => name,
    };
    let kept = |c: &char| c.is_alphanumeric() || *c == '#';
    name.chars().filter(kept).flat_map(char::to_lowercase).collect()
}

/// The column with the first of these names that any column has.
fn named(columns: &[String], names: &[&str]) -> Option<usize> {
    names.iter().find_map(|name| {
        let name = plain(name);
        columns.iter().position(|column| *column == name)
    })
}

/// "Security question", "Vendor questions": a column whose name ends so, and
/// does not count them.
fn ends_with_question(columns: &[String]) -> Option<usize> {
    let ends = |name: &str| name.ends_with("question") || name.ends_with("questions");
    let counts =
        |name: &str| ["number", "noof", "total", "count"].iter().any(|c| name.starts_with(c));
    columns.iter().position(|name| ends(name) && !counts(name))
}

impl Columns {
    /// The columns that a row names, if it is a header row.
    fn of(row: &Row) -> Option<Self> {
        let filled = row.filled();
        if filled < 2 {
            return None;
        }
        let names: Vec<String> = row.cells().map(plain).collect();
        let (reference, answer) = (named(&names, &REFERENCE), named(&names, &ANSWER));
        let surely = filled > 2 || reference.is_some() || answer.is_some();
        let question = named(&names, &QUESTION)
            .or_else(|| ends_with_question(&names))
            .or_else(|| named(&names, &VAGUE_QUESTION).filter(|_| surely))?;
        Some(Self { question, reference, answer, width: names.len() })
    }

    /// Does a row repeat the header, as the pages of a long table do?
    pub(crate) fn repeated_by(&self, row: &Row) -> bool {
        Self::of(row).is_some_and(|columns| columns == *self)
    }
}

/// The header row of a text under one delimiter.
fn under(text: &str, delimiter: u8) -> Option<Header> {
    let rows = Rows::new(text, delimiter).map_while(Result::ok);
    rows.filter_map(|row| {
        let columns = Columns::of(&row)?;
        Some(Header { delimiter, row: row.number, columns })
    })
    .next()
}

/// The header row of a text, under the delimiter that gives it most columns.
pub(crate) fn find(text: &str) -> Result<Header, Refused> {
    let found = DELIMITERS.iter().rev().filter_map(|&delimiter| under(text, delimiter));
    found.max_by_key(|header| header.columns.width).ok_or_else(|| no_question_column(text))
}

/// Names the headers there are instead.
fn no_question_column(text: &str) -> Refused {
    let first = |delimiter| {
        let mut rows = Rows::new(text, delimiter).map_while(Result::ok);
        rows.find(|row| row.filled() >= 2)
    };
    let widest = DELIMITERS.iter().rev().filter_map(|&delimiter| first(delimiter));
    let Some(row) = widest.max_by_key(Row::filled) else {
        return Refused::new(
            "The file has no row with two cells or more.",
            "Separate the cells by commas, semicolons or tabs, and give the file a header row \
             with a column named \"Question\" beside another.",
        );
    };
    let headers: Vec<String> =
        row.cells().filter(|cell| !is_blank(cell)).take(MOST_LISTED).map(listed).collect();
    let hint = format!(
        "The headers found in row {} are {}. Name the column with the questions \"Question\".",
        row.number,
        headers.join(", ")
    );
    Refused::new("The file has no column that is named like one with questions.", hint)
}

/// A header as a refusal shows it.
fn listed(cell: &str) -> String {
    const MOST: usize = 60;
    let shown: String = cell.trim().chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    match shown.char_indices().nth(MOST) {
        Some((end, _)) => format!("\"{}…\"", &shown[..end]),
        None => format!("\"{shown}\""),
    }
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
            ("Domain,Vendor security question*", (1, None, None)),
            ("编号,问题,回答", (1, None, Some(2))),
            ("№,ВОПРОС,Ответ", (1, None, Some(2))),
            ("Ref,Description", (1, Some(0), None)),
            ("Title,Description,Guidance", (1, None, None)),
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
    fn the_delimiter_is_the_one_that_gives_the_header_most_columns() {
        let text = "Ref;Question, in full;Question;Answer, if any;Question\n";
        assert_eq!(find(text).map(|header| header.delimiter), Ok(b';'));
        assert_eq!(find("Ref\tQuestion\n").map(|header| header.delimiter), Ok(b'\t'));
    }

    #[test]
    fn a_file_without_a_question_column_is_refused_with_its_headers() {
        let refused = find("Notes\nName;Colour, shade;\"a\nb\"\n1;2;3\n").expect_err("refused");
        assert_eq!(
            refused.hint,
            "The headers found in row 2 are \"Name\", \"Colour, shade\", \"a b\". Name the column \
             with the questions \"Question\"."
        );
        assert!(find("Question\nDo you?\n").expect_err("one column").hint.contains("beside"));
        assert!(find("Title,Description\n").is_err(), "a title and its description");
        assert!(find("Number of questions,45\n").is_err(), "a count");
    }

    #[test]
    fn no_name_stands_for_two_things() {
        let all = || QUESTION.iter().chain(&VAGUE_QUESTION).chain(&REFERENCE).chain(&ANSWER);
        for name in all() {
            assert_eq!(all().filter(|other| plain(other) == plain(name)).count(), 1, "{name}");
        }
    }
}
