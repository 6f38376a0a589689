"""The storm's own parts: a seed names everything, a trend is a trend, a page keeps the rest."""

from __future__ import annotations

import socket
import threading
from itertools import islice

import pytest

from chaos.actions import ALL
from chaos.choosing import rounds
from chaos.flatness import trend
from chaos.network import Way
from chaos.reporting import write_into
from chaos.simulated import day


def plan(seed: int, number: int = 60) -> list[str]:
    return [str(each) for each in islice(rounds(seed, ALL), number)]


def test_a_seed_names_the_whole_storm():
    assert plan(5) == plan(5)
    assert plan(5) != plan(6)


def test_every_action_comes_within_a_long_storm():
    seen = {action.name for each in islice(rounds(1, ALL), 120) for action in each.actions}
    assert seen == {action.name for action in ALL}


def test_what_must_be_alone_is_alone():
    for each in islice(rounds(2, ALL), 200):
        alone = [action for action in each.actions if action.is_alone]
        assert not alone or len(each.actions) == 1


def test_nobody_is_sent_to_a_server_that_was_stopped_before():
    """Else they fail, the server stays away, and its writer waits for it for ever."""
    together = 0
    for seed in range(200):
        for each in islice(rounds(seed, ALL), 30):
            stopped = {action.stops for action in each.actions if action.stops}
            together += bool(stopped) and any(action.needs for action in each.actions)
            for place, action in enumerate(each.actions):
                assert action.needs not in {other.stops for other in each.actions[:place]} - {None}
    assert together, (
        "an outage comes with other actions, as long as they come first or go elsewhere"
    )


def test_a_figure_that_grows_is_not_flat_and_a_noisy_one_is():
    growing = [(float(t), 100.0 + t) for t in range(100)]
    assert trend(growing).per_minute == pytest.approx(60)
    assert not trend(growing).is_flat(0.1, 5)
    noisy = [(float(t), 100.0 + (t % 7)) for t in range(100)]
    assert trend(noisy).is_flat(0.1, 5)
    warming_up = [(float(t), min(100.0, 10.0 * t)) for t in range(100)]
    assert trend(warming_up).is_flat(0.1, 5)
    with pytest.raises(ValueError, match="at least four"):
        trend(growing[:3])


def test_a_page_keeps_what_is_around_the_markers(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- chaos: begin -->\nold\n<!-- chaos: end -->\nafter\n")
    write_into(page, "chaos", "new")
    assert page.read_text() == "before\n<!-- chaos: begin -->\nnew\n<!-- chaos: end -->\nafter\n"
    with pytest.raises(ValueError, match="no markers"):
        write_into(page, "load", "new")


def echo() -> tuple[str, int]:
    """A server that says back what it hears."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            client, _ = listener.accept()
            threading.Thread(target=answer, args=(client,), daemon=True).start()

    def answer(client: socket.socket) -> None:
        while data := client.recv(100):
            client.sendall(data)

    threading.Thread(target=serve, daemon=True).start()
    address: tuple[str, int] = listener.getsockname()[:2]
    return address


def test_a_way_can_fall_silent_be_refused_and_open_again():
    way = Way(echo())
    try:
        with socket.create_connection((way.host, way.port), timeout=300) as client:
            client.sendall(b"there")
            assert client.recv(10) == b"there"
            way.silent.set()
            client.sendall(b"lost")
            client.settimeout(0.2)
            with pytest.raises(TimeoutError):
                client.recv(10)
        way.open_again()
        way.close_all()
        with socket.create_connection((way.host, way.port), timeout=300) as client:
            assert client.recv(10) == b""
        way.open_again()
        with socket.create_connection((way.host, way.port), timeout=300) as client:
            client.sendall(b"again")
            assert client.recv(10) == b"again"
    finally:
        way.end()


def test_a_simulated_quarter_of_an_hour():
    found = day(hours=0.25, rate=1, first_seed=7, workers=1)
    assert found["violations"] == []
    assert found["transactions"] >= 900
