"""Where the warehouse lies: one place that knows local folders from object stores.

Everything else names files relative to the warehouse and goes through `Storage`: delta-rs gets its
``storage_options``, Arrow a file system, Spark a URI and its own settings, all from the same URL
and options. Foreign exceptions become ours here.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pyarrow as pa
from deltalake.exceptions import DeltaError
from pyarrow import fs

from viewkeeper.addresses import is_loopback
from viewkeeper.errors import UsageError, WarehouseError

# Spark expands these in a path, delta-rs does not.
_GLOB = set("*?[]{}\\")
_SPARK_SCHEMES = {"s3": "s3a"}
_S3A = {
    "AWS_ACCESS_KEY_ID": "spark.hadoop.fs.s3a.access.key",
    "AWS_SECRET_ACCESS_KEY": "spark.hadoop.fs.s3a.secret.key",
    "AWS_SESSION_TOKEN": "spark.hadoop.fs.s3a.session.token",
    "AWS_ENDPOINT_URL": "spark.hadoop.fs.s3a.endpoint",
    "AWS_REGION": "spark.hadoop.fs.s3a.endpoint.region",
}


@dataclass(frozen=True)
class Storage:
    """A warehouse's root and the options to reach it. Options may be secrets and are never shown."""

    root: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def at(cls, location: str | Path, options: Mapping[str, str] | None = None) -> Storage:
        """From what the user wrote: a folder, a ``file://`` URL or an object store's URL."""
        text = str(location)
        parts = urlsplit(text)
        if parts.password or parts.username:
            raise UsageError(
                "secret-in-url",
                "the warehouse's path must not carry a user name or a password",
                hint="put credentials into the warehouse's options",
            )
        if len(parts.scheme) > 1 and parts.scheme != "file":
            store = cls(text.rstrip("/"), dict(options or {}))
            if store.is_in_the_clear and store._upper.get("AWS_ALLOW_HTTP", "").lower() != "true":
                raise UsageError(
                    "insecure-link",
                    "the warehouse's store would be spoken to without TLS",
                    detail=f"expected https, found {store._upper['AWS_ENDPOINT_URL']}",
                    hint='write https:// into AWS_ENDPOINT_URL; or AWS_ALLOW_HTTP = "true", if the'
                    " network itself is trusted",
                )
            return store
        folder = unquote(parts.path) if parts.scheme == "file" else text
        if forbidden := sorted(_GLOB & set(folder)):
            raise UsageError(
                "bad-warehouse-path",
                f"the warehouse can't lie in {folder}",
                detail=f"Spark takes {' '.join(forbidden)} for a pattern",
                hint="choose a folder without these characters",
            )
        return cls(str(Path(folder).expanduser().absolute()), dict(options or {}))

    @property
    def scheme(self) -> str:
        """``file`` for a local folder."""
        parts = urlsplit(self.root)
        return parts.scheme if len(parts.scheme) > 1 else "file"

    @property
    def is_in_the_clear(self) -> bool:
        """Whether others on the way to the store can read and change what is sent."""
        endpoint = urlsplit(self._upper.get("AWS_ENDPOINT_URL", ""))
        return endpoint.scheme == "http" and not is_loopback(endpoint.hostname or "")

    @property
    def is_local(self) -> bool:
        return self.scheme == "file"

    def uri(self, *parts: str) -> str:
        """A place in the warehouse as delta-rs names it."""
        return "/".join((self.root, *parts))

    def spark_uri(self, *parts: str) -> str:
        """The same place as Spark names it; a local one gets its scheme, whatever the default is."""
        if self.is_local:
            return "file://" + self.uri(*parts)
        rest = self.uri(*parts).split("://", 1)[1]
        return f"{_SPARK_SCHEMES.get(self.scheme, self.scheme)}://{rest}"

    def spark_settings(self) -> dict[str, str]:
        """The settings with which a Spark session reaches the same store (S3; else the ambient ones)."""
        if self.scheme not in ("s3", "s3a"):
            return {}
        known = {_S3A[name]: value for name, value in self._upper.items() if name in _S3A}
        if "AWS_ENDPOINT_URL" in self._upper:
            known["spark.hadoop.fs.s3a.path.style.access"] = "true"
        return known

    @cached_property
    def _upper(self) -> dict[str, str]:
        return {name.upper(): value for name, value in self.options.items()}

    # -- files ------------------------------------------------------------------------------------

    @cached_property
    def filesystem(self) -> fs.FileSystem:
        """Arrow's way to the same files; paths come from `path`."""
        if self.is_local:
            return fs.LocalFileSystem()
        if self.scheme in ("s3", "s3a"):
            return fs.S3FileSystem(**self._s3_arguments())
        return fs.FileSystem.from_uri(self.root)[0]

    def _s3_arguments(self) -> dict[str, str]:
        names = {
            "AWS_ACCESS_KEY_ID": "access_key",
            "AWS_SECRET_ACCESS_KEY": "secret_key",
            "AWS_SESSION_TOKEN": "session_token",
            "AWS_REGION": "region",
            "AWS_ENDPOINT_URL": "endpoint_override",
        }
        found = {names[k]: v for k, v in self._upper.items() if k in names}
        if "endpoint_override" in found:
            endpoint = urlsplit(found["endpoint_override"])
            found["endpoint_override"] = endpoint.netloc
            found["scheme"] = endpoint.scheme
        return found

    def path(self, *parts: str) -> str:
        """A place in the warehouse as Arrow's file system names it."""
        if self.is_local:
            return self.uri(*parts)
        split = urlsplit(self.root)
        return "/".join((split.netloc + split.path, *parts))

    def make_folder(self, *parts: str) -> None:
        """Make a folder, durably, unless it is there."""
        with storage_errors(f"create {self.uri(*parts)}"):
            if self.filesystem.get_file_info(self.path(*parts)).type == fs.FileType.Directory:
                return
            if self.is_local:
                # Its owner's alone, whatever the umask says: then all that lies below it is, too.
                os.makedirs(self.root, mode=0o700, exist_ok=True)
            self.filesystem.create_dir(self.path(*parts), recursive=True)
        below = "/".join(parts).split("/")
        self.sync(*(self.path(*below[:depth]) for depth in range(len(below) + 1)))

    def read_bytes(self, *parts: str) -> bytes | None:
        """A small file, or None when there is none."""
        with storage_errors(f"read {self.uri(*parts)}"):
            try:
                with self.filesystem.open_input_stream(self.path(*parts)) as stream:
                    return bytes(stream.read())
            except FileNotFoundError:
                return None

    def write_bytes(self, content: bytes, *parts: str) -> None:
        """Replace a small file; on a local folder readers see the old content or the new one."""
        with storage_errors(f"write {self.uri(*parts)}"):
            target = self.path(*parts)
            written = f"{target}.new" if self.is_local else target
            with self.filesystem.open_output_stream(written) as stream:
                stream.write(content)
            if self.is_local:
                os.replace(written, target)

    def write_new(self, content: pa.Buffer, *parts: str) -> None:
        """Write a file that nothing names yet, durably."""
        path = self.path(*parts)
        with storage_errors(f"write {self.uri(*parts)}"):
            try:
                with self.filesystem.open_output_stream(path) as stream:
                    stream.write(content)
            except OSError:
                # Half a file is of no use, and on a full disk its space is needed.
                self.remove_file(path)
                raise
        self.sync(path)

    def list_files(self, *parts: str) -> list[fs.FileInfo]:
        """All files below a place, sorted by path; none when there is no such place."""
        selector = fs.FileSelector(self.path(*parts), allow_not_found=True, recursive=True)
        with storage_errors(f"list {self.uri(*parts)}"):
            found = self.filesystem.get_file_info(selector)
        return sorted((i for i in found if i.type == fs.FileType.File), key=lambda info: info.path)

    def remove_file(self, path: str) -> None:
        """Delete one file (a path of the file system); it may be gone already."""
        with storage_errors(f"delete {path}"):
            try:
                self.filesystem.delete_file(path)
            except FileNotFoundError:
                return

    def remove_tree(self, *parts: str) -> None:
        with storage_errors(f"delete {self.uri(*parts)}"):
            if self.filesystem.get_file_info(self.path(*parts)).type != fs.FileType.NotFound:
                self.filesystem.delete_dir(self.path(*parts))

    # -- durability -------------------------------------------------------------------------------

    def sync(self, *paths: str) -> None:
        """Make files or folders (paths of the file system), and their place in their parent folders,
        survive a power cut.

        Object stores acknowledge only what is durable; a local file system wants to be asked.
        """
        if not self.is_local:
            return
        with storage_errors(f"write {self.root}"):
            for path in [*paths, *sorted({os.path.dirname(path) for path in paths})]:
                descriptor = os.open(path, os.O_RDONLY)
                try:
                    os.fsync(descriptor)
                finally:
                    os.close(descriptor)


