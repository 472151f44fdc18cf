"""Reads the files of `--config` and `--inventory`, in the same way for every command."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.core.settings import Settings

if TYPE_CHECKING:
    from types import SimpleNamespace

    from webhook.capacity.nodes import Inventory


def settings(args: SimpleNamespace) -> Settings:
    """The settings of the file, or the defaults."""
    return read(args.config, pipes=True)


def read(file: str | None, *, pipes: bool = False) -> Settings:
    """The settings of the file, or the defaults; without a file, pydantic is not imported."""
    if not file:
        return Settings()
    from webhook.settings.file import load

    return load(file, pipes=pipes)


def inventory(args: SimpleNamespace) -> Inventory | None:
    """The inventory of the file, or None."""
    if not args.inventory:
        return None
    from webhook.inventory import inventory_file

    return inventory_file.load(args.inventory, settings(args), pipes=True)
