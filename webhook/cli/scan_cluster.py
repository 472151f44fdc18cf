"""`gpu-webhook scan --cluster`: runs the rules on live workloads and names what must be changed.

Objects of a controller are skipped if their owner is checked as well: the owner must be changed.
They count for a modern owner if they are legacy and still make pods, or are pods that run.
Each object is checked as it was applied, if the API server still has that; findings that are only
in the live object are reported, too.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import orjson

from webhook.cli import file_command, scan_cluster_text
from webhook.cli.progress import progress
from webhook.cli.scan_cluster_result import Reported, is_legacy_result
from webhook.cluster import applied, client, objects, workload_status
from webhook.core import object_size
from webhook.core.errors import InputError
from webhook.core.repaired_annotation import REPAIRED
from webhook.evaluation import repair_record
from webhook.evaluation.workloads import READY_MADE, custom_kinds, templates_of
from webhook.files.results import FileResult, Located, Plan, Report, Status
from webhook.files.search_words import words
from webhook.kube.labels import is_dns_label
from webhook.kube.pod import Raw, as_map, is_finished, is_mirror
from webhook.kube.times import seconds_of
from webhook.rules import is_legacy, legacy_resource
from webhook.yamlpatch.places import Place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import SimpleNamespace

    from webhook.cli.progress import Progress
    from webhook.cluster.objects import Reference, Served


_AS_IT_IS = (
    "in the live object only, not in what was applied; if an apply leaves it there, use "
    "`kubectl replace`"
)
_AS_IT_CAME = (
    "it was sent so and is stored repaired; if its manifest has been migrated since, remove the "
    f"annotation {repair_record.ANNOTATION}"
)


def run(args: SimpleNamespace) -> int:
    """Print the findings; the exit code is as for files."""
    if args.paths or args.filename or args.kustomize:
        raise InputError("--cluster checks a cluster: leave out the files")
    if args.all_namespaces and args.namespace:
        raise InputError("--all-namespaces and --namespace exclude each other: leave one out")
    plan = file_command.plan_of(args)
    scan = Scan(args, plan, lambda: client.connected(args.kubeconfig, args.context))
    with progress() as show_progress:
        reported = sorted(scan.reported(show_progress), key=lambda each: each.result.path)
    found = Report(tuple(each.with_owner() for each in reported), files=scan.seen)
    file_command.write_outputs(args, found)
    if args.output in (None, "text") and not args.quiet:
        sys.stdout.write("".join(f"{line}\n" for line in scan_cluster_text.lines(reported, scan)))
        if args.diff:
            file_command.print_diffs(found.results, file_command.Seen())
    else:
        diffs_of = file_command.Seen() if args.diff else None
        file_command.print_report(args.output or "text", found, diffs_of, quiet=args.quiet)
    return file_command.exit_code(args, found)


def _anything(_obj: Raw) -> bool:
    """Report all legacy findings."""
    return True


def _nothing(_obj: Raw) -> tuple[Located, ...]:
    """Report nothing that modern templates lack."""
    return ()


@dataclass(slots=True)
class Scan:
    """One scan of a cluster; only findings are kept in memory."""

    args: SimpleNamespace
    plan: Plan
    connect: Callable[[], client.Client]
    seen: int = 0
    owned: int = 0  # objects whose owner is checked itself
    repaired: int = 0  # repaired objects; their owner still sends legacy ones
    finished_since: float = math.inf  # report what came then or later, if finished
    static_pods: bool = True  # report those, too, which never come to the webhook
    counts: Callable[[str], bool] = is_legacy  # the repairs of pods that are reported, by code
    needs: Callable[[Raw], bool] = _anything  # whose legacy findings are reported
    lacks: Callable[[Raw], tuple[Located, ...]] = _nothing  # what is reported of modern templates
    ahead: Callable[[Iterator[Raw]], Iterator[Raw]] = iter  # begins what `lacks` needs of some
    idle: dict[Reference, None] = field(default_factory=dict)  # those with others
    halfway: dict[Reference, Raw] = field(default_factory=dict)  # their roll-out has not ended
    _alike: dict[object, Reported] = field(default_factory=dict)
    _before: workload_status.Seen = field(default_factory=workload_status.Seen)
    _idle: list[tuple[Reference, Reported]] = field(default_factory=list)  # those without pods
    _words: tuple[bytes, ...] = ()  # those that legacy objects have
    _named: set[Reference] = field(default_factory=set)  # those for which their owner is named

    def reported(self, show_progress: Progress) -> Iterator[Reported]:
        """All findings, kind by kind."""
        try:
            api = self.connect()
            namespace = self._namespace()
            catalogue = objects.Catalogue(api)
            kinds: list[Served] = catalogue.custom((*custom_kinds(self.plan.settings), *READY_MADE))
        except client.Fault as fault:
            raise client.no_answer(fault) from fault
        for group, name in objects.KINDS:
            try:
                found = catalogue.find(group, name)
            except client.Fault as fault:
                yield Reported(FileResult(name, error=_why(name, fault)))
            else:
                kinds += [] if found is None else [found]
        owners = objects.Owners(catalogue)
        for kind in dict.fromkeys(kinds):
            try:
                selector = self.args.selector or ""
                listed = objects.of_kind(api, kind, show_progress, namespace, selector)
                for obj in self.ahead(listed):
                    yield from self._object_or_why_not(obj, owners)
            except client.Fault as fault:
                yield Reported(FileResult(kind.plural, error=_why(kind.kind, fault)))
                if fault.away:
                    return
            yield from (reported for by, reported in self._idle if not self._before.has_pods(by))
            self._idle.clear()

    def _namespace(self) -> str:
        if self.args.all_namespaces:
            return ""
        named: str = self.args.namespace or client.namespace(
            self.args.kubeconfig, self.args.context
        )
        if not is_dns_label(named):
            raise InputError(f"{named!r} is not the name of a namespace")
        return named

    def _object_or_why_not(self, obj: Raw, owners: objects.Owners) -> Iterator[Reported]:
        """The findings on one object. A failure on it does not stop the others."""
        try:
            yield from self._object(obj, owners)
        except Exception as error:  # noqa: BLE001  # tenants write these objects
            yield Reported(_unchecked(obj, error), itself=objects.reference(obj))

    def older(self, obj: Raw) -> FileResult:
        """What an older template needs that the object does not show any more."""
        try:
            result = self.judged(obj, is_made=True)
            return result if result.remarks else replace(result, located=self.lacks(obj))
        except Exception as error:  # noqa: BLE001  # tenants write these objects
            return _unchecked(obj, error)

    def _object(self, obj: Raw, owners: objects.Owners) -> Iterator[Reported]:
        self.seen += 1
        maker = objects.controller(obj)
        is_made = maker in self._before.makers and objects.may_make(maker, obj)
        itself = objects.reference(obj)
        if obj["kind"] != "Pod":
            self._before.add(obj)
        if workload_status.is_rolling_out(obj):
            self.halfway[itself] = obj
        is_said = is_made and self._is_said(obj, maker)
        if is_said and (obj["kind"] == "Pod" or itself in self._named):
            self.owned += 1
            return
        created = str(as_map(obj["metadata"]).get("creationTimestamp") or "")
        if self._is_over(obj, is_old=seconds_of(created) < self.finished_since):
            return
        result, came = self._result(obj, maker if is_made else None, is_said=is_said)
        if not result.remarks:
            self.owned += is_made
            return
        top = owners.top(obj)
        named = objects.reference(top)
        reported = Reported(result, applied.owner_of(top, obj), [], came, named, itself, created)
        if maker is not None and not is_made and top is not obj and workload_status.is_idle(obj):
            self._idle.append((maker, reported))
            return
        if maker is not None:
            found = tuple((each.code, each.path, each.message) for each in result.located)
            said = named, itself.namespace, obj["kind"], found, result.error
            alike = self._alike.setdefault(said, reported)
            if alike is not reported:
                alike.alike.append(itself)
                alike.created = max(alike.created, created)
                return
        yield reported

    def _is_over(self, obj: Raw, *, is_old: bool) -> bool:
        """Whether it has finished and does not count any more."""
        if obj["kind"] == "Pod":
            is_static = is_mirror(obj) and not self.static_pods
            return is_static or (is_finished(obj) and (is_old or not self._came(obj)))
        return is_old and self.finished_since < math.inf and workload_status.is_finished_job(obj)

    def _found(self, obj: Raw, maker: Reference | None) -> tuple[FileResult, bool]:
        """The findings; whether the last one is that it was sent otherwise and repaired."""
        result = self.judged(obj, is_made=maker is not None)
        if maker is not None:  # its owner has the other findings
            result = replace(_noted(_only_legacy(result), _rollout(maker)), skipped=())
        # Controllers copy the record of a workload, and never remove it from what they made.
        is_copy = maker is not None and obj["kind"] != "Pod"
        if is_copy or is_legacy_result(result) or not self._came(obj):
            return result, False
        self.repaired += 1
        return replace(result, located=(*result.located, self._repaired(obj, maker))), True

    def _result(
        self, obj: Raw, maker: Reference | None, *, is_said: bool
    ) -> tuple[FileResult, bool]:
        """The findings, with what its modern templates lack; whether it came otherwise.

        If all is said with the owner, only what its own template lacks is not.
        """
        found = (FileResult(_path(obj)), False) if is_said else self._found(obj, maker)
        result, came = found
        is_modern = not (came or is_legacy_result(result) or result.error)
        # The template of a pod is tried itself, if it is known.
        is_tried = is_modern and not (maker and obj["kind"] == "Pod")
        lacking = self.lacks(obj) if is_tried else ()
        if lacking or is_legacy_result(result) or result.error:
            self._named.add(objects.reference(obj))
        if not lacking:
            return found
        own = replace(result, located=lacking)
        own = _noted(own, _rollout(maker)) if maker else own
        return replace(result, located=(*result.located, *own.located)), False

    def judged(self, obj: Raw, *, is_made: bool = False) -> FileResult:
        """The findings on the object as it was applied, and the legacy ones of the live object.

        The live object makes the pods: an apply leaves the names that it did not write itself.
        Nobody applied what a controller made. It is not a template, even if a command in it looks
        like one.
        """
        over, live, plan = _excess(obj, self.plan), applied.as_written(obj), self.plan
        if not over:
            sent, is_known = (live, True) if is_made else applied.as_applied(obj, plan.settings)
            over = _excess(sent, plan)
        if over:
            reason = f"{over}: it is not checked; the webhook does not check such objects either"
            return FileResult(_path(obj), error=reason)
        result = self._needed(sent)
        if sent == live:
            return result
        if is_legacy_result(result):
            return result if is_known else _noted(result, _AS_IT_CAME)
        stored = _noted(self._needed(live), _AS_IT_IS)
        if not result.located:
            return stored
        return replace(result, located=(*result.located, *_only_legacy(stored).located))

    def _needed(self, obj: Raw) -> FileResult:
        """The findings, but for the legacy ones of an object that is not one of the wanted."""
        result = _judged(obj, self.plan)
        if not is_legacy_result(result) or self.needs(obj):
            return result
        self.idle[objects.reference(obj)] = None
        modern = (each for each in result.located if not is_legacy(each.code))
        return replace(result, located=tuple(modern))

    def _came(self, obj: Raw) -> bool:
        """Whether a repair is recorded on the object, and not yet in its manifest."""
        if obj["kind"] != "Pod":  # its codes stay when its manifest becomes modern
            return repair_record.has_words(as_map(obj.get("metadata"))) or bool(self._added(obj))
        return any(map(self.counts, self._before.codes(obj)))

    def _added(self, obj: Raw) -> list[str]:
        """The repairs that count, if the object is modern and needs what they added."""
        codes = self._before.codes(obj)
        added = [code for code in codes if self.counts(code) and not is_legacy(code)]
        if obj["kind"] == "Pod":
            return [] if any(map(is_legacy, codes)) else added
        has_words = repair_record.has_words(as_map(obj.get("metadata")))
        is_needed = added and not has_words and applied.has_additions(obj, self.plan.settings)
        return added if is_needed else []

    def _repaired(self, obj: Raw, maker: Reference | None) -> Located:
        """The finding on a repaired object of which no manifest is known."""
        if codes := self._added(obj):
            is_pod = obj["kind"] == "Pod"
            says = f"{'it runs with' if is_pod else 'its template has'} what the webhook added"
            advice = f": write that into its manifest (`gpu-webhook explain {codes[0]}`)"
            advice += "" if is_pod else f"; if it is there, remove the annotation {REPAIRED}"
        else:
            codes = [*filter(is_legacy, self._before.codes(obj))] or [legacy_resource.CODE]
            says = "it was sent legacy and repaired"
            advice = f" ({_rollout(maker)})" if maker else ": migrate what it is made from"
        message = f"{says} ({', '.join(codes)}){advice}"
        return Located(codes[0], message, Status.NOTICE, Place(1, 1, 1, 1))

    def _is_said(self, obj: Raw, maker: Reference | None) -> bool:
        """Whether all is said with the owner. To judge what a controller made takes much longer."""
        if obj["kind"] == "Pod" and self._added(obj):
            return False  # its owner looks as if it needed nothing
        if maker in self._named or not (workload_status.is_used(obj) or maker in self.halfway):
            self._named.add(objects.reference(obj))
            return True
        self._words = self._words or words(self.plan.settings)
        text = orjson.dumps([as_map(obj["metadata"]).get("annotations"), obj.get("spec")])
        came = self._came(obj)
        if came or not any(word in text for word in self._words):
            return not came
        return not (_excess(obj, self.plan) or self.needs(applied.as_written(obj)))


def _unchecked(obj: Raw, error: Exception) -> FileResult:
    why = f"it could not be checked: {error!r:.200}; please report it"
    if isinstance(error, RecursionError | orjson.JSONEncodeError) and objects.is_deep(obj):
        why = "it is nested too deeply, so it is not checked"
    return FileResult(_path(obj), error=why)


def _rollout(maker: object) -> str:
    return f"the template of {maker} is modern: finish its rollout, or delete this object"


def _only_legacy(result: FileResult) -> FileResult:
    return replace(result, located=tuple(e for e in result.located if is_legacy(e.code)))


def _without_zeros(result: FileResult) -> FileResult:
    """The result without 0 GPUs under a legacy name: there is nothing to do in a cluster.

    They ask for nothing, and a repair leaves them, as a LimitRange may name them.
    """
    zero = legacy_resource.CODE, Status.NOTICE
    located = tuple(each for each in result.located if (each.code, each.status) != zero)
    return replace(result, located=located)


def _noted(result: FileResult, note: str) -> FileResult:
    noted = (replace(each, message=f"{each.message} ({note})") for each in result.located)
    return replace(result, located=tuple(noted))


def _excess(obj: Raw, plan: Plan) -> str:
    """Why the object is over the budget of the webhook: tenants can make large objects."""
    return object_size.excess(obj, len(templates_of(obj, plan.settings)))


def _judged(obj: Raw, plan: Plan) -> FileResult:
    from webhook.formats.migrate import judge_object
    from webhook.reports.printing import as_yaml

    return _without_zeros(judge_object(_path(obj), as_yaml(obj), plan))


def _path(obj: Raw) -> str:
    named = objects.reference(obj)
    return "/".join(filter(None, (named.namespace, named.kind, named.name)))


def _why(kind: str, fault: client.Fault) -> str:
    if isinstance(fault, client.Refused):
        return f"{kind}s are not checked: the API server answered {fault}"
    return f"the list of {kind}s failed: {fault}"
