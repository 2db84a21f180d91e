//! Common names of the columns of questionnaires.
//!
//! Column names are compared by their letters and digits, in lower case. A line of a list has
//! several names, separated by commas; [`split_names`] returns them one by one.

/// Text for the OpenAPI document: rules of the import.
pub(crate) const DESCRIPTION: &str = "RFC 4180 in UTF-8, with or without a byte order mark; cells \
    are separated by commas, semicolons or tabs, whichever gives the header row most columns; \
    spaces before a quoted cell are skipped. At most 5 MiB, 2,000 questions, 32,767 characters a \
    cell. All or nothing: an invalid file is refused with the row and how to fix it.\n\n\
    The header is the first row with two cells or more and a column with questions, or a later \
    one that has a reference or answer column too, where the first has none or an ambiguous name; \
    rows above it are skipped. Column names are compared by their letters and digits, in lower \
    case, without text in brackets at the end, and by the text before a comma where no column \
    has a known name.\n\n\
    - Questions, best first: question text, question wording, question(s), question description, \
    question details, question/request, requirement text, requirement description, req \
    description, control question, control text, control description, criteria description, \
    query, prompt, inquiry, assessment objective; Frage(n), Fragetext, Fragestellung, \
    Anforderung(en); exigence(s), intitulé de la question, libellé de la question; pregunta(s), \
    requisito(s); domanda, domande; pergunta(s), questão, questões; vraag, vragen; spørgsmål, \
    spørsmål, fråga, frågor, kysymys; pytanie, pytania, otázka, kérdés, întrebare, soru; ερώτηση, \
    вопрос, питання; 问题, 問題, 質問, 質問事項, 질문. Next, in a header row with a reference or answer \
    column, or three columns: anything that ends in question(s) or Frage(n). Next: requirement(s), \
    control(s), criterion, criteria. Last, in such a header row: description, statement, item, \
    item description, item text, topic, subject, text, detail(s), Beschreibung, descripción.\n\
    - References: reference(s), ref, ref id, ref no, reference id, reference number; question id, \
    no, nr, number, ref, reference, #; ques no, ques num, ques id, q id, q no, q #; requirement \
    id, requirement number, req id, req no; control id, control number, control ref; item id, \
    item no, item number; id, no, nr, num, number, #, s no, sl no, sr no, serial no, code, key; \
    Nummer, Referenz, référence, referencia, номер, 番号; else question, control(s), requirement(s), \
    criterion or criteria where the name of the column with questions begins with it.\n\
    - Answers: answer(s), answer text, your answer, response(s), response text, your response, \
    reply; vendor answer, vendor response, vendor reply, supplier answer, supplier response, \
    company response, provider response; yes/no, yes/no/n/a; Antwort(en), réponse(s), réponse du \
    fournisseur, respuesta(s), respuesta del proveedor, risposta, risposte, resposta(s), \
    antwoord, svar, odpowiedź, ответ, 回答, 答案, 답변; anything that ends in answer(s), response(s), \
    réponse(s) or Antwort(en), but for what an answer should or may be: expected, required, \
    acceptable, accepted, possible, allowed, permitted, valid, default, ideal, target, correct, \
    desired, preferred, suggested, recommended, sample, example, model, previous, incident, \
    reviewer, type of. Where no column answers, a warning names the filled columns that are not \
    taken; otherwise, those with names of questions or answers.\n\n\
    Cells are stored unchanged. An answer in the file is stored as `answer`, and the question \
    stays `unanswered` until a user answers it. Blank rows, rows without a question and repeated \
    headers are skipped; duplicates, cells of several lines, cells with text behind their closing \
    quotation mark, and cells that begin as a formula does (`=`, `+`, `-`, `@`, tab, carriage \
    return) are kept; each with a warning that names the row, in the questionnaire's `warnings` \
    and, where it is about a question, in that question's too. The questions are in the order of \
    the file, `position` from 1.";

