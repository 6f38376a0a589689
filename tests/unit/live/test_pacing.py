from viewkeeper.live.questions.pacing import Pace, SourceLimits


class Time:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def asked_at(limits: SourceLimits, *answers: int) -> list[float]:
    """When each question goes out, in seconds from the first."""
    time = Time()
    pace = Pace(limits, lambda: time.now, time.sleep)
    moments = []
    for rows in answers:
        pace.before_question()
        moments.append(round(time.now - 100.0, 6))
        pace.asked(rows)
    return moments


def test_without_limits_nothing_waits():
    assert asked_at(SourceLimits(), 1_000_000, 1_000_000) == [0.0, 0.0]


def test_questions_keep_their_distance():
    assert asked_at(SourceLimits(queries_per_second=4), 1, 1, 1) == [0.0, 0.25, 0.5]


def test_a_large_answer_is_paid_for_before_the_next_question():
    limits = SourceLimits(queries_per_second=100, rows_per_second=1_000)
    assert asked_at(limits, 500, 1, 1) == [0.0, 0.5, 0.51]
