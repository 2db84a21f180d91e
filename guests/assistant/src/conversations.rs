//! Conversations with the assistant.

use area_sdk::JobOptions;
use area_sdk::prelude::*;
use area_sdk::text::{ellipsize, first_line, name};

use crate::messages::{self, Message, StoredMessage};
use crate::runs::{self, RequestedModel, Run, StoredRun};
use crate::snapshots;

/// Maximum number of messages and of runs returned with a conversation.
pub(crate) const SHOWN: u32 = 100;

/// Maximum number of messages in a conversation.
const MOST_MESSAGES: u32 = 10_000;

/// Maximum length of a title derived from a message, in characters.
const MOST_TITLE_CHARACTERS: usize = 80;

/// Number of documents that one step of the deletion job deletes.
const BATCH: u32 = 500;

/// A request to create a conversation. The first message is optional.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct NewConversation {
    /// Title of the conversation; by default the beginning of the first message.
    #[schemars(length(min = 1, max = 200))]
    title: Option<String>,
    /// Text of the user's first message; without it, the conversation begins empty.
    #[schemars(length(min = 1, max = 20_000))]
    message: Option<String>,
    /// Id of the model endpoint that answers the first message.
    model_endpoint_id: Option<Uuid>,
    /// Id of the model that answers the first message; `model_endpoint_id` must have it.
    #[schemars(length(min = 1, max = 200))]
    model: Option<String>,
}

/// Status of a conversation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ConversationStatus {
    /// The conversation accepts messages.
    Open,
    /// The conversation is read-only.
    Closed,
}

/// A conversation with its latest messages and runs.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Conversation {
    /// The workspace's context snapshot at the latest message; null before the first message.
    context_snapshot_id: Option<Uuid>,
    created_at: Timestamp,
    created_by: Uuid,
    id: Uuid,
    /// The latest 100 messages, oldest first.
    messages: Vec<Message>,
    /// The latest 100 runs, oldest first.
    runs: Vec<Run>,
    status: ConversationStatus,
    /// Title; null until it is set or derived from the first message.
    title: Option<String>,
    updated_at: Timestamp,
}

/// A conversation in a list.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ConversationSummary {
    context_snapshot_id: Option<Uuid>,
    created_at: Timestamp,
    created_by: Uuid,
    id: Uuid,
    message_count: u32,
    status: ConversationStatus,
    title: Option<String>,
    updated_at: Timestamp,
    version: u64,
}

/// A stored conversation.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct StoredConversation {
    pub(crate) context_snapshot_id: Option<Uuid>,
    pub(crate) created_by: Uuid,
    pub(crate) message_count: u32,
    pub(crate) status: ConversationStatus,
    pub(crate) title: Option<String>,
}

document!(StoredConversation, "conversations");

/// Published when a user creates a conversation.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ConversationCreated {
    conversation_id: Uuid,
    created_by: Uuid,
    title: Option<String>,
}

event!(ConversationCreated, "assistant.conversation_created");

impl Conversation {
    fn new(
        stored: Stored<StoredConversation>,
        messages: Vec<Message>,
        runs: Vec<Run>,
    ) -> Versioned<Self> {
        stored.versioned(|stored| Self {
            context_snapshot_id: stored.context_snapshot_id,
            created_at: stored.created_at,
            created_by: stored.created_by,
            id: stored.uuid(),
            messages,
            runs,
            status: stored.status,
            updated_at: stored.updated_at,
            title: stored.value.title,
        })
    }
}

impl From<Stored<StoredConversation>> for ConversationSummary {
    fn from(stored: Stored<StoredConversation>) -> Self {
        Self {
            context_snapshot_id: stored.context_snapshot_id,
            created_at: stored.created_at,
            created_by: stored.created_by,
            id: stored.uuid(),
            message_count: stored.message_count,
            status: stored.status,
            updated_at: stored.updated_at,
            version: stored.version,
            title: stored.value.title,
        }
    }
}

