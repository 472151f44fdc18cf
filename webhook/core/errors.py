"""The errors of the program, by who can repair them.

WebhookError
|-- InputError      the user's file or request: with place, reason and advice
|-- SettingsError   the settings file: the same, with line and column
`-- EditError       our own bug: a rule asked for an edit that does not fit the object
"""

from __future__ import annotations


class WebhookError(Exception):
    """Base of all errors that the program raises on purpose."""


class InputError(WebhookError):
    """A file or a request that cannot be used; the message has place, reason and advice."""


class SettingsError(WebhookError):
    """A settings file that cannot be used; the message has the line, the reason and the fix."""


class EditError(WebhookError):
    """An edit whose path is not in the object: a bug of the rule that returned it."""
