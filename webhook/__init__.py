"""Makes GPU pods of Kubernetes 1.3-1.10 run on current clusters."""

from __future__ import annotations

__version__ = "0.1.0"
