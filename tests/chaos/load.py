"""``python -m chaos.load --minutes 30 --rate 500``: a live run under steady load; is everything flat?

Writers commit small transactions at three databases at a given rate, all together. Memory and lag are
sampled every few seconds; a line is fitted through each. At the end the views must be equal to what an
audit computes from the sources.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from chaos.flatness import Sample, Trend, trend
from chaos.reporting import markdown, write_into
from chaos.run_process import RunProcess
from chaos.scenery import CRM, GEO, MAIN, SHOP, SINGLE
from chaos.world import World
from live.sources.rig import Writer

SAMPLE_SECONDS = 5.0
ORDERS, CUSTOMERS, REGIONS = 20_000, 5_000, 200
# Of every hundred transactions.
SHARES = {SHOP: 0.75, CRM: 0.24, GEO: 0.01}
VIEWS = {name: MAIN[name] for name in ("sales", "regional")} | {"bank": SINGLE["bank"][1]}


class Load:
    """Threads that commit at a steady rate, as far as the sources let them."""

    def __init__(self, world: World, rate: float) -> None:
        self._ending = threading.Event()
        self.committed = dict.fromkeys(SHARES, 0)
        self.errors: list[BaseException] = []
        self._threads = [
            threading.Thread(target=self._write, args=(world, source, rate * share))
            for source, share in SHARES.items()
        ]
        for thread in self._threads:
            thread.start()

    def end(self) -> int:
        self._ending.set()
        for thread in self._threads:
            thread.join()
        if self.errors:
            raise self.errors[0]
        return sum(self.committed.values())

    def _write(self, world: World, source: str, rate: float) -> None:
        work = {SHOP: _order, CRM: _customer, GEO: _region}[source]
        rng = random.Random(source)
        try:
            with world.client(source) as writer:
                due = time.monotonic()
                while not self._ending.is_set():
                    due = max(due + 1 / rate, time.monotonic() - 1)
                    work(writer, rng, self.committed[source])
                    self.committed[source] += 1
                    if (early := due - time.monotonic()) > 0:
                        self._ending.wait(early)
        except BaseException as error:
            self.errors.append(error)


def _order(writer: Writer, rng: random.Random, turn: int) -> None:
    """A new order for an old one; now and then money moves."""
    if turn % 5 == 4:
        giver, taker = rng.sample(range(8), 2)
        writer.begin()
        writer.run("UPDATE accounts SET balance = balance - 1 WHERE a_id = ?", giver)
        writer.run("UPDATE accounts SET balance = balance + 1 WHERE a_id = ?", taker)
        writer.commit()
        return
    writer.begin()
    writer.run("DELETE FROM orders WHERE o_id = ?", turn)
    row = (ORDERS + turn, rng.randrange(CUSTOMERS), rng.randrange(9))
    writer.run("INSERT INTO orders VALUES (?, ?, ?)", *row)
    writer.commit()


def _customer(writer: Writer, rng: random.Random, turn: int) -> None:
    writer.run(
        "UPDATE customers SET region_id = ?, name = ? WHERE cust_id = ?",
        rng.randrange(REGIONS), f"c {turn}", rng.randrange(CUSTOMERS),
    )  # fmt: skip


def _region(writer: Writer, rng: random.Random, turn: int) -> None:
    """Few: each touches the rows of a hundred orders."""
    writer.begin()
    writer.run(
        "UPDATE regions SET rname = ? WHERE region_id = ?", f"r {turn}", rng.randrange(REGIONS)
    )
    writer.commit()


def fill(world: World) -> None:
    """Tables of a size at which their keeping costs something."""
    with world.client(SHOP) as client:
        client.run("DELETE FROM orders")
        client.run(
            f"INSERT INTO orders SELECT n, n % {CUSTOMERS}, n % 9 "
            f"FROM generate_series(0, {ORDERS - 1}) n"
        )
    with world.client(CRM) as client:
        client.run("DELETE FROM customers")
        client.run(
            f"INSERT INTO customers SELECT seq, CONCAT('c', seq), seq % {REGIONS} "
            f"FROM seq_0_to_{CUSTOMERS - 1}"
        )
    with world.client(GEO) as client:
        client.run("DELETE FROM regions")
        for number in range(REGIONS):
            client.run("INSERT INTO regions VALUES (?, ?)", number, f"r{number}")


def soak(
    minutes: float, rate: float, audit_seconds: float | None, tell: Callable[[str], None]
) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="viewkeeper-load-") as folder:
        world = World(Path(folder), views=VIEWS, direct=True)
        # As users run it, without what storms change.
        run = RunProcess(world.project, ("viewkeeper",))
        try:
            if audit_seconds is not None:
                with (world.project / "viewkeeper.toml").open("a") as config:
                    config.write(f"\n[audit]\nevery_seconds = {audit_seconds:g}\n")
            fill(world)
            run.start(allow_setup=True)
            if not run.await_loaded(300):
                raise RuntimeError(f"the run did not begin: {run.endings}")
            load = Load(world, rate)
            try:
                samples = _sampled(run, load, rate, minutes * 60, tell)
            finally:
                committed = load.end()
            if not run.is_alive:
                run.await_end(0)
                raise RuntimeError(f"the run ended: {run.endings[-1]}")
            run.stop()
            return _summary(rate, samples, committed) | {"audit": _audit(world)}
        finally:
            run.close()
            world.close()


def _sampled(
    run: RunProcess, load: Load, rate: float, seconds: float, tell: Callable[[str], None]
) -> dict[str, list[Sample]]:
    samples: dict[str, list[Sample]] = {"python": [], "java": [], "lag": [], "committed": []}
    started = time.monotonic()
    wait = threading.Event()
    while (now := time.monotonic() - started) < seconds and run.is_alive and not load.errors:
        wait.wait(SAMPLE_SECONDS)
        for part, size in run.measure().items():
            samples[part].append((now, size / 2**20))
        # Every transaction is a state of its own: what is committed and has no state yet is behind.
        committed = sum(load.committed.values())
        samples["lag"].append((now, max(0, committed - run.txn) / rate))
        samples["committed"].append((now, committed))
        tell(" ".join(f"{name} {values[-1][1]:,.1f}" for name, values in samples.items() if values))
    return samples


def _summary(rate: float, samples: dict[str, list[Sample]], committed: int) -> dict[str, Any]:
    trends = {name: trend(samples[name]) for name in ("python", "java", "lag")}
    (begin, first), (end, last) = samples["committed"][0], samples["committed"][-1]
    flat = {
        "python": trends["python"].is_flat(0.10, 40),
        "java": trends["java"].is_flat(0.10, 60),
        "lag": trends["lag"].is_flat(0.25, 0.5),
    }
    return {
        "minutes": round((end - begin) / 60, 1),
        "rate_wanted": rate,
        "rate_reached": round((last - first) / (end - begin), 1),
        "transactions": committed,
        "trends": {name: _rounded(each) for name, each in trends.items()},
        "flat": flat,
        "samples": {
            name: [(round(t, 1), round(v, 3)) for t, v in s] for name, s in samples.items()
        },
    }


def _rounded(each: Trend) -> dict[str, float]:
    return {name: round(value, 4) for name, value in each.__dict__.items()}


def _audit(world: World) -> dict[str, Any]:
    command = [sys.executable, "-m", "viewkeeper", "audit", "--json", "--project"]
    done = subprocess.run([*command, str(world.project)], capture_output=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return {"ok": found.get("ok", False), "exit_code": done.returncode}


def table(found: dict[str, Any]) -> str:
    rows: list[tuple[object, ...]] = []
    for name, unit in (("python", "MiB"), ("java", "MiB"), ("lag", "s")):
        each = found["trends"][name]
        rows.append(
            (
                {"python": "memory, Python", "java": "memory, JVM", "lag": "lag"}[name],
                f"{each['middle']:,.2f} {unit}",
                f"{each['most']:,.2f} {unit}",
                f"{each['per_minute']:+,.3f} {unit}",
                "flat" if found["flat"][name] else "GROWS",
            )
        )
    head = (
        f"{found['minutes']} minutes, {found['rate_reached']:,} transactions/s "
        f"({found['rate_wanted']:,.0f} wanted), {found['transactions']:,} in all; "
        f"audit at the end: {'equal' if found['audit']['ok'] else 'DIFFERENT'}."
    )
    return f"{head}\n\n{markdown(('figure', 'median', 'most', 'per minute', 'verdict'), rows)}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="chaos.load", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--rate", type=float, default=500)
    parser.add_argument("--audit-seconds", type=float, help="how often the run audits itself")
    parser.add_argument("--json", type=Path, default=None)
    parser.add_argument("--document", type=Path, default=None)
    chosen = parser.parse_args()
    # Ended from outside, it still takes its servers and its run along.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))

    def tell(line: str) -> None:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()

    found = soak(chosen.minutes, chosen.rate, chosen.audit_seconds, tell)
    tell(table(found))
    if chosen.json is not None:
        chosen.json.parent.mkdir(parents=True, exist_ok=True)
        chosen.json.write_text(json.dumps(found) + "\n")
    if chosen.document is not None:
        write_into(chosen.document, "load", table(found))
    return 0 if all(found["flat"].values()) and found["audit"]["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
