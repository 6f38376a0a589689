"""Nothing is created at a source without permission, and nothing of ours stays behind."""

import time

import pytest

from live.sources.workload import RELATIONS, Workload, create_tables
from viewkeeper.errors import SourceError, UsageError

PATIENCE_SECONDS = 300


@pytest.fixture
def created(database):
    writer = database.writer()
    create_tables(writer)
    yield writer
    writer.close()


def refusals(findings):
    return [finding for finding in findings if finding.severity == "refused"]


def test_without_permission_nothing_is_created(database, created):
    with database.open(allow_setup=False) as source:
        for action in (lambda: source.setup(RELATIONS), source.teardown):
            with pytest.raises(UsageError) as caught:
                action()
            assert caught.value.code == "setup-not-allowed"
        source.preflight(RELATIONS)
        source.setup_sql(RELATIONS)
        source.health()
    assert database.leftovers() == []


def test_preflight_before_setup_says_what_to_do_and_after_it_is_content(database, created):
    with database.open() as source:
        before = refusals(source.preflight(RELATIONS))
        assert before
        assert all(finding.fix for finding in before)
        source.setup(RELATIONS)
        assert refusals(source.preflight(RELATIONS)) == []
        assert source.health().state == "ok"
        source.teardown()


def test_setup_twice_is_as_good_as_once(database, created):
    with database.open() as source:
        source.setup(RELATIONS[:2])
        source.setup(RELATIONS)
        source.setup(RELATIONS)
        assert refusals(source.preflight(RELATIONS)) == []
        source.teardown()


def test_teardown_leaves_nothing_behind_and_can_be_repeated(database, created):
    with database.open() as source:
        source.setup(RELATIONS)
        assert database.leftovers() != []
        source.teardown()
        source.teardown()
    assert database.leftovers() == []


def test_the_setup_script_speaks_of_every_relation_and_of_no_password(database, created):
    with database.open(allow_setup=False) as source:
        script = source.setup_sql(RELATIONS)
    for relation in RELATIONS:
        assert relation in script


def patiently(work) -> None:
    """As people do it: we queue for a lock only briefly, and on a busy machine that may be too short."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return work()
        except SourceError as error:
            if not error.retryable or time.monotonic() > deadline:
                raise


def test_setup_and_teardown_do_not_disturb_the_writers(database, created):
    with database.open() as source, Workload(database) as workload:
        for _ in range(3):
            patiently(lambda: source.setup(RELATIONS))
            patiently(lambda: source.cut(RELATIONS).close())
            patiently(source.teardown)
        while not workload.count and not workload.errors:
            time.sleep(0.01)
    assert workload.errors == []
    assert workload.committed


def test_schemas_name_keys_and_every_readable_relation(database, created):
    with database.open() as source:
        schemas = source.schemas()
        assert set(RELATIONS) <= set(schemas)
        assert schemas["accounts"].key == ("id",)
        assert schemas["entries"].key == ("account", "line")
        assert schemas["marks"].key == ()
        again = source.schemas(["accounts"])["accounts"]
        assert again == schemas["accounts"]
