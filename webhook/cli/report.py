"""`gpu-webhook report --cluster`: who still needs the webhook, and whether it may be removed.

What is there comes from `scan --cluster`, what came lately from the metrics of the servers, and
the owners of pods that were deleted from Events, which are kept for an hour.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from contextlib import suppress
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from webhook.cli import file_command, report_needs, report_templates, scan_cluster
from webhook.cli.certs import answered
from webhook.cli.progress import progress
from webhook.cluster import answers, client, listing, objects, other_kinds, workload_status
from webhook.doctor import facts, legacy_counts, policies
from webhook.doctor.lines import few
from webhook.doctor.other_admission import OtherAdmission
from webhook.files.results import Plan
from webhook.kube.pod import as_map
from webhook.kube.times import DAY, seconds_of
from webhook.reports.usage import LEFT, PRINTED, SAFE, UNKNOWN, Owner, Usage
from webhook.rules import ALL, is_legacy, is_repair, legacy_name_elsewhere, quota_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from webhook.cli.scan_cluster_result import Reported
    from webhook.cluster.listing import Progress

    Raw = dict[str, Any]

_EXIT = {SAFE: 0, UNKNOWN: 2, LEFT: 3}
_HOUR = 3600.0
_CODE = re.compile(r"\bGPU\d{3}\b")
_NOTES = (
    "templates in Secrets, in encoded text (base64, gzip) and outside of the cluster",
    "what modern templates of unknown custom kinds lack, and taints of nodes to come",
    "namespaces that were opted out for a time: the webhook counted nothing there",
    "manifests that were not applied in this time: `gpu-webhook scan FOLDER` finds them",
    "calls that failed in API servers other than the one that answered (docs/uninstall.md)",
)
_HALFWAY = "its roll-out has not ended (`partition: 0` ends it), and its older template"
_RANGES = "which modern templates get GPUs from a LimitRange"
_CALLS = (
    "what pods lack: {:,} calls of the webhook {} failed while pods were tried, and so changed "
    "none: run the report again when it answers"
)
_SPACES = "what is guarded, and what the webhook leaves alone"
_QUOTAS = "quotas with legacy names, which count nothing with or without the webhook"
_IDLE = (
    "annotations, driver paths and amounts of 0 that the webhook leaves as they are: delete what "
    "has no effect (`migrate` would put an affinity into effect)"
)
# The webhook does nothing for these, such as a Deployment that was once applied as
# extensions/v1beta1, or a dry run decides. The last two rules find what gives pods legacy names.
_NOT_LEGACY = tuple(
    rule.CODE
    for rule in ALL
    if not (is_repair(rule.CODE) and is_legacy(rule.CODE))
    and rule not in {quota_names, legacy_name_elsewhere}
)
_OTHER = "which namespaces are `other`: the metrics of a worker name 200 of them"


def run(args: SimpleNamespace) -> int:
    """Print the page; the exit code is 0 only if the webhook may be removed."""
    file_command.check_files(args)
    found = _read(args)
    file_command.write_files(args, lambda form: PRINTED[form](found))
    sys.stdout.write(PRINTED[args.output](found))
    return _EXIT[found.verdict]


def _read(args: SimpleNamespace) -> Usage:
    api = client.connected(args.kubeconfig, args.context)
    with answered():
        installed = facts.read(api, args.namespace, args.pod_namespace)
    came = legacy_counts.read(api, installed)
    with progress() as show_progress:
        namespaces, ranges, unlisted = _surroundings(api, installed, show_progress)
        ignored = sorted(_name(one) for one in namespaces if not policies.reaches(installed, one))
        # The API server refuses what is created there, so no owner makes a pod again.
        ending = [_name(one) for one in namespaces if one["metadata"].get("deletionTimestamp")]
        spared = {*ignored, *ending}
        others = OtherAdmission(api, installed, namespaces)
        failed = Counter[str]()
        with suppress(client.Fault):  # legacy_counts has reported it
            failed = legacy_counts.failed_open(api)
        trials = report_templates.Trials(api, installed, spared, ranges, others)
        plan = Plan(installed.settings, ignored=_NOT_LEGACY)
        scan = scan_cluster.Scan(
            SimpleNamespace(all_namespaces=True, namespace=None, selector=None),
            plan,
            lambda: api,
            finished_since=installed.now - args.days * DAY,
            static_pods=False,
            counts=_is_needed,
            needs=report_needs.Needs(plan),
            lacks=trials.lacks,
            ahead=trials.ahead,
        )
        found = scan.reported(show_progress)
        reported = [each for each in found if each.itself.namespace not in spared]
        gaps = [*came.gaps, *unlisted, *(_unread(each) for each in reported if each.result.error)]
        try:
            own = installed.settings_map
            gaps += other_kinds.unread(api, installed.settings, show_progress, own, spared)
        except client.Fault as fault:
            gaps.append(f"which kinds there are: {fault}")
    notes = [*_NOTES, *([_OTHER] if "other" in came.last else [])]
    gaps += _halfway(api, scan, spared)
    gaps += trials.gaps()
    gaps += _failed_meanwhile(api, failed)
    if ignored:
        notes.append(f"namespaces that the webhook leaves alone: {few(ignored)}")
    if ending:
        notes.append(f"namespaces that are being deleted, which get no pods: {few(ending)}")
    if idle := sorted(_path(each) for each in scan.idle if each.namespace not in spared):
        notes.append(f"{_IDLE}: {few(idle)}")
    if quotas := sorted(f"{e.top.namespace}/{e.top.name}" for e in reported if _is_quota(e)):
        notes.append(f"{_QUOTAS}: {few(quotas)}")
    owners = [_owner(e) for e in reported if e.result.located and not _is_quota(e)]
    try:
        owners += _of_events(api, came)
    except client.Fault as fault:
        notes.append(f"owners of pods that were deleted in the last hour: Events: {fault}")
    return Usage(
        now=installed.now,
        days=args.days,
        since=came.since,
        began=came.began,
        owners=_merged(owners),
        last=came.last,
        kinds=came.kinds,
        repairs=came.repairs,
        policies=dict(policies.in_force(installed, namespaces)),
        gaps=gaps,
        notes=notes,
        checked=scan.seen,
    )


def _failed_meanwhile(api: client.Client, before: Counter[str]) -> list[str]:
    """The webhooks, ours or of others, whose calls failed since then.

    Dry runs do not show that: with `failurePolicy: Ignore` the pod is accepted without them.
    """
    try:
        more = legacy_counts.failed_open(api) - before
    except client.Fault as fault:
        return [f"whether calls of webhooks failed while pods were tried: {fault}"]
    return [_CALLS.format(number, name) for name, number in sorted(more.items())]


def _surroundings(
    api: client.Client, installed: facts.Facts, show_progress: Progress
) -> tuple[list[Raw], report_templates.Names, list[str]]:
    """The namespaces, the GPUs that LimitRanges give there, and what is not known of both."""
    spaces: list[Raw] = []
    unlisted = []
    try:
        spaces += listing.objects(api, "/api/v1/namespaces", show_progress)
    except client.Fault as fault:  # so the owners of each are reported
        unlisted.append(f"{_SPACES}: namespaces: {fault}")
    try:
        return spaces, report_templates.given(api, installed.settings), unlisted
    except client.Fault as fault:
        return spaces, {}, [*unlisted, f"{_RANGES}: limitranges: {fault}"]


def _path(named: objects.Reference) -> str:
    return f"{named.namespace}/{named.kind}/{named.name}"


def _name(obj: Raw) -> str:
    return str(obj["metadata"]["name"])


def _halfway(api: client.Client, scan: scan_cluster.Scan, spared: set[str]) -> Iterator[str]:
    """The StatefulSets that may make pods from a template that they do not show.

    The ReplicaSets of a paused Deployment are among the objects of the scan.
    """
    for (_, kind, namespace, name, _), obj in scan.halfway.items():
        if kind != "StatefulSet" or namespace in spared:
            continue
        revision = str(obj["status"].get("currentRevision"))
        segments = ("apis", "apps", "v1", "namespaces", namespace, "controllerrevisions", revision)
        try:
            found = answers.of_one(api, client.address(*segments))
        except client.Fault as fault:
            why = f"cannot be read: {fault}"
        else:
            result = scan.older(workload_status.at_revision(obj, found or {}))
            codes = [each.code for each in result.located]
            needs = "is legacy" if any(map(is_legacy, codes)) else f"needs {', '.join(codes)}"
            why = needs if codes else "" if found else "is not there"
            why = f"is not checked: {result.error}" if result.error else why
        if why:
            yield f"{namespace}/{kind}/{name}: {_HALFWAY} {why}"


def _is_quota(reported: Reported) -> bool:
    """Whether it limits nothing, with or without the webhook (rule GPU128)."""
    return reported.top.kind == "ResourceQuota"


def _unread(reported: Reported) -> str:
    return f"{reported.result.path}: {reported.result.error}"


def _is_needed(code: str) -> bool:
    """Whether the webhook is needed for what such a rule finds or repairs."""
    return is_legacy(code) or is_repair(code)


def _owner(reported: Reported) -> Owner:
    codes = tuple(each.code for each in reported.result.located if is_legacy(each.code))
    newest, change = seconds_of(reported.created), reported.owner
    if not codes:
        added = reported.result.located[-1:] if reported.came else reported.result.located
        said = "; ".join(each.message for each in added)
        codes = tuple(_CODE.findall(said) if reported.came else (each.code for each in added))
        change = f"{reported.owner}: {said}"
    elif (seen := "/".join(reported.result.path.split("/")[-2:])) != str(reported.top):
        more = f" and {len(reported.alike):,} more" if reported.alike else ""
        change = f"{reported.owner}: legacy in {seen}{more}"  # its own template may be modern
    return Owner(*_named(reported.top), change, 1 + len(reported.alike), newest, codes)


def _named(top: objects.Reference) -> tuple[str, str, str]:
    return top.namespace, top.kind, top.name


def _of_events(api: client.Client, came: legacy_counts.Counted) -> Iterator[Owner]:
    """The owners of pods that were repaired lately; many of the pods are deleted by now."""
    owners = objects.Owners(objects.Catalogue(api))
    query = {"fieldSelector": "reason=PodRepaired"}
    for event in listing.objects(api, "/api/v1/events", query=query):
        about = as_map(event.get("involvedObject"))
        codes = tuple(filter(_is_needed, _CODE.findall(str(event.get("message")))))
        is_ours = as_map(event.get("source")).get("component") == "gpu-webhook"
        if codes and is_ours and _is_counted(event, codes, came):
            metadata = {**about, "ownerReferences": [{**about, "controller": True}]}
            top = objects.reference(owners.top({**about, "metadata": metadata}))
            yield Owner(*_named(top), newest=seconds_of(event.get("lastTimestamp")), codes=codes)


def _is_counted(event: dict[str, Any], codes: Iterable[str], came: legacy_counts.Counted) -> bool:
    """Whether the servers counted such a repair, if they counted then.

    Who may create Events in a namespace can write any; only the API server writes when.
    """
    metadata = as_map(event.get("metadata"))
    made_at = seconds_of(metadata.get("creationTimestamp"))
    spaces = (str(metadata.get("namespace")), "other")
    last = max(came.last.get(space, 0.0) for space in spaces)
    times = (last if is_legacy(code) else came.repairs.get(code, 0.0) for code in codes)
    return made_at < came.since or any(when > made_at - _HOUR for when in times)


def _merged(owners: Iterable[Owner]) -> list[Owner]:
    """One row for each owner."""
    found: dict[tuple[str, ...], Owner] = {}
    for each in owners:
        before = found.get(each[:3], Owner(*each[:3]))
        found[each[:3]] = each._replace(
            change=before.change or each.change,
            objects=before.objects + each.objects,
            newest=max(before.newest, each.newest),
            codes=tuple(sorted({*before.codes, *each.codes})),
        )
    return sorted(found.values())
