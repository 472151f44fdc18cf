"""Reports as they may come: one that shows everything, an empty one, large and hostile ones."""

from __future__ import annotations

from webhook.files.results import FileResult, Located, Report, Skipped, Status
from webhook.reports.excerpt import Lines
from webhook.yamlpatch.places import Place, Replacement

LEGACY = "alpha.kubernetes.io/nvidia-gpu"
TODAY = "nvidia.com/gpu"

POD = """\
# Trains the model; see the wiki.
apiVersion: v1
kind: Pod
metadata:
  name: trainer
  annotations:
    scheduler.alpha.kubernetes.io/nvidiaGPU: '{"AllocationPriority": "Dense"}'
spec:
  containers:
  - name: cuda
    image: registry.example/cuda:8.0
    resources:
      limits:
        alpha.kubernetes.io/nvidia-gpu: 2  # both
  restartPolicy: Never
"""
_HINT = POD[POD.index("  annotations:") : POD.index("spec:")]
_TOLERATION = """\
  tolerations:
  - key: nvidia.com/gpu
    operator: Exists
    effect: NoSchedule
"""
CHART = """\
{{- if .Values.gpu.enabled }}
apiVersion: batch/v1
kind: Job
metadata: {name: "{{ .Release.Name }}-train"}
spec:
  template:
    spec:
      containers:
      - name: train
\t# a tab in a comment
        resources: {limits: {alpha.kubernetes.io/nvidia-gpu: {{ .Values.gpu.count }}}}
        env: {{- include "train.env" . | nindent 8 }}
      restartPolicy: Never
{{- end }}
"""
OLD_JSON = '{\r\n  "kind": "Pod",\r\n  "limits": {"alpha.kubernetes.io/nvidia-gpu": 1}\r\n}'
GUIDE = """\
# Großer Führer 显卡 <b>

```yaml
limits: {alpha.kubernetes.io/nvidia-gpu: 1}
```
"""
BROKEN = "a: b\n---\nkind: Pod\n  spec: [\n"


def place(text: str, words: str) -> Place:
    """Where these words are first."""
    start = text.index(words)
    return Lines(text).place(start, start + len(words))


def renamed(text: str) -> Replacement:
    """Give the replacement for the first legacy name."""
    start = text.index(LEGACY)
    return Replacement(start, start + len(LEGACY), TODAY)


def inserted(text: str, before: str, new: str) -> Replacement:
    """Give the replacement that puts lines before these words."""
    start = text.index(before)
    return Replacement(start, start, new)


def applied(text: str, *fix: Replacement) -> str:
    """Give the text with the replacements made."""
    for each in sorted(fix, key=lambda replacement: replacement.start, reverse=True):
        text = text[: each.start] + each.text + text[each.end :]
    return text


def _pod() -> FileResult:
    rename = renamed(POD)
    at = POD.index(_HINT)
    drop = Replacement(at, at + len(_HINT), "")
    tolerate = inserted(POD, "  restartPolicy", _TOLERATION)
    return FileResult(
        "deploy/trainer.yaml",
        text=POD,
        new_text=applied(POD, rename, drop, tolerate),
        located=(
            Located(
                "GPU108",
                "the annotation scheduler.alpha.kubernetes.io/nvidiaGPU has no effect today and is "
                "removed: nothing replaces this hint; delete it",
                Status.FIXABLE,
                place(POD, "scheduler.alpha.kubernetes.io/nvidiaGPU"),
                "metadata.annotations[scheduler.alpha.kubernetes.io/nvidiaGPU]",
                "Pod/trainer",
                (drop,),
            ),
            Located(
                "GPU101",
                f"container cuda requests {LEGACY}, which no node offers; write {TODAY}: 2",
                Status.FIXABLE,
                place(POD, LEGACY),
                f"spec.containers[0].resources.limits[{LEGACY}]",
                "Pod/trainer",
                (rename,),
            ),
            Located(
                "GPU201",
                "GPU nodes are usually tainted: add the toleration nvidia.com/gpu:NoSchedule to "
                "the manifest",
                Status.FIXABLE,
                place(POD, "spec:"),
                "spec.tolerations",
                "Pod/trainer",
                (tolerate,),
            ),
            Located(
                "GPU301",
                "requests 2 nvidia.com/gpu; no node has more than 1. Ask for 1 or split the work.",
                Status.MANUAL,
                place(POD, "  containers:\n  - name: cuda\n    image"),
                "spec",
                "Pod/trainer",
            ),
        ),
    )


