"""Every error that Viewkeeper raises on purpose, in three families by who must act.

The user (`UsageError`), a source (`SourceError`), or us (`InvariantViolated`). All carry the same
fields, so that the command line, `--json`, logs and the dashboard show the same thing:

- ``code``: a stable, greppable name in kebab case.
- ``message``: what could not be done, to which object.
- ``detail``: what was expected and what was found.
- ``hint``: the command or the edit that fixes it.

Knows nothing else of the package; everything may import it.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

MESSAGE_CHARACTERS_MAX = 400
DETAIL_CHARACTERS_MAX = 10_000


def _shortened(text: str, characters_max: int) -> str:
    return text if len(text) <= characters_max else text[: characters_max - 1] + "…"


class ViewkeeperError(Exception):
    """Base of all errors that people are meant to read."""

    family = "error"

    def __init__(self, code: str, message: str, *, detail: str = "", hint: str = "") -> None:
        # Names and values in it come from anywhere, and may be of any length.
        message = _shortened(message, MESSAGE_CHARACTERS_MAX)
        detail = _shortened(detail, DETAIL_CHARACTERS_MAX)
        super().__init__(code, message, detail, hint)
        self.code = code
        self.message = message
        self.detail = detail
        self.hint = hint

    def __str__(self) -> str:
        lines = [f"{self.message} [{self.code}]"]
        if self.detail:
            lines.append(f"Detail: {self.detail}")
        if self.hint:
            lines.append(f"Hint: {self.hint}")
        return "\n".join(lines)

    def __reduce__(self) -> tuple[object, ...]:
        # Keyword-only fields would be lost by the default, and errors do cross process borders.
        return (_rebuild, (type(self), self.__dict__.copy()))

    def as_dict(self) -> dict[str, object]:
        """The fields for `--json`, logs and the dashboard."""
        return {
            "family": self.family,
            "code": self.code,
            "message": self.message,
            "detail": self.detail,
            "hint": self.hint,
        }


def _rebuild(kind: type[ViewkeeperError], fields: dict[str, object]) -> ViewkeeperError:
    error = kind.__new__(kind)
    error.__dict__.update(fields)
    error.args = (error.code, error.message, error.detail, error.hint)
    return error


class UsageError(ViewkeeperError):
    """The user can mend it: configuration, SQL text, command line, a value that breaks an expression."""

    family = "usage"


class SourceError(ViewkeeperError):
    """A source refused, vanished or can't give what exactness needs."""

    family = "source"

    def __init__(
        self,
        code: str,
        message: str,
        *,
        source: str,
        retryable: bool,
        detail: str = "",
        hint: str = "",
    ) -> None:
        super().__init__(code, message, detail=detail, hint=hint)
        self.source = source
        self.retryable = retryable

    def as_dict(self) -> dict[str, object]:
        return super().as_dict() | {"source": self.source, "retryable": self.retryable}


def rebuild_command(source: str, *, allow_setup: bool = False) -> str:
    """What fills the views over a source anew: the fix for everything that its feed can't pass."""
    return f"viewkeeper rebuild --source {source}{' --allow-setup' if allow_setup else ''}"


class WarehouseError(ViewkeeperError):
    """The warehouse's storage is damaged, full, newer than this program, or held by another writer."""

    family = "warehouse"


class InvariantViolated(ViewkeeperError):
    """Viewkeeper contradicted itself: a defect of ours, please report it."""

    family = "internal"

    def __init__(self, message: str, *, detail: str = "") -> None:
        super().__init__(
            "invariant-violated",
            message,
            detail=detail,
            hint="this is a defect of Viewkeeper: please report it with the output of --verbose",
        )


def invariant(holds: object, message: str, *, detail: str = "") -> None:
    """Raise `InvariantViolated` unless ``holds``; unlike ``assert`` it is never compiled away."""
    if not holds:
        raise InvariantViolated(message, detail=detail)


def nearest(word: str, known: Iterable[str], *, closeness: float = 0.6) -> str | None:
    """The known word that was probably meant, if any is close."""
    by_folded = {spelling.casefold(): spelling for spelling in known}
    found = difflib.get_close_matches(word.casefold(), by_folded, n=1, cutoff=closeness)
    return by_folded[found[0]] if found else None


def did_you_mean(word: str, known: Iterable[str], otherwise: str = "") -> str:
    """The hint for a word that nobody knows."""
    close = nearest(word, known)
    return f"did you mean {close}?" if close else otherwise
