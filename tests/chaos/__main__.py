"""``python -m chaos --seconds 1200 --seed 7``: a storm, and what it found. Exit code 1 for a violation."""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
from itertools import islice
from pathlib import Path

from chaos.actions import ALL, BY_NAME
from chaos.actions.processes import KillAtPoint
from chaos.choosing import rounds
from chaos.reporting import table, write_into
from chaos.run_under_test import VARIANT
from chaos.storm import CONVERGENCE_SECONDS_MAX, WRONG_CONVERGENCE_SECONDS_MAX, Storm
from chaos.wrong import POINTS, VARIANTS


def main() -> int:
    parser = argparse.ArgumentParser(prog="chaos", description=__doc__)
    parser.add_argument("--seconds", type=float, default=180)
    parser.add_argument("--seed", type=int, default=None, help="a new one without it")
    parser.add_argument("--only", default="", help="names of actions, with commas between them")
    parser.add_argument("--rounds", type=int, default=None, help="at most so many")
    parser.add_argument("--bulk-rows", type=int, default=100_000, help="of a huge transaction")
    parser.add_argument("--json", type=Path, default=None, help="write the figures there")
    parser.add_argument("--document", type=Path, default=None, help="put the table into this page")
    parser.add_argument("--plan", action="store_true", help="only say what would happen")
    parser.add_argument("--variant", choices=VARIANTS, help="a run that is built wrong")
    chosen = parser.parse_args()
    # Ended from outside, it still takes its servers and its run along.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if chosen.variant:
        os.environ[VARIANT] = chosen.variant
        KillAtPoint.points = POINTS.get(chosen.variant, KillAtPoint.points)
    seed = random.SystemRandom().randrange(10**6) if chosen.seed is None else chosen.seed
    actions = [BY_NAME[name] for name in chosen.only.split(",")] if chosen.only else list(ALL)
    if chosen.plan:
        for each in islice(rounds(seed, actions), chosen.rounds or 20):
            _say(str(each))
        return 0
    storm = Storm(
        seed,
        actions,
        bulk_rows=chosen.bulk_rows,
        tell=_say,
        patience_seconds=WRONG_CONVERGENCE_SECONDS_MAX
        if chosen.variant
        else CONVERGENCE_SECONDS_MAX,
    )
    report = storm.rage(chosen.seconds, chosen.rounds)
    _say(table(report))
    if chosen.json is not None:
        chosen.json.parent.mkdir(parents=True, exist_ok=True)
        chosen.json.write_text(json.dumps(report.as_dict(), indent=2) + "\n")
    if chosen.document is not None:
        write_into(chosen.document, "chaos", table(report))
    if report.violations:
        _say("\n".join(report.action_log))
        _say(f"replay: make chaos SEED={seed} SECONDS={chosen.seconds:.0f}")
        return 1
    return 0


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
