//! The assistant (operations 5 and 8): model endpoints and conversations. A model answers from the
//! workspace's records. Without a model, the service answers itself.
//!
//! Both operations are one area because an endpoint's key can be used only by the area that stored
//! it. A message creates a run, and a run enqueues a job. The job collects `facts`, builds a
//! prompt, calls the model, and stores the answer with the records that it cites.

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
use area_shared::queue::JobCancelled;

use answering::CreateAnswerJob;
use conversations::{ConversationCreated, DeletedConversationCleanupJob, StoredConversation};
use endpoints::{ModelEndpointCreated, ModelEndpointDeleted, StoredModelEndpoint};
use messages::StoredMessage;
use runs::{RunCompleted, StoredRun};
use validation::{EndpointValidationFailed, ModelEndpointValidated, ValidateEndpointJob};

/// Declares the area `assistant`: its operations, collections, events and jobs.
pub fn area() -> Area {
    let area = Area::new("assistant", env!("CARGO_PKG_VERSION"))
        .summary("Model endpoints and conversations with the assistant")
        .uses(&[Capability::Secrets, Capability::Egress, Capability::Settings])
        .event::<ModelEndpointCreated>("A model endpoint was created")
        .event::<ModelEndpointDeleted>("A model endpoint was deleted")
        .event::<ModelEndpointValidated>("The validation of a model endpoint succeeded")
        .event::<EndpointValidationFailed>("The validation of a model endpoint failed")
        .event::<ConversationCreated>("A user opened a conversation with the assistant")
        .event::<RunCompleted>("A run of the assistant ended, with or without an answer")
        .job::<ValidateEndpointJob>(Lane::Assistant, 5, 30_000, validation::run)
        .job::<CreateAnswerJob>(
            Lane::Assistant,
            answering::JOB_ATTEMPTS,
            answering::JOB_TIMEOUT_MS,
            answering::run,
        )
        .job::<DeletedConversationCleanupJob>(Lane::Maintenance, 10, 20_000, conversations::discard)
        .on(JobCancelled::NAME, answering::job_cancelled);
    message_routes(conversation_routes(endpoint_routes(collections(area))))
}

fn collections(area: Area) -> Area {
    area.collections([
        Collection::of::<StoredModelEndpoint>()
            .summary("OpenAI-compatible servers, without their keys")
            .unique(&["name"])
            .index(&["active"])
            .readable_by(&["*"]),
        Collection::of::<StoredConversation>()
            .summary("Conversations, without their messages")
            .index(&["created_by"])
            .index(&["status"])
            .readable_by(&["*"]),
        Collection::of::<StoredMessage>()
            .summary("Messages of users and of the assistant")
            .unique(&["conversation_id", "position"])
            .readable_by(&["*"]),
        Collection::of::<StoredRun>()
            .summary("Runs that create answers, with their cost")
            .index(&["conversation_id"])
            .index(&["conversation_id", "status"])
            .index(&["status"])
            .readable_by(&["*"]),
    ])
}

const ENDPOINTS: &str = "/v1/workspaces/{workspace_id}/model-endpoints";
const ENDPOINT: &str = "/v1/workspaces/{workspace_id}/model-endpoints/{model_endpoint_id}";

fn endpoint_routes(area: Area) -> Area {
    area.routes([
        post("create_model_endpoint", ENDPOINTS)
            .summary("Create a model endpoint")
            .description(docs::ENDPOINTS)
            .in_contract()
            .role(Role::Admin)
            .problems(&["name_taken", "too_many_model_endpoints"])
            .example(include_str!("../examples/create_model_endpoint.json"))
            .handler(endpoints::create),
        get("list_model_endpoints", ENDPOINTS)
            .summary("List model endpoints, newest first")
            .description(
                "One page of endpoints, without their keys. `active` selects those that \
                 conversations may use.",
            )
            .example(include_str!("../examples/list_model_endpoints.json"))
            .handler(endpoints::list),
        get("get_model_endpoint", ENDPOINT)
            .summary("Read a model endpoint")
            .description(
                "Without its key, which is never returned. `last_validated_at` and \
                 `last_error_code` have the result of the last validation.",
            )
            .example(include_str!("../examples/get_model_endpoint.json"))
            .handler(endpoints::show),
        patch("update_model_endpoint", ENDPOINT)
            .summary("Change a model endpoint")
            .description(
                "Absent members keep their values; a null `api_key` deletes the credential. A new \
                address, key or list of models is validated again.",
            )
            .role(Role::Admin)
            .problems(&["name_taken"])
            .example(include_str!("../examples/update_model_endpoint.json"))
            .handler(endpoints::update),
        post(
            "validate_model_endpoint",
            "/v1/workspaces/{workspace_id}/model-endpoints/{model_endpoint_id}/validate",
        )
        .summary("Validate a model endpoint again")
        .description("A job validates it; read the endpoint for the result.")
        .role(Role::Admin)
        .example(include_str!("../examples/validate_model_endpoint.json"))
        .handler(endpoints::validate),
        delete("delete_model_endpoint", ENDPOINT)
            .summary("Delete a model endpoint and its key")
            .description(
                "The stored key is deleted with it. Conversations that name no endpoint use \
                 another active one.",
            )
            .role(Role::Admin)
            .handler(endpoints::remove),
    ])
}

