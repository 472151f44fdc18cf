"""What `--config` and `--inventory` say, the same in every command."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.core.settings import Settings

if TYPE_CHECKING:
    from types import SimpleNamespace

    from webhook.capacity.nodes import Inventory


def settings(args: SimpleNamespace) -> Settings:
    """The settings of the file, or the defaults."""
    if not args.config:
        return Settings()
    from webhook.cli import settings_file

    return settings_file.load(args.config, pipes=True)


def inventory(args: SimpleNamespace) -> Inventory | None:
    """The inventory of the file, or None."""
    if not args.inventory:
        return None
    from webhook.inventory import static

    return static.load(args.inventory, settings(args), pipes=True)