@contextmanager
def storage_errors(action: str) -> Iterator[None]:
    """Translate what Arrow, delta-rs and the operating system raise; ``action`` is what failed."""
    try:
        yield
    except (OSError, DeltaError, pa.ArrowException) as error:
        raise _translated(error, action) from error
    except BaseException as error:
        # delta-rs gives up this way on a log that makes no sense to it; it is no Exception of Python's.
        if type(error).__name__ != "PanicException":
            raise
        raise _translated(RuntimeError(str(error)), action) from error


def _translated(error: Exception, action: str) -> WarehouseError:
    text = str(error)
    number = getattr(error, "errno", None)
    if number in (errno.ENOSPC, errno.EDQUOT) or "No space left" in text or "os error 28" in text:
        return WarehouseError(
            "disk-full",
            f"could not {action}: the disk is full",
            detail="nothing that was committed is lost",
            hint="free some space, then try again",
        )
    if isinstance(error, PermissionError) or "Permission denied" in text:
        return WarehouseError(
            "permission-denied",
            f"could not {action}: permission denied",
            hint="give this user read and write access to the warehouse's folder",
        )
    return WarehouseError("storage-failed", f"could not {action}", detail=_first_line(text))


def _first_line(text: str) -> str:
    return text.strip().splitlines()[0][:300] if text.strip() else "no reason was given"
