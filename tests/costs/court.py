"""The endpoint with settings and nodes that give every rule something to do.

Of the package or of its counting copy: whoever asks brings the modules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.costs.shapes import (
    GUARD,
    MIG,
    MODERN,
    MUTATE,
    PRODUCT,
    REFUSE,
    REPAIRING,
    SETTINGS,
    VALIDATE,
)

if TYPE_CHECKING:
    from collections.abc import Callable


class Court:
    """Answers reviews; /mutate repairs templates too, /validate only tells of them."""

    def __init__(self, module: Callable[[str], Any]) -> None:
        """`module` gives a module of the package by its name."""
        self._module = module
        self._log = _Lines(module("webhook.telemetry.logs").line)
        repairing, telling = self._endpoint(REPAIRING), self._endpoint(SETTINGS)
        self._of = {MUTATE: repairing, VALIDATE: telling, GUARD: telling, REFUSE: telling}

    def answer(self, path: str, body: bytes) -> bytes:
        """The answer, which is one: nothing is too odd to be judged."""
        status, answer, _ = self._of[path].post(path, "application/json", "", body)
        assert status == 200, answer
        assert b"was admitted unchecked" not in answer
        result: bytes = answer
        return result

    def _endpoint(self, settings: str) -> Any:
        rules = self._module("webhook.rules")
        decider = self._module("webhook.admission.decide").Decider(
            rules.RULES,
            self._module("webhook.settings.file").parse(settings),
            self._inventory(),
            self._log,
            policy=rules.POLICY,
            guards=rules.GUARD,
        )
        return self._module("webhook.admission.endpoint").Endpoint(decider, str)

    def _inventory(self) -> Any:
        nodes, settings = (
            self._module("webhook.capacity.nodes"),
            self._module("webhook.core.settings"),
        )
        products = ("Tesla-P100-PCIE-16GB", "Tesla-V100-SXM2-32GB", "NVIDIA-A100-SXM4-80GB")
        classes = tuple(
            nodes.NodeClass(
                {PRODUCT: products[i % 3], "memory": str(i), "kubernetes.io/hostname": f"node-{i}"},
                taints=(settings.Taint(f"t{i}", "v"), settings.Taint("sku", "gpu")),
                gpus={MODERN: 8, MIG.format(i): 4},
                nodes=(f"node-{i}",),
            )
            for i in range(16)
        )
        return nodes.Inventory(classes)


class _Lines:
    """Makes each line of the log at once, in this thread, and throws it away."""

    def __init__(self, line: Callable[[float, dict[str, object]], bytes]) -> None:
        self._line = line

    def write(self, level: str, message: str, **fields: object) -> None:
        # The digits of a time differ from call to call, and each is a step of the line.
        fields["milliseconds"] = 1.234
        self._line(0.0, {"level": level, "message": message, **fields})
