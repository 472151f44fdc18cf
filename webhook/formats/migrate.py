"""Migrates a file of any kind: takes its content, returns its new text and findings.

What the API server stores is of the kind `object`: YAML, in which the signs of a template are text.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from webhook.files.source import OBJECT, TEMPLATES, Source
from webhook.formats import legacy_pods
from webhook.formats.opt_outs import LEFT_ALONE
from webhook.templates import ytt

if TYPE_CHECKING:
    from collections.abc import Callable

    from webhook.files.results import FileResult, Plan

    Format = Callable[[Source, Plan], FileResult]

# Kinds of files whose parts may belong to one pod.
_OF_PODS = ("yaml", "json", "markdown", *TEMPLATES, OBJECT)
# Kinds of files that ytt may read.
_YTT = ("yaml", "kustomize", *TEMPLATES)


def migrate_text(source: Source, plan: Plan) -> FileResult:
    """The findings on a file, and its new text if there is one; nothing is written."""
    migrate = _format(source, plan)
    result = migrate(source, plan)
    if source.kind not in _OF_PODS or not legacy_pods.does_amounts(result):
        return result
    left = {**legacy_pods.left(result, plan, "this file"), **plan.left}
    return migrate(source, replace(plan, left=left)) if left != plan.left else result


def judge_object(path: str, text: str, plan: Plan) -> FileResult:
    """What is to say of an object that the API server stores. What cannot be read is an error."""
    result = migrate_text(Source.of_text(path, text, OBJECT), plan)
    unread = (each.reason for each in result.skipped if each.reason != LEFT_ALONE)
    why = next(unread, "")
    return replace(result, error=f"it could not be checked: {why}") if why else result


def _format(source: Source, plan: Plan) -> Format:
    """Imported with the first file of a kind, so that `scan` starts faster."""
    if source.kind in _YTT and ytt.has_code(source.text):
        from webhook.formats.templated import migrate

        return migrate
    if source.kind in {"yaml", "json"}:
        return _of_manifests(source, plan)
    if source.kind == OBJECT:
        from webhook.formats.manifest import migrate

        return migrate
    if source.kind in TEMPLATES:
        from webhook.formats.templated import migrate
    elif source.kind == "markdown":
        from webhook.formats.markdown import migrate
    elif source.kind == "kustomize":
        from webhook.formats.kustomize import migrate
    else:
        from webhook.formats.programs import migrate
    return migrate


def _of_manifests(source: Source, plan: Plan) -> Format:
    """Templates and patches of a kustomization may also be plain YAML.

    Manifests in the text of a ConfigMap or a cloud-config are found as those in a template are.
    """
    from webhook.formats import kustomize, manifest
    from webhook.templates import produced_annotations, regions

    if not plan.is_values and kustomize.is_patch(source):
        return kustomize.migrate_patch
    holds_text = source.kind == "yaml" and any(regions.manifest_texts(source.text))
    if not holds_text and not produced_annotations.is_any_made(source):
        return manifest.migrate
    from webhook.formats import templated

    return templated.migrate
