//! The chat completions protocol: requests and responses.

use area_sdk::prelude::*;
use area_sdk::text::ellipsize;
use serde_json::{Map, Value, json};

use crate::messages::{MOST_ANSWER_CHARACTERS, MessageAuthor};
use crate::prices::TokenCounts;
use crate::upstream::ModelRequestFailure;

/// Maximum number of tokens of an answer.
const MOST_OUTPUT_TOKENS: u32 = 2_000;

/// Maximum length of a model name that a response reports, in characters.
const MOST_WORD_CHARACTERS: usize = 200;

/// Names of the request member that limits the tokens of an answer. Newer OpenAI models refuse the
/// older name; other servers support only the older one.
const BOUNDS: [&str; 2] = ["max_tokens", "max_completion_tokens"];

/// One message of the prompt: author and text.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct PromptMessage {
    pub(crate) role: MessageAuthor,
    pub(crate) content: String,
}

/// Returns the body of a chat completion request. `rules` is the system message, `said` the other
/// messages.
pub(crate) fn request(model: &str, rules: &str, said: &[PromptMessage]) -> Map<String, Value> {
    let mut messages = vec![json!({ "role": "system", "content": rules })];
    messages.extend(said.iter().map(|said| json!(said)));
    let mut body = Map::new();
    body.insert("model".to_owned(), json!(model));
    body.insert("messages".to_owned(), Value::Array(messages));
    body.insert(BOUNDS[0].to_owned(), json!(MOST_OUTPUT_TOKENS));
    body.insert("stream".to_owned(), json!(false));
    body
}

/// Returns the request body with the other name of the token limit, if the server refused the first
/// name.
pub(crate) fn renamed_bound(
    body: &Map<String, Value>,
    refusal: &[u8],
) -> Option<Map<String, Value>> {
    let refusal: Value = serde_json::from_slice(refusal).ok()?;
    let about = refusal["error"]["param"] == BOUNDS[0]
        || refusal["error"]["message"].as_str().is_some_and(|text| text.contains(BOUNDS[1]));
    let mut body = body.clone();
    let bound = body.remove(BOUNDS[0]).filter(|_| about)?;
    body.insert(BOUNDS[1].to_owned(), bound);
    Some(body)
}

/// The answer in a model's response, with the model's name and the token counts.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Completion {
    pub(crate) content: String,
    /// Name of the model, as the server's response has it; `None` if the response names none.
    pub(crate) model: Option<String>,
    pub(crate) finish_reason: Option<String>,
    /// Token counts of the request; `None` if the server does not report them.
    pub(crate) tokens: Option<TokenCounts>,
}

#[derive(Deserialize)]
struct CompletionResponse {
    choices: Vec<CompletionChoice>,
    model: Option<String>,
    /// Token counts in any shape; [`tokens`] parses them separately.
    usage: Option<Value>,
}

