"""As much of S3's interface as Arrow and delta-rs use, in memory, for tests.

Objects appear whole; ``If-None-Match: *`` refuses to replace one, which is what delta-rs builds its
commits on. Signatures are not checked.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import threading
import uuid
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit
from urllib.request import urlopen
from xml.etree import ElementTree
from xml.sax.saxutils import escape

BUCKET = "bucket"
FACTS = "facts-for-the-test"
OPTIONS = {
    "AWS_ACCESS_KEY_ID": "key",
    "AWS_SECRET_ACCESS_KEY": "secret",
    "AWS_REGION": "us-east-1",
    "AWS_ALLOW_HTTP": "true",
}


class SmallS3:
    """The server in a process of its own: delta-rs may hold Python's lock while it waits for it."""

    def __enter__(self) -> SmallS3:
        self._process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        self._endpoint = f"http://127.0.0.1:{int(self._process.stdout.readline())}"
        return self

    @property
    def options(self) -> dict[str, str]:
        return OPTIONS | {"AWS_ENDPOINT_URL": self._endpoint}

    def facts(self) -> dict[str, list[str]]:
        """The keys of all ``objects``, and ``unguarded_commits``."""
        with urlopen(f"{self._endpoint}/{FACTS}") as answer:
            return json.load(answer)

    def __exit__(self, *error: object) -> None:
        self._process.communicate()  # it ends with its input


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.objects: dict[str, bytes] = {}
        self.uploads: dict[str, dict[int, bytes]] = {}
        self.guard = threading.Lock()
        # Commits of Delta tables that would have replaced one of the same number, had there been one.
        self.unguarded_commits: list[str] = []


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # An answer in one packet, sent at once: else every request waits for a delayed acknowledgement.
    wbufsize = 1 << 20
    disable_nagle_algorithm = True
    server: _Server

    def log_message(self, *words: object) -> None:
        pass

    def handle_expect_100(self) -> bool:
        answered = super().handle_expect_100()
        self.wfile.flush()
        return answered

    def _split(self) -> tuple[str, dict[str, str]]:
        parts = urlsplit(self.path)
        query = {k: v[0] for k, v in parse_qs(parts.query, keep_blank_values=True).items()}
        return unquote(parts.path).lstrip("/"), query

    def _body(self) -> bytes:
        content = self._raw()
        if "aws-chunked" not in self.headers.get("Content-Encoding", ""):
            return content
        pieces, rest = [], content
        while rest:
            head, _, rest = rest.partition(b"\r\n")
            length = int(head.split(b";")[0], 16)
            if length == 0:
                break  # checksums follow, which are not checked either
            pieces.append(rest[:length])
            rest = rest[length + 2 :]
        return b"".join(pieces)

    def _raw(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        pieces = []
        while length := int(self.rfile.readline().split(b";")[0], 16):
            pieces.append(self.rfile.read(length))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(pieces)

    def _answer(self, status: int, content: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        if "Content_Length" not in headers:
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def do_PUT(self) -> None:
        key, query = self._split()
        content = self._body()
        tag = _tag(content)
        with self.server.guard:
            if (
                key.endswith(".json")
                and "_delta_log/0" in key
                and "If-None-Match" not in self.headers
            ):
                self.server.unguarded_commits.append(key)
            if "uploadId" in query:
                self.server.uploads[query["uploadId"]][int(query["partNumber"])] = content
            elif self.headers.get("If-None-Match") == "*" and key in self.server.objects:
                self._answer(412, b"<Error><Code>PreconditionFailed</Code></Error>")
                return
            elif "/" in key:
                self.server.objects[key] = content
        self._answer(200, ETag=tag)

    def do_POST(self) -> None:
        key, query = self._split()
        content = self._body()
        with self.server.guard:
            if "delete" in query:
                for found in ElementTree.fromstring(content).iter():
                    if found.tag.endswith("Key"):
                        self.server.objects.pop(f"{key.rstrip('/')}/{found.text}", None)
                self._answer(200, b"<DeleteResult></DeleteResult>")
            elif "uploads" in query:
                upload = uuid.uuid4().hex
                self.server.uploads[upload] = {}
                answer = f"<UploadId>{upload}</UploadId><Key>{escape(key)}</Key>"
                self._answer(200, _xml("InitiateMultipartUploadResult", answer))
            else:
                parts = self.server.uploads.pop(query["uploadId"])
                self.server.objects[key] = b"".join(parts[n] for n in sorted(parts))
                answer = f"<Key>{escape(key)}</Key><ETag>{_tag(b'')}</ETag>"
                self._answer(200, _xml("CompleteMultipartUploadResult", answer))

    def do_GET(self) -> None:
        key, query = self._split()
        if key == FACTS:
            facts = {
                "objects": sorted(self.server.objects),
                "unguarded_commits": self.server.unguarded_commits,
            }
            self._answer(200, json.dumps(facts).encode())
            return
        if "list-type" in query or "/" not in key.rstrip("/"):
            self._answer(200, self._listing(key.split("/")[0], query))
            return
        content = self.server.objects.get(key)
        if content is None:
            self._answer(404, b"<Error><Code>NoSuchKey</Code></Error>")
            return
        facts = {"ETag": _tag(content), "Last_Modified": formatdate(usegmt=True)}
        wanted = self.headers.get("Range")
        if wanted is None:
            self._answer(200, content, **facts)
            return
        first, _, last = wanted.removeprefix("bytes=").partition("-")
        start = int(first) if first else max(0, len(content) - int(last))
        end = min(int(last), len(content) - 1) if first and last else len(content) - 1
        place = f"bytes {start}-{end}/{len(content)}"
        self._answer(206, content[start : end + 1], Content_Range=place, **facts)

    def do_HEAD(self) -> None:
        key, _ = self._split()
        content = self.server.objects.get(key)
        if content is None and key.rstrip("/") != BUCKET:
            self._answer(404, Content_Length="0")
            return
        self._answer(
            200,
            Content_Length=str(len(content or b"")),
            ETag=_tag(content or b""),
            Last_Modified=formatdate(usegmt=True),
        )

    def do_DELETE(self) -> None:
        key, _ = self._split()
        with self.server.guard:
            self.server.objects.pop(key, None)
        self._answer(204)

    def _listing(self, bucket: str, query: dict[str, str]) -> bytes:
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
        after = query.get("start-after", "")
        common, contents = set(), []
        with self.server.guard:
            objects = sorted(self.server.objects.items())
        for full, content in objects:
            name = full.removeprefix(f"{bucket}/")
            if not full.startswith(f"{bucket}/") or not name.startswith(prefix) or name <= after:
                continue
            rest = name[len(prefix) :]
            if delimiter and delimiter in rest:
                common.add(prefix + rest.split(delimiter)[0] + delimiter)
                continue
            contents.append(
                f"<Contents><Key>{escape(name)}</Key><Size>{len(content)}</Size><ETag>"
                f"{_tag(content)}</ETag><LastModified>2026-01-01T00:00:00.000Z</LastModified>"
                "<StorageClass>STANDARD</StorageClass></Contents>"
            )
        shared = (f"<CommonPrefixes><Prefix>{escape(p)}</Prefix></CommonPrefixes>" for p in common)
        facts = (
            f"<Name>{bucket}</Name><Prefix>{escape(prefix)}</Prefix><MaxKeys>100000</MaxKeys>"
            f"<KeyCount>{len(contents) + len(common)}</KeyCount><IsTruncated>false</IsTruncated>"
        )
        return _xml("ListBucketResult", facts + "".join(contents) + "".join(shared))


def _xml(root: str, content: str) -> bytes:
    space = "http://s3.amazonaws.com/doc/2006-03-01/"
    return f'<?xml version="1.0"?><{root} xmlns="{space}">{content}</{root}>'.encode()


def _tag(content: bytes) -> str:
    return f'"{hashlib.md5(content).hexdigest()}"'


if __name__ == "__main__":
    server = _Server()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.stdout.write(f"{server.server_port}\n")
    sys.stdout.flush()
    sys.stdin.read()
