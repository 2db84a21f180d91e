"""A tour with the client that openapi-python-client makes of /openapi.json.

Arguments: base URL, e-mail, password, workspace, a SARIF file.
"""

import sys
import time
from pathlib import Path
from uuid import UUID

from workspace_assurance_service_client import Client
from workspace_assurance_service_client.api.auth import get_session, login
from workspace_assurance_service_client.api.catalog import create_repository
from workspace_assurance_service_client.api.control_room import rebuild_control_room
from workspace_assurance_service_client.api.dependencies import list_dependencies
from workspace_assurance_service_client.api.schedules import get_audit, start_audit
from workspace_assurance_service_client.api.support import create_support_case, list_support_cases
from workspace_assurance_service_client.api.uploads import (
    complete_upload,
    create_upload,
    get_upload,
    put_upload_content,
)
from workspace_assurance_service_client.models import (
    ControlRoom,
    Login,
    DependencyInventory,
    NewAudit,
    NewRepository,
    NewSupportCase,
    NewUpload,
    Problem,
    Purpose,
    Repository,
    Session,
    SupportCase,
    Upload,
)
from workspace_assurance_service_client.types import File


def parsed(response, kind):
    assert isinstance(response.parsed, kind), response
    return response.parsed


def until(read, settled):
    for _ in range(600):
        value = read()
        if settled(value):
            return value
        time.sleep(0.1)
    raise AssertionError(value)


base, email, password, workspace, sarif = sys.argv[1:]
workspace = UUID(workspace)

client = Client(base_url=base, raise_on_unexpected_status=True)
problem = parsed(get_session.sync_detailed(client=client), Problem)
assert problem.code == "unauthenticated", problem

credentials = Login(email=email, password=password)
session = parsed(login.sync_detailed(client=client, body=credentials), Session)
client.get_httpx_client().headers["X-CSRF-Token"] = session.csrf_token
assert session.user.email == email

new = NewRepository(name="python", provider="github", default_branch="main")
made = create_repository.sync_detailed(workspace, client=client, body=new)
repository = parsed(made, Repository)
assert made.headers["ETag"] == '"1"', made.headers

content = Path(sarif).read_bytes()
announced = NewUpload(
    filename="shop.sarif",
    content_type="application/json",
    compressed_bytes=len(content),
    repository_id=repository.id,
    purpose=Purpose.AUDIT,
)
upload = parsed(create_upload.sync_detailed(workspace, client=client, body=announced), Upload)
signature = upload.upload_url.split("signature=", 1)[1]
with open(sarif, "rb") as payload:
    stored = put_upload_content.sync_detailed(
        upload.id, client=client, body=File(payload=payload), signature=signature
    )
assert stored.status_code == 200, stored
complete_upload.sync_detailed(workspace, upload.id, client=client)
read = lambda: parsed(get_upload.sync_detailed(workspace, upload.id, client=client), Upload)
until(read, lambda upload: upload.validation_stage == "ready")

audit = start_audit.sync(workspace, client=client, body=NewAudit(repository_id=repository.id))
until(
    lambda: get_audit.sync(workspace, audit.id, client=client),
    lambda audit: audit.state == "completed",
)
room = parsed(rebuild_control_room.sync_detailed(workspace, client=client), ControlRoom)
assert room.snapshots[0].severity_counts.additional_properties, room
inventory = list_dependencies.sync_detailed(workspace, client=client, limit=5)
assert parsed(inventory, DependencyInventory).items == []

wrong = NewSupportCase(subject="", description="Since this morning.")
refused = create_support_case.sync_detailed(
    workspace, client=client, body=wrong, idempotency_key="python-tour-0"
)
assert parsed(refused, Problem).code == "validation_failed"
good = NewSupportCase(subject="Login fails", description="Since this morning.")
case = create_support_case.sync_detailed(
    workspace, client=client, body=good, idempotency_key="python-tour-1"
)
assert parsed(case, SupportCase).status == "open"
cases = list_support_cases.sync(workspace, client=client)
assert [one.id for one in cases] == [case.parsed.id]
print("ok")
