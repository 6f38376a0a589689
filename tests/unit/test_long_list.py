from pathlib import Path

TESTS = Path(__file__).parent.parent
LIST = (TESTS / "conftest.py").read_text("utf-8").split("LONG = (")[1].split(")")[0]


def test_what_is_long_exists():
    names = [line.strip(' ",') for line in LIST.splitlines() if line.strip()]
    assert len(names) > 10
    assert [name for name in names if not (TESTS / name).exists()] == []
