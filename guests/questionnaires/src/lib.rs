//! Questionnaires (operation 18): questions of customers in CSV files, answers, their sources and
//! approvals.
//!
//! `import` converts a file to questions with `text` (encoding), `rows` (RFC 4180) and `header`
//! (columns). Sources of answers are stored as citations of evidence and audits, and compared with
//! newer ones.

mod citations;
mod cite;
mod export;
mod formula;
#[cfg(not(target_arch = "wasm32"))]
pub mod fuzzing;
mod header;
mod import;
mod names;
mod questionnaires;
mod questions;
mod refused;
mod review;
mod rows;
mod sources;
mod text;

use area_sdk::RateClass;
use area_sdk::prelude::*;

use citations::StoredCitation;
use questionnaires::{
    DiscardQuestionnaireJob, ImportWarnings, QuestionnaireApproved, QuestionnaireDeleted,
    QuestionnaireImported, StoredQuestionnaire,
};
use questions::{AnswerApproved, QuestionAnswered, StoredQuestion};

/// Declares the area `questionnaires`: its operations, collections, events and jobs.
pub fn area() -> Area {
    let area = Area::new("questionnaires", env!("CARGO_PKG_VERSION"))
        .summary("Questionnaires, their answers and approvals")
        .uses(&[Capability::Crypto])
        .event::<QuestionnaireImported>("A questionnaire was imported")
        .event::<QuestionAnswered>("A question of a questionnaire was answered")
        .event::<AnswerApproved>("An answer was approved")
        .event::<QuestionnaireApproved>("The last answer of a questionnaire was approved")
        .event::<QuestionnaireDeleted>("A questionnaire was deleted")
        .on("evidence_envelope.accepted", review::evidence)
        .on("audit.completed", review::audit)
        .job::<DiscardQuestionnaireJob>(Lane::Maintenance, 10, 20_000, questionnaires::discard);
    question_routes(questionnaire_routes(collections(area)))
}

fn collections(area: Area) -> Area {
    area.collections([
        Collection::of::<StoredQuestionnaire>()
            .summary("One for each imported file")
            .readable_by(&["*"]),
        Collection::of::<ImportWarnings>()
            .summary("Warnings of an import, under its questionnaire's id"),
        Collection::of::<StoredQuestion>()
            .summary("Questions and their answers")
            .index(&["questionnaire_id", "position"])
            .index(&["questionnaire_id", "status", "position"])
            .index(&["status"])
            .readable_by(&["*"]),
        Collection::of::<StoredCitation>()
            .summary("Citations of answers")
            .index(&["questionnaire_id"])
            .index(&["question_id", "position"])
            .index(&["source_key", "looked_at"])
            .index(&["repository_id", "looked_at"])
            .readable_by(&["*"]),
    ])
}

/// Maximum size of the multipart form that imports a questionnaire, without the file, in bytes.
const FORM_BYTES: u64 = 64 * 1024;

/// Maximum size of the form part `title`, in bytes. Larger than the character limit, so that the
/// error for a long title names the character limit.
const TITLE_BYTES: u64 = 4096;

/// Deadline of operations that read all warnings, questions and citations, in milliseconds.
const LONG_MS: u32 = 10_000;

const QUESTIONNAIRES: &str = "/v1/workspaces/{workspace_id}/questionnaires";
const QUESTIONNAIRE: &str = "/v1/workspaces/{workspace_id}/questionnaires/{questionnaire_id}";