#[derive(Deserialize)]
struct CompletionChoice {
    message: CompletionAnswer,
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct CompletionAnswer {
    content: Option<String>,
    refusal: Option<String>,
}

#[derive(Deserialize)]
struct TokenUsage {
    prompt_tokens: u32,
    completion_tokens: u32,
    prompt_tokens_details: Option<PromptTokensDetails>,
}

#[derive(Deserialize)]
struct PromptTokensDetails {
    cached_tokens: Option<u32>,
}

/// Parses the response to a chat completion request.
pub(crate) fn read(body: &[u8]) -> Result<Completion, ModelRequestFailure> {
    let body: CompletionResponse =
        serde_json::from_slice(body).map_err(|_| ModelRequestFailure::invalid())?;
    let choice = body.choices.into_iter().next().ok_or_else(ModelRequestFailure::invalid)?;
    if choice.finish_reason.as_deref() == Some("content_filter") {
        return Err(ModelRequestFailure::lasting("content_filtered"));
    }
    let content = choice.message.content.or(choice.message.refusal).unwrap_or_default();
    let content = clean(&content, MOST_ANSWER_CHARACTERS);
    if content.is_empty() {
        return Err(ModelRequestFailure::lasting("empty_answer"));
    }
    Ok(Completion {
        content,
        model: body.model.map(|model| clean(&model, MOST_WORD_CHARACTERS)),
        finish_reason: choice.finish_reason.map(|why| clean(&why, MOST_WORD_CHARACTERS)),
        tokens: body.usage.and_then(tokens),
    })
}

/// Parses the token counts in a model's response; `None` if they are invalid.
fn tokens(usage: Value) -> Option<TokenCounts> {
    let usage: TokenUsage = serde_json::from_value(usage).ok()?;
    let cached = usage.prompt_tokens_details.and_then(|details| details.cached_tokens);
    Some(TokenCounts {
        input: usage.prompt_tokens,
        cached_input: cached.unwrap_or_default().min(usage.prompt_tokens),
        output: usage.completion_tokens,
    })
}

/// Removes characters that documents cannot store from a text, and limits the length of the text.
fn clean(text: &str, most_characters: usize) -> String {
    ellipsize(&text.trim().replace('\0', "\u{fffd}"), most_characters)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(message: Value, rest: Value) -> Result<Completion, ModelRequestFailure> {
        let mut body = json!({ "choices": [{ "message": message, "finish_reason": "stop" }] });
        if let (Some(body), Some(rest)) = (body.as_object_mut(), rest.as_object()) {
            body.extend(rest.clone());
        }
        read(body.to_string().as_bytes())
    }

    #[test]
    fn usage_is_read_with_what_was_cached() {
        let details = json!({ "cached_tokens": 90 });
        let usage = json!({ "prompt_tokens": 100, "completion_tokens": 7,
            "prompt_tokens_details": details, "total_tokens": 107 });
        let read =
            answer(json!({ "content": " Yes. \0" }), json!({ "usage": usage, "model": "m" }));
        let tokens = Some(TokenCounts { input: 100, cached_input: 90, output: 7 });
        assert_eq!(
            read,
            Ok(Completion {
                content: "Yes. \u{fffd}".to_owned(),
                model: Some("m".to_owned()),
                finish_reason: Some("stop".to_owned()),
                tokens,
            })
        );
        let uncounted = answer(json!({ "content": null, "refusal": "No." }), json!({}));
        assert_eq!(uncounted.map(|read| (read.content, read.tokens)), Ok(("No.".to_owned(), None)));
    }

    #[test]
    fn what_is_no_answer_has_a_code() {
        let code = |result: Result<Completion, ModelRequestFailure>| {
            result.map_err(|failure| failure.code)
        };
        assert_eq!(code(read(b"<html>")), Err("invalid_answer"));
        assert_eq!(code(read(b"{\"choices\":[]}")), Err("invalid_answer"));
        assert_eq!(code(answer(json!({ "content": "  " }), json!({}))), Err("empty_answer"));
        let filtered = r#"{"choices":[{"message":{},"finish_reason":"content_filter"}]}"#;
        assert_eq!(code(read(filtered.as_bytes())), Err("content_filtered"));
        let odd = answer(json!({ "content": "x" }), json!({ "usage": { "prompt_tokens": -1 } }));
        assert_eq!(
            odd.map(|read| read.tokens),
            Ok(None),
            "the answer is worth more than its count"
        );
    }

    #[test]
    fn an_answer_is_cut_at_a_character() {
        let long = answer(json!({ "content": "é".repeat(MOST_ANSWER_CHARACTERS + 5) }), json!({}));
        let content = long.expect("an answer").content;
        assert_eq!(content.chars().count(), MOST_ANSWER_CHARACTERS + 1);
        assert!(content.ends_with('…'));
    }

    #[test]
    fn the_bound_gets_its_other_name_when_the_server_says_so() {
        let body = request("m", "rules", &[]);
        let refusal =
            br#"{"error":{"message":"Use 'max_completion_tokens' instead.","param":"max_tokens"}}"#;
        let renamed = renamed_bound(&body, refusal).expect("another go");
        assert_eq!(renamed.get(BOUNDS[0]), None);
        assert_eq!(renamed[BOUNDS[1]], json!(MOST_OUTPUT_TOKENS));
        assert_eq!(renamed_bound(&renamed, refusal), None, "once");
        assert_eq!(renamed_bound(&body, br#"{"error":{"message":"no"}}"#), None);
    }
}
