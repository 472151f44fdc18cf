"""Names, labels and annotations as kustomize reads them: the words of the text.

To Kubernetes a plain `y` or `on` is true. Kustomize compares what is written, and writes quotes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webhook.evaluation.workloads import objects
from webhook.kube.pod import as_map
from webhook.yamlpatch.nodes import Scalar, entry_at, real

if TYPE_CHECKING:
    from collections.abc import Iterable

    from webhook.kube.pointer import Path
    from webhook.yamlpatch.documents import Document


def data_of(document: Document) -> Any:
    """The data of a document, with the words of its metadata as texts."""
    for at, obj in objects(document.data):
        metadata, place = as_map(obj.get("metadata")), at / "metadata"
        _write(document, metadata, place, {"name", "namespace"})
        for name in ("labels", "annotations"):
            holder = as_map(metadata.get(name))
            _write(document, holder, place / name, holder.keys())
    return document.data


def _write(document: Document, holder: dict[str, Any], at: Path, names: Iterable[str]) -> None:
    for name in names:
        value = holder.get(name)
        if isinstance(value, bool | int | float):
            holder[name] = _word(document, at / name) or value


def _word(document: Document, at: Path) -> str:
    node = document.root
    for token in at:
        deeper = entry_at(node, token)
        if deeper is None:  # of a merge key
            break
        node = real(deeper.value)
    return node.text if isinstance(node, Scalar) else ""
