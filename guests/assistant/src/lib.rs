//! The assistant (operations 5 and 8): model endpoints, and conversations in
//! which a model, or the service itself where there is none, answers from the
//! workspace's records.
//!
//! Both are one area because the key of an endpoint is sealed for the area
//! that sends with it. A message makes a run, and a run a job: it collects
//! `facts`, puts them into a prompt, asks the model, and keeps the answer
//! with the records it cites.

mod answering;
mod chat;
mod conversations;
mod docs;
mod endpoints;
mod facts;
mod messages;
mod prices;
mod prompt;
mod records;
mod redact;
mod runs;
mod snapshots;
mod specialist;
mod upstream;
mod validation;

use area_sdk::RateClass;
use area_sdk::prelude::*;

use answering::Answer;
use conversations::{ConversationCreated, Discard, StoredConversation};
use endpoints::{EndpointCreated, EndpointDeleted, StoredEndpoint};
use messages::StoredMessage;
use runs::{RunCompleted, StoredRun};
use validation::{EndpointFailed, EndpointValidated, Validate};

/// The area.
pub fn area() -> Area {
    let area = Area::new("assistant", env!("CARGO_PKG_VERSION"))
        .summary("Model endpoints and conversations with the assistant")
        .uses(&[Capability::Secrets, Capability::Egress, Capability::Settings])
        .event::<EndpointCreated>("A model endpoint was set up")
        .event::<EndpointDeleted>("A model endpoint was deleted")
        .event::<EndpointValidated>("A model endpoint was found to work")
        .event::<EndpointFailed>("A model endpoint was found not to work")
        .event::<ConversationCreated>("Somebody opened a conversation with the assistant")
        .event::<RunCompleted>("The assistant has answered, or failed to")
        .job::<Validate>(Lane::Assistant, 5, 30_000, validation::run)
        .job::<Answer>(Lane::Assistant, 6, answering::JOB_TIMEOUT_MS, answering::run)
        .job::<Discard>(Lane::Maintenance, 10, 20_000, conversations::discard);
    message_routes(conversation_routes(endpoint_routes(collections(area))))
}

fn collections(area: Area) -> Area {
    area.collection(
        Collection::of::<StoredEndpoint>()
            .summary("OpenAI-compatible servers, without their keys")
            .text("name")
            .boolean("active")
            .unique(&["name"])
            .index(&["active"])
            .readable_by(&["*"]),
    )
    .collection(
        Collection::of::<StoredConversation>()
            .summary("Conversations, without what was said")
            .text("created_by")
            .text("status")
            .index(&["created_by"])
            .index(&["status"])
            .readable_by(&["*"]),
    )
    .collection(
        Collection::of::<StoredMessage>()
            .summary("What was said, by people and by the assistant")
            .text("conversation_id")
            .integer("position")
            .unique(&["conversation_id", "position"])
            .readable_by(&["*"]),
    )
    .collection(
        Collection::of::<StoredRun>()
            .summary("The making of answers, and what it took")
            .text("conversation_id")
            .text("status")
            .index(&["conversation_id"])
            .index(&["conversation_id", "status"])
            .index(&["status"])
            .readable_by(&["*"]),
    )
}

const ENDPOINTS: &str = "/v1/workspaces/{workspace_id}/model-endpoints";
const ENDPOINT: &str = "/v1/workspaces/{workspace_id}/model-endpoints/{model_endpoint_id}";

