//! Conversations with the assistant.

use area_sdk::prelude::*;
use area_sdk::{JobError, Later};

use crate::messages::{self, Message, StoredMessage};
use crate::runs::{self, Run, StoredRun, Wish};
use crate::snapshots;

/// How many messages and runs are shown with a conversation.
pub(crate) const SHOWN: u32 = 100;

/// How many messages a conversation takes.
const MOST_MESSAGES: u32 = 10_000;

/// Most characters of a title that is a message's beginning.
const MOST_TITLE_CHARACTERS: usize = 80;

/// Documents forgotten at a time.
const BATCH: u32 = 500;

/// A conversation to be opened; nothing has to be said.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct NewConversation {
    /// Without one, the beginning of the first message.
    #[schemars(length(min = 1, max = 200))]
    title: Option<String>,
    /// The first message.
    #[schemars(length(min = 1, max = 20_000))]
    message: Option<String>,
    /// Which model endpoint is to answer it.
    model_endpoint_id: Option<Uuid>,
    /// Which of its models.
    #[schemars(length(min = 1, max = 200))]
    model: Option<String>,
}

/// Whether more can be said.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ConversationStatus {
    /// It can.
    Open,
    /// It is kept to be read.
    Closed,
}

impl ConversationStatus {
    fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Closed => "closed",
        }
    }
}

/// A conversation as the contract shows it.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Conversation {
    /// The workspace's context at the latest message; null before there is one.
    context_snapshot_id: Option<Uuid>,
    created_at: Timestamp,
    created_by: Uuid,
    id: Uuid,
    /// The latest 100, oldest first.
    messages: Vec<Message>,
    /// The latest 100, oldest first.
    runs: Vec<Run>,
    status: ConversationStatus,
    /// Null until something gives it one.
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

/// A conversation as it is kept.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct StoredConversation {
    pub(crate) context_snapshot_id: Option<Uuid>,
    pub(crate) created_by: Uuid,
    pub(crate) message_count: u32,
    pub(crate) status: ConversationStatus,
    pub(crate) title: Option<String>,
}

impl Document for StoredConversation {
    const COLLECTION: &'static str = "conversations";
}

/// Told when somebody opened a conversation.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ConversationCreated {
    conversation_id: Uuid,
    created_by: Uuid,
    title: Option<String>,
}

impl Event for ConversationCreated {
    const NAME: &'static str = "assistant.conversation_created";
}

impl Conversation {
    fn new(
        stored: Stored<StoredConversation>,
        messages: Vec<Message>,
        runs: Vec<Run>,
    ) -> Versioned<Self> {
        let version = stored.version;
        let conversation = Self {
            context_snapshot_id: stored.context_snapshot_id,
            created_at: stored.created_at,
            created_by: stored.created_by,
            id: stored.uuid(),
            messages,
            runs,
            status: stored.status,
            updated_at: stored.updated_at,
            title: stored.value.title,
        };
        Versioned(conversation, version)
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

/// A title somebody gave, without the white space around it.
fn title(given: &str) -> Result<String> {
    let title = given.trim();
    if title.is_empty() {
        return Err(Problem::validation("/title", "has no visible character"));
    }
    Ok(title.to_owned())
}

/// The beginning of a message.
fn beginning(message: &str) -> String {
    let line = message.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    match line.char_indices().nth(MOST_TITLE_CHARACTERS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

/// The conversation.
pub(crate) fn find(ctx: &Ctx, id: Uuid) -> Result<Stored<StoredConversation>> {
    Ok(ctx.documents::<StoredConversation>().get(id)?)
}

/// The conversation, if more can be said in it.
pub(crate) fn open(ctx: &Ctx, id: Uuid) -> Result<Stored<StoredConversation>> {
    let conversation = find(ctx, id)?;
    if conversation.status == ConversationStatus::Closed {
        return Err(Problem::conflict("conversation_closed", "This conversation is closed.")
            .hint("Open it again, or begin another one."));
    }
    if conversation.message_count >= MOST_MESSAGES {
        let detail = "A conversation takes 10,000 messages.";
        return Err(Problem::conflict("conversation_full", detail).hint("Begin another one."));
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
    let (id, now) = (ctx.new_id(), ctx.now());
    let (mut said, mut runs) = (Vec::new(), Vec::new());
    if let Some(message) = message {
        let wish = Wish { model_endpoint_id: new.model_endpoint_id, model: new.model };
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
    ctx.documents().create(id, &value)?;
    let title = value.title.clone();
    ctx.publish(ConversationCreated { conversation_id: id, created_by: ctx.user(), title });
    let (id, created_at) = (id.to_string(), now);
    let stored = Stored { id, version: 1, created_at, updated_at: now, value };
    Ok(Created(Conversation::new(stored, said, runs)))
}

/// Which conversations.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct ListParams {
    /// Only conversations of this user.
    created_by: Option<Uuid>,
    /// Only conversations that stand so.
    status: Option<ConversationStatus>,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
    /// How many a page has at most.
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 100))]
    limit: u32,
}

fn default_limit() -> u32 {
    50
}

pub(crate) fn list(
    ctx: &Ctx,
    Params(params): Params<ListParams>,
) -> Result<Page<ConversationSummary>> {
    let all = ctx.documents::<StoredConversation>().query();
    let all = all.equals_if("created_by", params.created_by);
    let all = all.equals_if("status", params.status.map(ConversationStatus::as_str));
    let page = all.cursor(params.cursor).limit(params.limit).page()?;
    Ok(page.map(ConversationSummary::from))
}

/// A conversation with what was said in it lately.
fn whole(ctx: &Ctx, stored: Stored<StoredConversation>) -> Result<Versioned<Conversation>> {
    let id = stored.uuid();
    let said = messages::latest(ctx, id, SHOWN)?.into_iter().map(Message::from);
    let runs = runs::latest(ctx, id, SHOWN)?.into_iter().map(Run::from);
    Ok(Conversation::new(stored, said.collect(), runs.collect()))
}

pub(crate) fn show(ctx: &Ctx, Path(id): Path<Uuid>) -> Result<Versioned<Conversation>> {
    whole(ctx, find(ctx, id)?)
}

/// What is to be changed; what is absent stays.
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

/// What somebody says.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct NewMessage {
    #[schemars(length(min = 1, max = 20_000))]
    content: String,
    /// Which model endpoint is to answer it.
    model_endpoint_id: Option<Uuid>,
    /// Which of its models.
    #[schemars(length(min = 1, max = 200))]
    model: Option<String>,
}

/// What was said, and the run that answers it.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Posted {
    message: Message,
    run: Run,
}

