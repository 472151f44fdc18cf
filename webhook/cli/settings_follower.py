"""Follows the settings file of a running program: checks it for changes once a second.

A file that cannot be used changes nothing; one log line reports it, and one reports when the file
is good again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from webhook.core.errors import InputError, SettingsError
from webhook.files import limited_reading

if TYPE_CHECKING:
    from collections.abc import Callable

    Say = Callable[[str, str, str], None]  # level, message, reason

T = TypeVar("T")


class SettingsFollower(Generic[T]):
    """The settings file of a running program; `read` returns its content."""

    def __init__(self, file: str, read: Callable[[], T], say: Say) -> None:
        """The file was just read, and was good."""
        self._file = file
        self._read = read
        self._say = say
        self._files = [file] if file else []
        self._seen = limited_reading.identity(*self._files)
        self._is_unread = False  # for example without file descriptors: it is tried again
        self.fault = ""  # why the present file is not used

    def look(self) -> T | None:
        """The content of the file, if it is new and can be used."""
        seen = limited_reading.identity(*self._files)
        if seen == self._seen and not self._is_unread:
            return None
        self._seen = seen
        try:
            found = self._read()
        except (SettingsError, InputError) as error:
            self._is_unread = isinstance(error.__cause__, OSError)
            self._complain(str(error))
            return None
        what = "is good again" if self.fault else "was read again"
        text = f"the settings file {what}"
        self._is_unread, self.fault = False, ""
        self._say("info", text, self._file)
        return found

    def _complain(self, fault: str) -> None:
        if fault == self.fault:
            return
        self.fault = fault
        what = "cannot be read" if self._is_unread else "have mistakes"
        self._say("error", f"the new settings {what}; the old settings stay", fault)