fn endpoint_routes(area: Area) -> Area {
    area.route(
        post("create_model_endpoint", ENDPOINTS)
            .summary("Set up a model endpoint")
            .description(docs::ENDPOINTS)
            .in_contract()
            .role(Role::Admin)
            .problems(&["name_taken", "too_many_model_endpoints"])
            .handler(endpoints::create),
    )
    .route(
        get("list_model_endpoints", ENDPOINTS)
            .summary("List model endpoints, newest first")
            .handler(endpoints::list),
    )
    .route(
        get("get_model_endpoint", ENDPOINT)
            .summary("Read a model endpoint")
            .handler(endpoints::show),
    )
    .route(
        patch("update_model_endpoint", ENDPOINT)
            .summary("Change a model endpoint")
            .description(
                "Members that are absent stay; a null `api_key` takes the credential away. A new \
                 address, key or list of models is validated anew.",
            )
            .role(Role::Admin)
            .problems(&["name_taken"])
            .handler(endpoints::update),
    )
    .route(
        post(
            "validate_model_endpoint",
            "/v1/workspaces/{workspace_id}/model-endpoints/{model_endpoint_id}/validate",
        )
        .summary("Have a model endpoint validated again")
        .description("By a job; read the endpoint to see what it found.")
        .role(Role::Admin)
        .handler(endpoints::validate),
    )
    .route(
        delete("delete_model_endpoint", ENDPOINT)
            .summary("Delete a model endpoint and its key")
            .role(Role::Admin)
            .handler(endpoints::remove),
    )
}

const CONVERSATIONS: &str = "/v1/workspaces/{workspace_id}/assistant/conversations";
const CONVERSATION: &str =
    "/v1/workspaces/{workspace_id}/assistant/conversations/{conversation_id}";

fn conversation_routes(area: Area) -> Area {
    area.route(
        post("create_assistant_conversation", CONVERSATIONS)
            .summary("Open a conversation with the assistant")
            .description(docs::CONVERSATIONS)
            .in_contract()
            .role(Role::Member)
            .rate(RateClass::Heavy)
            .handler(conversations::create),
    )
    .route(
        get("list_assistant_conversations", CONVERSATIONS)
            .summary("List conversations, newest first")
            .handler(conversations::list),
    )
    .route(
        get("get_assistant_conversation", CONVERSATION)
            .summary("Read a conversation with its latest messages and runs")
            .handler(conversations::show),
    )
    .route(
        patch("update_assistant_conversation", CONVERSATION)
            .summary("Rename, close or reopen a conversation")
            .handler(conversations::update),
    )
    .route(
        delete("delete_assistant_conversation", CONVERSATION)
            .summary("Delete a conversation")
            .description("By who opened it, or by an admin.")
            .handler(conversations::remove),
    )
}

const MESSAGES: &str =
    "/v1/workspaces/{workspace_id}/assistant/conversations/{conversation_id}/messages";
const RUNS: &str = "/v1/workspaces/{workspace_id}/assistant/conversations/{conversation_id}/runs";

fn message_routes(area: Area) -> Area {
    area.route(
        post("post_assistant_message", MESSAGES)
            .summary("Say something in a conversation")
            .description("One answer is made at a time.")
            .rate(RateClass::Heavy)
            .problems(&["run_in_progress", "conversation_closed", "conversation_full"])
            .handler(conversations::post_message),
    )
    .route(
        get("list_assistant_messages", MESSAGES)
            .summary("List the messages of a conversation, newest first")
            .handler(messages::list),
    )
    .route(
        get("list_assistant_runs", RUNS)
            .summary("List the runs of a conversation, newest first")
            .handler(runs::list),
    )
    .route(
        get(
            "get_assistant_run",
            "/v1/workspaces/{workspace_id}/assistant/conversations/{conversation_id}/runs/{run_id}",
        )
        .summary("Read a run")
        .handler(runs::show),
    )
    .route(
        post(
            "retry_assistant_run",
            "/v1/workspaces/{workspace_id}/assistant/conversations/{conversation_id}/runs/\
             {run_id}/retry",
        )
        .summary("Answer the message of a failed run again")
        .rate(RateClass::Heavy)
        .problems(&[
            "run_not_failed",
            "run_in_progress",
            "conversation_closed",
            "conversation_full",
        ])
        .handler(runs::retry),
    )
}

area_sdk::export!(area);

#[cfg(test)]
mod tests;
