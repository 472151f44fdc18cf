"""Signals: those that come while a command that runs for ever starts, and those that stop a run."""

from __future__ import annotations

import contextlib
import os
import signal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_HANGUP = getattr(signal, "SIGHUP", signal.SIGTERM)  # Windows has none
_STOPS = (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT)


@contextlib.contextmanager
def ended_by_signals() -> Iterator[None]:
    """Stop signals end the process with 0, until it has handlers that do more.

    Without a handler the kernel drops them for the first process of a container, and a shell
    without job control ignores two of them for all that it starts in the background. The handler
    raises nothing: Python drops exceptions in callbacks and finalizers.
    """
    before = {number: signal.signal(number, lambda *_: os._exit(0)) for number in _STOPS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class StoppedError(KeyboardInterrupt):
    """The run is stopped by this signal, as by Ctrl-C."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.code = 128 + number  # as shells say it


@contextlib.contextmanager
def stopped_by_signals() -> Iterator[None]:
    """SIGTERM and SIGHUP raise StoppedError, unless the caller has them ignored (`nohup`)."""
    numbers = [
        each for each in {signal.SIGTERM, _HANGUP} if signal.getsignal(each) is signal.SIG_DFL
    ]
    for number in numbers:
        signal.signal(number, _stop)
    try:
        yield
    finally:
        for number in numbers:
            signal.signal(number, signal.SIG_DFL)


def _stop(number: int, _frame: object) -> None:
    raise StoppedError(number)
