"""`gpu-webhook verify --server`: lets the API server write the defaults of both sides."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.cluster import client
from webhook.cluster.rehearsal import Rehearsal
from webhook.verifying.comparison import NotTaken

if TYPE_CHECKING:
    from webhook.core.settings import Settings
    from webhook.kube.pod import Raw
    from webhook.verifying.comparison import Store


def store(kubeconfig: str | None, context: str | None, settings: Settings) -> Store:
    """What this cluster would store of an object."""
    api = client.Client(lambda: client.configuration(kubeconfig, context))
    rehearsal = Rehearsal(api, client.namespace(kubeconfig, context), settings)

    def stored(obj: Raw) -> Raw:
        try:
            return rehearsal.stored(obj)
        except client.Fault as fault:
            if fault.away:
                raise client.no_answer(fault) from fault
            raise NotTaken(str(fault)) from fault

    return stored
