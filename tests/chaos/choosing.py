"""Which actions come, in which order: decided by the seed alone, so that a storm can be replayed."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from chaos.actions.action import Action

# How often a second, and a third, action joins a round whose first one tolerates company.
TOGETHER = 0.35


@dataclass(frozen=True)
class Round:
    """Some actions at the same time, and how many transactions to wait for before they are undone."""

    number: int
    actions: tuple[Action, ...]
    commits: int

    def __str__(self) -> str:
        return f"round {self.number}: {' + '.join(map(str, self.actions))}"


def rounds(seed: int, actions: Sequence[type[Action]]) -> Iterator[Round]:
    """Rounds without end. Every action comes once before any comes twice: a deck that is shuffled,
    with the light ones left out now and then."""
    rng = random.Random(f"storm {seed}")
    number = 0
    while True:
        deck = [a for a in actions if a.weight >= 1 or rng.random() < a.weight]
        deck += [a for a in actions if a.weight >= 2]
        rng.shuffle(deck)
        while deck:
            first = deck.pop()
            chosen = [first]
            while not first.is_alone and deck and rng.random() < TOGETHER and len(chosen) < 3:
                friendly = [a for a in deck if not a.is_alone and a not in chosen]
                if not friendly:
                    break
                chosen.append(friendly[0])
                deck.remove(friendly[0])
            number += 1
            drawn: list[Action] = []
            for kind in chosen:
                action = kind(random.Random(f"{seed} {number} {kind.name}"))
                if _can_join(action, drawn):
                    drawn.append(action)
            yield Round(number, tuple(drawn), rng.randrange(5, 25))


def _can_join(action: Action, others: Sequence[Action]) -> bool:
    """Whether the server that it needs is still there when its turn comes."""
    return action.needs is None or all(other.stops != action.needs for other in others)
