"""`python -m webhook` is `gpu-webhook`."""

from __future__ import annotations

import sys

from webhook.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
