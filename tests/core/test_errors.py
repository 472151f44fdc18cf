"""The error tree: one base, so that the front door can catch what was raised on purpose."""

from __future__ import annotations

import pytest

from webhook.core import errors


@pytest.mark.parametrize("kind", [errors.InputError, errors.SettingsError, errors.EditError])
def test_every_error_raised_on_purpose_has_one_base(kind: type[Exception]) -> None:
    assert issubclass(kind, errors.WebhookError)
    assert str(kind("where, what, cure")) == "where, what, cure"