/// Returns the names in the lines of a list, in their order.
pub(crate) fn split_names<'a>(lines: &'a [&'a str]) -> impl Iterator<Item = &'a str> {
    lines.iter().flat_map(|line| line.split(", "))
}

/// Names of the question column, better ones first. Compared by letters and digits, in lower case.
pub(crate) const QUESTION: &[&str] = &[
    // English
    "question text, question wording, question, questions, question description, question details",
    "question/request, requirement text, requirement description, req description",
    "control question, control text, control description, criteria description, query, prompt",
    "inquiry, assessment objective",
    // German
    "frage, fragen, fragetext, fragestellung, anforderung, anforderungen",
    // French
    "exigence, exigences, intitulé de la question, libellé de la question",
    // Spanish
    "pregunta, preguntas, requisito, requisitos",
    // Italian
    "domanda, domande",
    // Portuguese
    "pergunta, perguntas, questão, questões",
    // Dutch
    "vraag, vragen",
    // Danish, Norwegian, Swedish, Finnish
    "spørgsmål, spørsmål, fråga, frågor, kysymys",
    // Polish, Czech, Hungarian, Romanian, Turkish
    "pytanie, pytania, otázka, kérdés, întrebare, soru",
    // Greek, Russian, Ukrainian
    "ερώτηση, вопрос, питання",
    // Chinese, Japanese, Korean
    "问题, 問題, 質問, 質問事項, 질문",
];

/// Nouns that name the question column, or the one with the numbers or titles of the questions
/// where another column has a name of questions.
pub(crate) const NOUN: &[&str] =
    &["requirement, requirements, control, controls, criterion, criteria"];

/// Ambiguous names of the question column. They count only if the row also names a reference or
/// answer column, or has at least three columns.
pub(crate) const VAGUE_QUESTION: &[&str] = &[
    "description, statement, item, item description, item text, topic, subject, text, detail",
    "details, beschreibung, descripción",
];

/// Names of the column with the customer's references, for example question numbers.
pub(crate) const REFERENCE: &[&str] = &[
    "reference, references, ref, ref id, ref no, reference id, reference number, question id",
    "question no, question nr, question number, question ref, question reference, ques num",
    "ques no, ques id, question #, q id, q no, q #, requirement id, requirement number, req id",
    "req no, control id, control number, control ref, item id, item no, item number, id, no, nr",
    "num, number, #, s no, sl no, sr no, serial no, code, key, nummer, referenz, référence",
    "referencia, номер, 番号",
];

/// Names of the column with answers that the file already has.
pub(crate) const ANSWER: &[&str] = &[
    "answer, answers, answer text, your answer, response, responses, response text, your response",
    "reply, vendor answer, vendor response, vendor reply, supplier answer, supplier response",
    "company response, provider response, yes/no, yes/no/n/a, antwort, antworten, réponse",
    "réponses, réponse du fournisseur, respuesta, respuestas, respuesta del proveedor, risposta",
    "risposte, resposta, respostas, antwoord, svar, odpowiedź, ответ, 回答, 答案, 답변",
];

/// Suffixes of question column names, in lower case.
pub(crate) const QUESTION_ENDS: [&str; 4] = ["question", "questions", "frage", "fragen"];

/// Suffixes of answer column names, in lower case.
pub(crate) const ANSWER_ENDS: [&str; 8] =
    ["answer", "answers", "response", "responses", "réponse", "réponses", "antwort", "antworten"];

/// Prefixes of column names that mean a number of questions or answers.
pub(crate) const COUNTS: [&str; 4] = ["number", "noof", "total", "countof"];

/// Prefixes of column names that mean expected, possible or earlier answers.
pub(crate) const OTHER_ANSWERS: [&str; 23] = [
    "expected",
    "required",
    "acceptable",
    "accepted",
    "possible",
    "allowed",
    "permitted",
    "valid",
    "default",
    "ideal",
    "target",
    "typeof",
    "reviewer",
    "correct",
    "desired",
    "preferred",
    "suggested",
    "recommended",
    "sample",
    "example",
    "model",
    "previous",
    "incident",
];
