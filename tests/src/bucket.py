"""An S3-compatible service in memory, moto's, which checks signatures and
rights. It has one key, which may do everything in the bucket `blobs` and
nothing in `closed`. Tells where it is, then answers questions about what it
holds; it ends when there is nobody left to ask."""

import json
import os
import sys
import tempfile
import urllib.request

import boto3
from moto.server import ThreadedMotoServer

server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
_, port = server.get_host_and_port()
endpoint = f"http://127.0.0.1:{port}"


def client(service, key="anybody", secret="anybody"):
    return boto3.client(
        service,
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id=key,
        aws_secret_access_key=secret,
    )


anybody = client("s3")
for bucket in ["blobs", "closed"]:
    anybody.create_bucket(Bucket=bucket)
iam = client("iam")
iam.create_user(UserName="fleet")
statements = [
    {"Effect": "Allow", "Action": ["s3:*"], "Resource": ["*"]},
    {"Effect": "Deny", "Action": ["s3:*"], "Resource": ["arn:aws:s3:::closed", "arn:aws:s3:::closed/*"]},
]
policy = json.dumps({"Version": "2012-10-17", "Statement": statements})
iam.put_user_policy(UserName="fleet", PolicyName="blobs", PolicyDocument=policy)
made = iam.create_access_key(UserName="fleet")["AccessKey"]
key, secret = made["AccessKeyId"], made["SecretAccessKey"]
s3 = client("s3", key, secret)

# From here on every request is checked.
plain = {"Content-Type": "text/plain"}
checked = urllib.request.Request(f"{endpoint}/moto-api/reset-auth", data=b"0", headers=plain)
urllib.request.urlopen(checked).close()

with tempfile.TemporaryDirectory(prefix="assurance-bucket-") as folder:
    file = os.path.join(folder, "credentials")
    with open(os.open(file, os.O_WRONLY | os.O_CREAT, 0o600), "w") as credentials:
        credentials.write(f"[default]\naws_access_key_id = {key}\naws_secret_access_key = {secret}\n")
    print(json.dumps({"endpoint": endpoint, "credentials_file": file, "secret": secret}), flush=True)
    for prefix in map(str.strip, sys.stdin):
        objects = s3.list_objects_v2(Bucket="blobs", Prefix=prefix).get("Contents", [])
        uploads = s3.list_multipart_uploads(Bucket="blobs", Prefix=prefix).get("Uploads", [])
        held = {name: [each["Key"] for each in of] for name, of in [("objects", objects), ("uploads", uploads)]}
        print(json.dumps(held), flush=True)
