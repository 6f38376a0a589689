import pytest

from viewkeeper.errors import UsageError
from viewkeeper.project.config import read_project
from viewkeeper.project.settings import spark_settings_of
from viewkeeper.sources.urls import parse_source_url

GOOD = """
[warehouse]
path = "lake"
keep_days = 7
[sources.shop]
url = "postgresql://keeper:${SHOP_PASSWORD}@db1/shop"
[sources.geo]
url = "sqlite:///geo.db"
[spark]
master = "local[2]"
"""


def project(folder, text):
    (folder / "viewkeeper.toml").write_text(text, encoding="utf-8")
    return read_project(folder)


def refused(folder, text):
    with pytest.raises(UsageError) as caught:
        project(folder, text)
    return caught.value


def test_a_project_is_read_with_its_defaults(tmp_path):
    config = project(tmp_path, GOOD)
    assert list(config.sources) == ["shop", "geo"]
    assert config.warehouse_path == str(tmp_path / "lake")
    assert (config.spark_master, config.keep_days) == ("local[2]", 7)
    bare = project(tmp_path, "")
    assert bare.warehouse_path == str(tmp_path / "warehouse")
    assert (bare.spark_master, dict(bare.sources)) == ("local[*]", {})


def test_an_object_store_stays_as_it_is_written(tmp_path):
    config = project(tmp_path, '[warehouse]\npath = "s3://bucket/lake"')
    assert config.warehouse_path == "s3://bucket/lake"


def test_a_password_comes_from_the_environment_when_it_is_used(tmp_path, monkeypatch):
    monkeypatch.delenv("SHOP_PASSWORD", raising=False)
    config = project(tmp_path, GOOD)
    with pytest.raises(UsageError) as caught:
        _ = config.source("shop").url
    assert caught.value.code == "missing-variable"
    assert "SHOP_PASSWORD" in str(caught.value)
    monkeypatch.setenv("SHOP_PASSWORD", "hunter2")
    assert config.source("shop").url == "postgresql://keeper:hunter2@db1/shop"
    assert "hunter2" not in repr(config)


def test_a_password_in_the_file_does_not_show(tmp_path):
    config = project(tmp_path, '[sources.shop]\nurl = "postgresql://k:hunter2@db1/shop"')
    assert "hunter2" not in repr(config)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[warehouse\n", "line 1"),
        ('[warehous]\npath = "x"', "did you mean warehouse?"),
        ('[warehouse]\npth = "x"', "did you mean path?"),
        ('[sources.shop]\nurl = "a"\nslots = 3', "slots"),
        ("[sources.shop]\nurl = 3", "a text in quotes"),
        ("[sources.shop]", "has no url"),
        ('[sources."my shop"]\nurl = "a"', "can't be named my shop"),
        ("sources = 3", "[sources.NAME]"),
        ("[sources]\nshop = 3", "not a table"),
        ("[warehouse]\nkeep_days = true", "a number"),
    ],
)
def test_a_mistake_in_the_file_is_named_with_its_place(tmp_path, text, said):
    error = refused(tmp_path, text)
    assert error.code == "bad-project"
    assert said in str(error)
    assert "viewkeeper.toml" in str(error)


def test_a_folder_without_a_project_says_what_to_do(tmp_path):
    with pytest.raises(UsageError) as caught:
        read_project(tmp_path)
    assert caught.value.code == "no-project"


def test_a_source_that_is_not_there_is_told_with_those_that_are(tmp_path):
    with pytest.raises(UsageError) as caught:
        project(tmp_path, GOOD).source("crm")
    assert caught.value.code == "unknown-source"
    assert "shop, geo" in caught.value.detail


def test_a_relative_sqlite_file_lies_in_the_projects_folder(tmp_path):
    folder = tmp_path / "a folder with 100%"
    folder.mkdir()
    config = project(folder, GOOD)
    found = parse_source_url(config.source("geo").url, "geo").database
    assert found == str(folder / "geo.db")
    absolute = project(folder, '[sources.geo]\nurl = "sqlite:////data/geo.db"')
    assert absolute.source("geo").url == "sqlite:////data/geo.db"


def test_the_drivers_memory_is_said_once_and_as_an_amount(tmp_path):
    config = project(tmp_path, '[spark]\ndriver_memory = "3g"')
    assert spark_settings_of(config).driver_memory == "3g"
    assert spark_settings_of(project(tmp_path, "")).driver_memory == "2g"
    for text in ("much", "3", "0g", "3 g", "-1g"):
        error = refused(tmp_path, f'[spark]\ndriver_memory = "{text}"')
        assert "driver_memory" in str(error)
        assert "4g" in error.hint
    both = '[spark]\ndriver_memory = "3g"\n[spark.config]\n"spark.driver.memory" = "4g"'
    assert "say the same thing" in str(refused(tmp_path, both))