def _chart() -> FileResult:
    rename = renamed(CHART)
    return FileResult(
        "charts/train/templates/job.yaml",
        "helm",
        CHART,
        applied(CHART, rename),
        (
            Located(
                "GPU101",
                f"requests {LEGACY}, which no node offers; write {TODAY}",
                Status.FIXABLE,
                place(CHART, LEGACY),
                fix=(rename,),
            ),
            Located(
                "GPU109",
                'the template hides what include "train.env" writes: look for old driver paths in '
                "it, 100% of them | and | `all`",
                Status.MANUAL,
                place(CHART, '{{- include "train.env" . | nindent 8 }}'),
            ),
        ),
        (Skipped("the block is of another language", place(CHART, "# a tab in a comment")),),
    )


def everything() -> Report:
    """Each status, each kind of fix, a file that was not read, a part that was skipped."""
    return Report(
        (
            FileResult("bad/broken.yaml", error="is not UTF-8: byte 0xff at 17"),
            FileResult(
                "bad/half read.yaml",
                text=BROKEN,
                skipped=(
                    Skipped(
                        "mapping values are not allowed here\n  in line 4, column 7",
                        Place(4, 7, 4, 8),
                    ),
                    Skipped("is larger than 64 MiB"),
                ),
            ),
            _chart(),
            _pod(),
            FileResult(
                "docs/Führer <b> & 100%, [a] #1.md",
                "markdown",
                GUIDE,
                None,
                (
                    Located(
                        "GPU900",
                        "a code that no rule has, @all of #1: see https://example.com",
                        Status.NOTICE,
                        place(GUIDE, "显卡"),
                    ),
                ),
            ),
            FileResult(
                "old/pod.json",
                "json",
                OLD_JSON,
                applied(OLD_JSON, renamed(OLD_JSON)),
                (
                    Located(
                        "GPU101",
                        f"requests {LEGACY}, which no node offers; write {TODAY}: 1",
                        Status.FIXED,
                        place(OLD_JSON, f'"{LEGACY}"'),
                        fix=(renamed(OLD_JSON),),
                    ),
                ),
            ),
        ),
        files=120,
        repository="training",
        time=1795432980,
    )


def empty() -> Report:
    """Nothing was found."""
    return Report((), files=42)


_STATUSES = (Status.FIXABLE, Status.FIXABLE, Status.FIXABLE, Status.MANUAL, Status.NOTICE)
_CODES = ("GPU101", "GPU101", "GPU201", "GPU301", "GPU302")


def many(findings: int, folders: int = 8) -> Report:
    """Give so many findings in files of five, over these folders."""
    results = []
    for number in range(-(-findings // 5)):
        text = POD.replace("trainer", f"trainer-{number}")
        located = tuple(
            Located(
                _CODES[at],
                f"container cuda of trainer-{number} requests {LEGACY}, which no node offers",
                _STATUSES[at],
                place(text, LEGACY),
                f"spec.containers[{at}].resources.limits[{LEGACY}]",
                f"Pod/trainer-{number}",
                (renamed(text),) if at == 0 else (),
            )
            for at in range(min(5, findings - 5 * number))
        )
        path = f"team-{number % folders}/deploy/trainer-{number}.yaml"
        results.append(FileResult(path, "yaml", text, applied(text, renamed(text)), located))
    results.sort(key=lambda result: result.path)
    return Report(tuple(results), files=10_000)


HOSTILE = (
    "</script><script>fetch('http://evil.example/')</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "::error file=a::pwned",
    "##[error]pwned",
    "\x1b[2J\x1b]0;title\x07",
    "\u202egnp.exe",
    "a\r\nb\x00c\x85d\u2028e\ufefff\uffff",
    "]]>&amp;&#60;",
    "```\n</details>\n# heading @everyone | cell |",
    "%0A::set-output name=x::y",
    "lone \udc80\ud800 surrogates 🙂",
    "$policy ${script} {} %s {{ x }}",
    "- key: *alias\n? !!python/object:os.system",
    "-->",
    "",
)


def hostile() -> Report:
    """Give names and texts that try to break out of every format."""
    results = []
    for words in HOSTILE:
        text = f"{words}\n{LEGACY}: 1\n"
        at = Place(1, 1, 1, 1 + len(words))
        results.append(
            FileResult(
                f"dir {words}/{words}.yaml",
                f"kind {words}",
                text,
                applied(text, renamed(text)),
                (
                    Located(words or "X", words, Status.MANUAL, at, words, words),
                    Located("GPU101", words, Status.FIXABLE, at, words, words, (renamed(text),)),
                ),
                (Skipped(words, at), Skipped(words)),
                words,
            )
        )
    return Report(tuple(results), files=len(results))
