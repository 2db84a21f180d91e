//! Messages of a conversation, one document each, so that conversations can be long.

use area_sdk::Scope;
use area_sdk::prelude::*;
use serde_json::{Map, Value};

/// Maximum length of a user's message, in characters.
pub(crate) const MOST_CHARACTERS: usize = 20_000;

/// Maximum length of the assistant's answer, in characters.
pub(crate) const MOST_ANSWER_CHARACTERS: usize = 20_000;

/// Author of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum MessageAuthor {
    /// A user of the workspace wrote the message.
    User,
    /// The assistant wrote the message.
    Assistant,
}

/// A message of a conversation.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Message {
    /// Id of the user who wrote the message; null if the assistant did.
    author_id: Option<Uuid>,
    content: String,
    conversation_id: Uuid,
    created_at: Timestamp,
    id: Uuid,
    role: MessageAuthor,
    /// `citations` of the workspace's records and how the answer was created; null for a user's
    /// message.
    structured: Option<Map<String, Value>>,
}

/// A stored message.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct StoredMessage {
    pub(crate) author_id: Option<Uuid>,
    pub(crate) content: String,
    pub(crate) conversation_id: Uuid,
    /// Position of the message in the conversation, from 0.
    pub(crate) position: u32,
    pub(crate) role: MessageAuthor,
    pub(crate) structured: Option<Map<String, Value>>,
}

document!(StoredMessage, "messages");

impl Message {
    pub(crate) fn id(&self) -> Uuid {
        self.id
    }
}

impl From<Stored<StoredMessage>> for Message {
    fn from(stored: Stored<StoredMessage>) -> Self {
        Self {
            created_at: stored.created_at,
            id: stored.uuid(),
            author_id: stored.value.author_id,
            content: stored.value.content,
            conversation_id: stored.value.conversation_id,
            role: stored.value.role,
            structured: stored.value.structured,
        }
    }
}

/// Trims a user's message and checks its length.
pub(crate) fn content(pointer: &str, given: String) -> Result<String> {
    let count = given.chars().count();
    if given.trim().is_empty() {
        return Err(Problem::validation(pointer, "has no visible character"));
    }
    if count > MOST_CHARACTERS {
        let message = format!("has {count} characters; the maximum is {MOST_CHARACTERS}");
        return Err(Problem::validation(pointer, message).hint("Split it into several messages."));
    }
    Ok(given)
}

/// Stores a user's message in a conversation.
pub(crate) fn say(
    ctx: &Ctx,
    conversation_id: Uuid,
    position: u32,
    content: String,
) -> Result<Message> {
    let value = StoredMessage {
        author_id: Some(ctx.user()),
        content,
        conversation_id,
        position,
        role: MessageAuthor::User,
        structured: None,
    };
    Ok(ctx.documents().create_stored(ctx.new_id(), value)?.into())
}

/// Returns the latest messages of a conversation, oldest first.
pub(crate) fn latest(
    scope: &Scope,
    conversation_id: Uuid,
    limit: u32,
) -> Result<Vec<Stored<StoredMessage>>, area_sdk::DocumentError> {
    let said = scope.documents::<StoredMessage>().query();
    let said = said.equals("conversation_id", conversation_id).descending("position");
    let mut said = said.limit(limit).list()?;
    said.reverse();
    Ok(said)
}

pub(crate) fn list(
    ctx: &Ctx,
    Path(conversation_id): Path<Uuid>,
    paging: Paging,
) -> Result<Page<Message>> {
    crate::conversations::find(ctx, conversation_id)?;
    let said = ctx.documents::<StoredMessage>().query();
    let said = said.equals("conversation_id", conversation_id).descending("position");
    let page = said.paging(paging).page()?;
    Ok(page.map(Message::from))
}