/// Trims the title of a conversation and checks its length.
fn title(given: &str) -> Result<String> {
    let title = given.trim();
    if title.is_empty() {
        return Err(Problem::validation("/title", "has no visible character"));
    }
    Ok(title.to_owned())
}

/// Returns the beginning of a message, for use as the title of its conversation.
fn beginning(message: &str) -> String {
    ellipsize(first_line(message), MOST_TITLE_CHARACTERS)
}

/// Returns a conversation, or a 404.
pub(crate) fn find(ctx: &Ctx, id: Uuid) -> Result<Stored<StoredConversation>> {
    Ok(ctx.documents::<StoredConversation>().get(id)?)
}

/// Returns a conversation that accepts messages, or an error.
pub(crate) fn open(ctx: &Ctx, id: Uuid) -> Result<Stored<StoredConversation>> {
    let conversation = find(ctx, id)?;
    if conversation.status == ConversationStatus::Closed {
        return Err(Problem::conflict("conversation_closed", "This conversation is closed.")
            .hint("Reopen it, or start another one."));
    }
    if conversation.message_count >= MOST_MESSAGES {
        let detail = "A conversation can have at most 10,000 messages.";
        return Err(Problem::conflict("conversation_full", detail).hint("Start another one."));
    }
    Ok(conversation)
}

pub(crate) fn create(
    ctx: &Ctx,
    Body(new): Body<NewConversation>,
) -> Result<Created<Versioned<Conversation>>> {
    let given = new.title.as_deref().map(title).transpose()?;
    let message = new.message.map(|said| messages::content("/message", said)).transpose()?;
    let title = given.or_else(|| message.as_deref().map(beginning));
    let id = ctx.new_id();
    let (mut said, mut runs) = (Vec::new(), Vec::new());
    if let Some(message) = message {
        let wish = RequestedModel { model_endpoint_id: new.model_endpoint_id, model: new.model };
        let message = messages::say(ctx, id, 0, message)?;
        runs.push(runs::begin(ctx, id, message.id(), wish)?);
        said.push(message);
    }
    let value = StoredConversation {
        context_snapshot_id: snapshots::latest(ctx)?,
        created_by: ctx.user(),
        message_count: u32::from(!said.is_empty()),
        status: ConversationStatus::Open,
        title,
    };
    let stored = ctx.documents().create_stored(id, value)?;
    let title = stored.title.clone();
    ctx.publish(ConversationCreated { conversation_id: id, created_by: ctx.user(), title });
    Ok(Created(Conversation::new(stored, said, runs)))
}

/// Query parameters that filter the list of conversations.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct ListParams {
    /// Only conversations of this user.
    created_by: Option<Uuid>,
    /// Only conversations with this status.
    status: Option<ConversationStatus>,
}

pub(crate) fn list(
    ctx: &Ctx,
    Params(params): Params<ListParams>,
    paging: Paging,
) -> Result<Page<ConversationSummary>> {
    let all = ctx.documents::<StoredConversation>().query();
    let all = all.equals_if("created_by", params.created_by);
    let all = all.equals_if("status", params.status.as_ref().map(name));
    let page = all.paging(paging).page()?;
    Ok(page.map(ConversationSummary::from))
}

/// Returns a conversation with its latest messages and runs.
fn whole(ctx: &Ctx, stored: Stored<StoredConversation>) -> Result<Versioned<Conversation>> {
    let id = stored.uuid();
    let said = messages::latest(ctx, id, SHOWN)?.into_iter().map(Message::from);
    let runs = runs::latest(ctx, id, SHOWN)?.into_iter().map(Run::from);
    Ok(Conversation::new(stored, said.collect(), runs.collect()))
}

pub(crate) fn show(ctx: &Ctx, Path(id): Path<Uuid>) -> Result<Versioned<Conversation>> {
    whole(ctx, find(ctx, id)?)
}

