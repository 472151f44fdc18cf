"""Signals that come while a command that runs for ever starts."""

from __future__ import annotations

import contextlib
import os
import signal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

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
