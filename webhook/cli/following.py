"""Follows the settings file of a running program: checks it for changes once a second.

What cannot be used changes nothing: it is said once, and once that it is good again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from webhook.core.errors import InputError, SettingsError
from webhook.files import capped

if TYPE_CHECKING:
    from collections.abc import Callable

    Say = Callable[[str, str, str], None]  # level, message, reason

T = TypeVar("T")


class Following(Generic[T]):
    """`read` gives what the file says."""

    def __init__(self, file: str, read: Callable[[], T], say: Say) -> None:
        """The file was read a moment ago, and was good."""
        self._file = file
        self._read = read
        self._say = say
        self._files = [file] if file else []
        self._seen = capped.identity(*self._files)
        self._is_unread = False  # as without file descriptors: it is tried again
        self.fault = ""  # why the file that is there now is not used

    def look(self) -> T | None:
        """What the file says, if that is another one and can be used."""
        seen = capped.identity(*self._files)
        if seen == self._seen and not self._is_unread:
            return None
        self._seen = seen
        try:
            found = self._read()
        except (SettingsError, InputError) as error:
            self._is_unread = isinstance(error.__cause__, OSError)
            self._complain(str(error))
            return None
        text = "the settings are good again" if self.fault else "the settings were read again"
        self._is_unread, self.fault = False, ""
        self._say("info", text, self._file)
        return found

    def _complain(self, fault: str) -> None:
        if fault == self.fault:
            return
        self.fault = fault
        what = "cannot be read" if self._is_unread else "have mistakes"
        self._say("error", f"the new settings {what}; the ones before stay", fault)