/// Changes of a conversation; absent members keep their values.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct ConversationChanges {
    #[schemars(length(min = 1, max = 200))]
    title: Option<String>,
    status: Option<ConversationStatus>,
}

pub(crate) fn update(
    ctx: &Ctx,
    Path(id): Path<Uuid>,
    Body(changes): Body<ConversationChanges>,
) -> Result<Versioned<Conversation>> {
    let mut conversation = find(ctx, id)?;
    ctx.check_if_match(conversation.version)?;
    if let Some(given) = changes.title {
        conversation.title = Some(title(&given)?);
    }
    conversation.status = changes.status.unwrap_or(conversation.status);
    ctx.documents().replace(&mut conversation)?;
    whole(ctx, conversation)
}

/// A request to post a user's message.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct NewMessage {
    #[schemars(length(min = 1, max = 20_000))]
    content: String,
    /// Id of the model endpoint that answers the message.
    model_endpoint_id: Option<Uuid>,
    /// Id of the model that answers the message; `model_endpoint_id` must have it.
    #[schemars(length(min = 1, max = 200))]
    model: Option<String>,
}

/// Response to a posted message: the stored message and the run that answers it.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "PostedMessage")]
pub(crate) struct PostMessageResponse {
    message: Message,
    run: Run,
}

pub(crate) fn post_message(
    ctx: &Ctx,
    Path(id): Path<Uuid>,
    Body(new): Body<NewMessage>,
) -> Result<Created<PostMessageResponse>> {
    let content = messages::content("/content", new.content)?;
    let mut conversation = open(ctx, id)?;
    runs::check_none_open(ctx, id)?;
    if conversation.title.is_none() {
        conversation.title = Some(beginning(&content));
    }
    let wish = RequestedModel { model_endpoint_id: new.model_endpoint_id, model: new.model };
    let message = messages::say(ctx, id, conversation.message_count, content)?;
    let run = runs::begin(ctx, id, message.id(), wish)?;
    conversation.message_count += 1;
    conversation.context_snapshot_id = run.context_snapshot_id;
    ctx.documents().replace(&mut conversation)?;
    Ok(Created(PostMessageResponse { message, run }))
}

pub(crate) fn remove(ctx: &Ctx, Path(id): Path<Uuid>) -> Result<NoContent> {
    let conversation = find(ctx, id)?;
    ctx.check_if_match(conversation.version)?;
    if conversation.created_by != ctx.user() && ctx.role() < Role::Admin {
        let detail = "Only the user who opened a conversation, or an admin, can delete it.";
        return Err(Problem::permission_denied(detail));
    }
    ctx.documents().delete(&conversation)?;
    let later = JobOptions { resource: Some(id), ..JobOptions::default() };
    ctx.enqueue_with(&DeletedConversationCleanupJob { conversation_id: id }, later);
    Ok(NoContent)
}

/// Job that deletes the messages and runs of a deleted conversation.
#[derive(Serialize, Deserialize)]
pub(crate) struct DeletedConversationCleanupJob {
    conversation_id: Uuid,
}

job!(DeletedConversationCleanupJob, "discard_conversation");

pub(crate) fn discard(
    ctx: &JobCtx,
    job: DeletedConversationCleanupJob,
) -> JobResult<DeletedConversationCleanupJob> {
    let id = job.conversation_id;
    let messages = ctx.documents::<StoredMessage>().query().equals("conversation_id", id);
    let runs = ctx.documents::<StoredRun>().query().equals("conversation_id", id);
    let more = messages.limit(BATCH).delete_page()? > 0 || runs.limit(BATCH).delete_page()? > 0;
    Ok(if more { Outcome::Continue(job) } else { Outcome::Done })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_the_first_line_that_says_something() {
        assert_eq!(beginning("\n  \n Hello there. \nMore"), "Hello there.");
        assert_eq!(beginning(&"é".repeat(81)), format!("{}…", "é".repeat(80)));
    }
}
