"""What py4j writes past its own logger is no word of ours; what others write is left alone."""

import logging

from viewkeeper.spark.session import is_not_py4js


def test_only_what_py4j_wrote_is_kept_back():
    def record(path: str) -> logging.LogRecord:
        return logging.LogRecord("root", logging.ERROR, path, 1, "Exception", (), None)

    assert not is_not_py4js(record("/x/site-packages/py4j/java_gateway.py"))
    assert is_not_py4js(record("/home/py4j-user/program.py"))


def test_a_trace_of_a_dying_jvm_does_not_reach_the_terminal(capsys):
    root, handler = logging.getLogger(), logging.StreamHandler()
    root.addHandler(handler)
    root.addFilter(is_not_py4js)
    try:
        code = compile("import logging; logging.error('gone')", "/x/py4j/java_gateway.py", "exec")
        exec(code, {})
        assert "gone" not in capsys.readouterr().err
        logging.error("ours")
        assert "ours" in capsys.readouterr().err
    finally:
        root.removeFilter(is_not_py4js)
        root.removeHandler(handler)