fn questionnaire_routes(area: Area) -> Area {
    area.routes([
        post("import_questionnaire", "/v1/workspaces/{workspace_id}/questionnaires/import")
            .summary("Import a questionnaire from a CSV file")
            .description(names::DESCRIPTION)
            .in_contract()
            .role(Role::Member)
            .file("file", "The CSV file, in UTF-8.", import::MOST_BYTES)
            .part("title", "Title, 1 to 200 characters.", TITLE_BYTES)
            .max_body_bytes(import::MOST_BYTES + FORM_BYTES)
            .rate(RateClass::Heavy)
            .deadline_ms(LONG_MS)
            .problems(&["too_many_questionnaires"])
            .example(include_str!("../examples/import_questionnaire.json"))
            .handler(questionnaires::import),
        get("list_questionnaires", QUESTIONNAIRES)
            .summary("List questionnaires, newest first")
            .description("One page, each with its number of questions and of approved answers.")
            .example(include_str!("../examples/list_questionnaires.json"))
            .handler(questionnaires::list),
        get("get_questionnaire", QUESTIONNAIRE)
            .summary("Read a questionnaire")
            .description(
                "The `ETag` of the response is the version that a change names in `If-Match`.",
            )
            .example(include_str!("../examples/get_questionnaire.json"))
            .handler(questionnaires::show),
        patch("update_questionnaire", QUESTIONNAIRE)
            .summary("Rename a questionnaire")
            .description(
                "Only the title can change. The `ETag` of the response is the version that a \
                 change names in `If-Match`.",
            )
            .example(include_str!("../examples/update_questionnaire.json"))
            .handler(questionnaires::update),
        delete("delete_questionnaire", QUESTIONNAIRE)
            .summary("Delete a questionnaire with its questions and answers")
            .description(
                "Cannot be undone. Its questions and answers are deleted by a job shortly \
                 afterwards.",
            )
            .role(Role::Admin)
            .handler(questionnaires::remove),
        get(
            "export_questionnaire",
            "/v1/workspaces/{workspace_id}/questionnaires/{questionnaire_id}/export",
        )
        .summary("Export a questionnaire as CSV")
        .description(
            "The file is the member `csv`: RFC 4180, UTF-8, questions in their order. A cell that \
            begins with `=`, `+`, `-`, `@`, a tab or a carriage return is prefixed with an \
            apostrophe, so that no spreadsheet evaluates it. A file of more than 2 MiB is \
            returned in parts: repeat the request with `next_cursor` and append the parts.",
        )
        .rate(RateClass::Standard)
        .deadline_ms(LONG_MS)
        .example(include_str!("../examples/export_questionnaire.json"))
        .handler(export::export),
    ])
}

const QUESTIONS: &str = "/v1/workspaces/{workspace_id}/questionnaires/{questionnaire_id}/questions";
const QUESTION: &str =
    "/v1/workspaces/{workspace_id}/questionnaires/{questionnaire_id}/questions/{question_id}";

fn question_routes(area: Area) -> Area {
    area.routes([
        get("list_questions", QUESTIONS)
            .summary("List the questions of a questionnaire, in the order of its file")
            .description("One page with answers and citations. `status` selects questions.")
            .example(include_str!("../examples/list_questions.json"))
            .handler(questions::list),
        get("get_question", QUESTION)
            .summary("Read a question")
            .description(
                "With its answer, citations and review. The `ETag` of the response is the version \
                 that a change names in `If-Match`.",
            )
            .example(include_str!("../examples/get_question.json"))
            .handler(questions::show),
        patch("answer_question", QUESTION)
            .summary("Answer a question")
            .description(ANSWERING)
            .example(include_str!("../examples/answer_question.json"))
            .handler(questions::update),
        post(
            "approve_answer",
            "/v1/workspaces/{workspace_id}/questionnaires/{questionnaire_id}/questions/\
             {question_id}/approve",
        )
        .summary("Approve an answer")
        .description(
            "The question stores who approved it and when. An answer from the file has no author: \
            send it once before it can be approved.",
        )
        .role(Role::Admin)
        .problems(&["question_unanswered"])
        .example(include_str!("../examples/approve_answer.json"))
        .if_match()
        .handler(questions::approve),
        post(
            "withdraw_approval",
            "/v1/workspaces/{workspace_id}/questionnaires/{questionnaire_id}/questions/\
             {question_id}/withdraw-approval",
        )
        .summary("Withdraw the approval of an answer")
        .description(
            "The answer can be changed again afterwards. Without an approval nothing changes.",
        )
        .role(Role::Admin)
        .example(include_str!("../examples/withdraw_approval.json"))
        .if_match()
        .handler(questions::withdraw_approval),
    ])
}

/// Text for the OpenAPI document: how questions are answered.
const ANSWERING: &str = "Absent members keep their values; null deletes `answer` or \
    `review_notes`; `citations` are replaced as a whole. A change of the answer or its citations \
    withdraws an approval.\n\n\
    A citation names evidence records, a completed audit (`report_id`), or both; its data comes \
    from these, not from the request. `content_sha256`, `source_key` and `observed_at` are those \
    of the newest evidence named, `report_revision` is the audit's version. Its `status` is \
    `current`, `aged` (not confirmed by evidence of the same content for 90 days) or `superseded` \
    (newer evidence of the kind and about the subject of any evidence named has other content, or \
    the repository has a newer completed audit); the latter two are `stale`.\n\n\
    `answer_basis` is `supported` if there are citations and all are current, `partial` if some \
    are, otherwise `unsupported`.";

area_sdk::export!(area);

#[cfg(test)]
mod tests;