const CONVERSATIONS: &str = "/v1/workspaces/{workspace_id}/assistant/conversations";
const CONVERSATION: &str =
    "/v1/workspaces/{workspace_id}/assistant/conversations/{conversation_id}";

fn conversation_routes(area: Area) -> Area {
    area.routes([
        post("create_assistant_conversation", CONVERSATIONS)
            .summary("Open a conversation with the assistant")
            .description(docs::CONVERSATIONS)
            .in_contract()
            .role(Role::Member)
            .rate(RateClass::Heavy)
            .example(include_str!("../examples/create_assistant_conversation.json"))
            .handler(conversations::create),
        get("list_assistant_conversations", CONVERSATIONS)
            .summary("List conversations, newest first")
            .description(
                "One page, without messages. `created_by` and `status` select conversations.",
            )
            .example(include_str!("../examples/list_assistant_conversations.json"))
            .handler(conversations::list),
        get("get_assistant_conversation", CONVERSATION)
            .summary("Read a conversation with its latest messages and runs")
            .description(
                "With the newest messages and runs. `/messages` and `/runs` page through all of \
                 them.",
            )
            .example(include_str!("../examples/get_assistant_conversation.json"))
            .handler(conversations::show),
        patch("update_assistant_conversation", CONVERSATION)
            .summary("Rename, close or reopen a conversation")
            .description(
                "Members that are absent stay as they are. A closed conversation takes no \
                 messages until it is reopened.",
            )
            .example(include_str!("../examples/update_assistant_conversation.json"))
            .handler(conversations::update),
        delete("delete_assistant_conversation", CONVERSATION)
            .summary("Delete a conversation")
            .description("Only the user who opened it, or an admin, can delete it.")
            .handler(conversations::remove),
    ])
}

const MESSAGES: &str =
    "/v1/workspaces/{workspace_id}/assistant/conversations/{conversation_id}/messages";
const RUNS: &str = "/v1/workspaces/{workspace_id}/assistant/conversations/{conversation_id}/runs";

fn message_routes(area: Area) -> Area {
    area.routes([
        post("post_assistant_message", MESSAGES)
            .summary("Send a message in a conversation")
            .description("Only one run of a conversation can be open at a time.")
            .rate(RateClass::Heavy)
            .problems(&["run_in_progress", "conversation_closed", "conversation_full"])
            .example(include_str!("../examples/post_assistant_message.json"))
            .handler(conversations::post_message),
        get("list_assistant_messages", MESSAGES)
            .summary("List the messages of a conversation, newest first")
            .description("One page of messages of users and of the assistant.")
            .example(include_str!("../examples/list_assistant_messages.json"))
            .handler(messages::list),
        get("list_assistant_runs", RUNS)
            .summary("List the runs of a conversation, newest first")
            .description("One page of runs with their tokens and cost. `status` selects runs.")
            .example(include_str!("../examples/list_assistant_runs.json"))
            .handler(runs::list),
        get(
            "get_assistant_run",
            "/v1/workspaces/{workspace_id}/assistant/conversations/{conversation_id}/runs/{run_id}",
        )
        .summary("Read a run")
        .description(
            "A run is the work on one answer. Read it until `status` is `succeeded` or `failed`; \
             `error_code` says why it failed.",
        )
        .example(include_str!("../examples/get_assistant_run.json"))
        .handler(runs::show),
        post(
            "retry_assistant_run",
            "/v1/workspaces/{workspace_id}/assistant/conversations/{conversation_id}/runs/\
             {run_id}/retry",
        )
        .summary("Answer the message of a failed run again")
        .description(
            "Starts a new run for the same message, with the present data of the workspace. A run \
             that has not failed is refused with `run_not_failed`.",
        )
        .rate(RateClass::Heavy)
        .problems(&[
            "run_not_failed",
            "run_in_progress",
            "conversation_closed",
            "conversation_full",
        ])
        .example(include_str!("../examples/retry_assistant_run.json"))
        .handler(runs::retry),
    ])
}

area_sdk::export!(area);

#[cfg(test)]
mod tests;
