from __future__ import annotations

import errno
from pathlib import Path

import pytest
from deltalake.exceptions import DeltaError
from pyarrow import fs

from viewkeeper.errors import UsageError, WarehouseError
from viewkeeper.warehouse.storage import Storage, storage_errors

S3 = Storage.at(
    "s3://bucket/some/place/",
    {
        "aws_access_key_id": "key",
        "AWS_SECRET_ACCESS_KEY": "hidden",
        "AWS_ENDPOINT_URL": "http://127.0.0.1:9000",
        "AWS_REGION": "eu-west-1",
    },
)


def test_a_folder_and_its_file_url_are_the_same_place(tmp_path: Path) -> None:
    folder = tmp_path / "with space and ü"
    storage = Storage.at(folder)
    assert Storage.at(folder.as_uri()) == storage
    assert storage.is_local
    assert storage.uri("views", "v") == f"{folder}/views/v"
    assert storage.spark_uri("views") == f"file://{folder}/views"
    assert storage.spark_settings() == {}


def test_a_relative_folder_does_not_move_with_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert Storage.at("w").root == str(tmp_path / "w")


def test_an_object_store_is_reached_by_options_alone() -> None:
    assert S3.uri("views", "v") == "s3://bucket/some/place/views/v"
    assert S3.spark_uri("views") == "s3a://bucket/some/place/views"
    assert S3.path("views") == "bucket/some/place/views"
    assert not S3.is_local
    assert isinstance(S3.filesystem, fs.S3FileSystem)
    assert S3.spark_settings() == {
        "spark.hadoop.fs.s3a.access.key": "key",
        "spark.hadoop.fs.s3a.secret.key": "hidden",
        "spark.hadoop.fs.s3a.endpoint": "http://127.0.0.1:9000",
        "spark.hadoop.fs.s3a.endpoint.region": "eu-west-1",
        "spark.hadoop.fs.s3a.path.style.access": "true",
    }


def test_secrets_are_not_shown() -> None:
    assert "hidden" not in repr(S3)
    with pytest.raises(UsageError, match="secret-in-url") as refused:
        Storage.at("s3://me:hidden@bucket/place")
    assert "hidden" not in str(refused.value)


def test_a_folder_that_spark_would_take_for_a_pattern_is_refused() -> None:
    with pytest.raises(UsageError, match="bad-warehouse-path"):
        Storage.at("/data/[2024]/w")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "disk-full"),
        (OSError(errno.EDQUOT, "Disk quota exceeded"), "disk-full"),
        (DeltaError("Generic error: No space left on device (os error 28)"), "disk-full"),
        (PermissionError(errno.EACCES, "Permission denied"), "permission-denied"),
        (DeltaError("something\nwith a long\ntail"), "storage-failed"),
    ],
)
def test_foreign_errors_become_ours(error: Exception, code: str) -> None:
    with pytest.raises(WarehouseError) as found, storage_errors("write x"):
        raise error
    assert found.value.code == code
    assert "write x" in found.value.message
    assert "\n" not in found.value.detail


def test_a_small_file_is_replaced_as_a_whole(tmp_path: Path) -> None:
    storage = Storage.at(tmp_path)
    assert storage.read_bytes("f") is None
    storage.write_bytes(b"one", "f")
    storage.write_bytes(b"two", "f")
    assert storage.read_bytes("f") == b"two"
    assert [p.name for p in tmp_path.iterdir()] == ["f"]