pub(crate) fn post_message(
    ctx: &Ctx,
    Path(id): Path<Uuid>,
    Body(new): Body<NewMessage>,
) -> Result<Created<Posted>> {
    let content = messages::content("/content", new.content)?;
    let mut conversation = open(ctx, id)?;
    runs::check_none_open(ctx, id)?;
    if conversation.title.is_none() {
        conversation.title = Some(beginning(&content));
    }
    let wish = Wish { model_endpoint_id: new.model_endpoint_id, model: new.model };
    let message = messages::say(ctx, id, conversation.message_count, content)?;
    let run = runs::begin(ctx, id, message.id(), wish)?;
    conversation.message_count += 1;
    conversation.context_snapshot_id = run.snapshot();
    ctx.documents().replace(&mut conversation)?;
    Ok(Created(Posted { message, run }))
}

pub(crate) fn remove(ctx: &Ctx, Path(id): Path<Uuid>) -> Result<NoContent> {
    let conversation = find(ctx, id)?;
    ctx.check_if_match(conversation.version)?;
    if conversation.created_by != ctx.user() && ctx.role() < Role::Admin {
        let detail = "A conversation is deleted by who opened it, or by an admin.";
        return Err(Problem::permission_denied(detail));
    }
    ctx.documents().delete(&conversation)?;
    let later = Later { resource: Some(id), ..Later::default() };
    ctx.enqueue_with(&Discard { conversation_id: id }, later);
    Ok(NoContent)
}

/// Forgets what belonged to a conversation that was deleted.
#[derive(Serialize, Deserialize)]
pub(crate) struct Discard {
    conversation_id: Uuid,
}

impl Job for Discard {
    const KIND: &'static str = "discard_conversation";
}

pub(crate) fn discard(ctx: &JobCtx, job: Discard) -> JobResult<Discard> {
    let more = discard_some::<StoredMessage>(ctx, job.conversation_id)?
        || discard_some::<StoredRun>(ctx, job.conversation_id)?;
    Ok(if more { Outcome::Continue(job) } else { Outcome::Done })
}

/// Forgets some documents of a conversation, and says whether there were any.
fn discard_some<T: Document>(ctx: &JobCtx, conversation_id: Uuid) -> Result<bool, JobError> {
    let all = ctx.documents::<T>().query().equals("conversation_id", conversation_id);
    let some = all.limit(BATCH).list()?;
    for document in &some {
        ctx.documents().delete(document)?;
    }
    Ok(!some.is_empty())
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
