"""What everybody in a workspace should read first: one announcement, which an
administrator publishes and every member reads. `announcements.js` is the same
area in JavaScript.
"""

import json
from datetime import datetime, timedelta, timezone

import wit_world
from componentize_py_types import Err
from wit_world import JobError_Fail
from wit_world.imports import documents
from wit_world.imports.documents import Write_Create, Write_Replace
from wit_world.imports.manifest import (
    BodyKind_Json,
    BodyKind_None_,
    Capability,
    Collection,
    Idempotency,
    Manifest,
    Method,
    RateClass,
    Route,
    WorkspaceSource_Path,
)
from wit_world.imports.types import Problem, ProblemKind, Reply, Role

COLLECTION = "announcements"
CURRENT = "current"
PATH = "/v1/workspaces/{workspace_id}/announcement"
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)

TEXT = {"type": "string", "minLength": 1, "maxLength": 2000}
NEW = {"type": "object", "properties": {"text": TEXT}, "required": ["text"], "additionalProperties": False}
ANNOUNCEMENT = {
    "type": "object",
    "properties": {
        "text": TEXT,
        "author_id": {"type": "string", "format": "uuid"},
        "published_at": {"type": "string", "format": "date-time"},
    },
    "required": ["text", "author_id", "published_at"],
    "additionalProperties": False,
}


class WitWorld(wit_world.WitWorld):
    def describe(self) -> Manifest:
        return Manifest(
            name="announcements",
            version="0.2.0",
            summary="What everybody in a workspace should read first",
            routes=[
                route("publish_announcement", Method.PUT, Role.ADMIN, "Publish the announcement"),
                route("get_announcement", Method.GET, Role.VIEWER, "Read the announcement"),
            ],
            collections=[
                Collection(
                    name=COLLECTION,
                    summary="The current announcement",
                    schema=json.dumps(ANNOUNCEMENT),
                    fields=[],
                    indexes=[],
                    readers=[],
                )
            ],
            blob_readers=[],
            publishes=[],
            subscriptions=[],
            jobs=[],
            capabilities=[Capability.DOCUMENTS, Capability.LOG],
        )

    def handle(self, request) -> Reply:
        return publish(request) if request.operation == "publish_announcement" else read()

    def run(self, job):
        raise Err(JobError_Fail("This area has no jobs."))


def route(operation_id: str, method: Method, least_role: Role, summary: str) -> Route:
    writes = method is Method.PUT
    return Route(
        operation_id=operation_id,
        method=method,
        path=PATH,
        summary=summary,
        description="",
        in_contract=False,
        workspace=WorkspaceSource_Path(),
        least_role=least_role,
        feature_flag=None,
        parameters=[],
        body=BodyKind_Json(json.dumps(NEW)) if writes else BodyKind_None_(),
        max_body_bytes=0,
        success_status=200,
        response=json.dumps(ANNOUNCEMENT),
        problem_codes=[],
        idempotency=Idempotency.OPTIONAL if writes else Idempotency.NONE,
        rate=RateClass.STANDARD if writes else RateClass.LIGHT,
        writes=writes,
        deadline_ms=0,
    )


def publish(request) -> Reply:
    now = EPOCH + timedelta(microseconds=request.call.now)
    announcement = json.dumps({
        "text": json.loads(request.body.value)["text"],
        "author_id": request.actor.user,
        "published_at": now.isoformat().replace("+00:00", "Z"),
    })
    known = documents.get(COLLECTION, CURRENT)
    if known:
        write = Write_Replace((CURRENT, known.version, announcement))
    else:
        write = Write_Create((CURRENT, announcement))
    [version] = documents.apply(COLLECTION, [write])
    return Reply(body=announcement, version=version, replayed=False)


def read() -> Reply:
    known = documents.get(COLLECTION, CURRENT)
    if not known:
        raise Err(Problem(
            kind=ProblemKind.NOT_FOUND,
            code=None,
            detail="Nothing has been announced yet.",
            hint=None,
            violations=[],
        ))
    return Reply(body=known.body, version=known.version, replayed=False)
