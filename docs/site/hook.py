"""From mkdocs' settings to the files of the site: those of the repository, under their paths here.

So a relative link leads to the same file on the site and in the repository, and the sources need no
rewriting: README.md is the front page. A file that is missing here is a broken link, and an error.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from mkdocs.structure.files import File, Files

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig

_ROOT = Path(__file__).parents[2]
_SITE = (
    "*.md",
    "docs/**/*.md",
    "docs/**/*.svg",
    "docs/schema/*.json",
    "docs/site/site.*",
    "manifests/README.md",
    "manifests/monitoring/*",
    "bench/**/*",
)


def on_config(config: MkDocsConfig) -> None:
    """Put the page of each rule behind their table."""
    (reference,) = (tab["Reference"] for tab in config.nav or [] if "Reference" in tab)
    (rules,) = (part["Rules"] for part in reference if "Rules" in part)
    for page in sorted((_ROOT / "docs" / "rules").glob("GPU*.md")):
        # mkdocs would name it after its file: a comment stands before the heading.
        heading = page.read_text().partition("\n# ")[2].partition("\n")[0]
        rules.append({heading: page.relative_to(_ROOT).as_posix()})


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Give the files of the repository instead of those below docs/, and those of the theme."""
    theme = [file for file in files if file.src_dir != config.docs_dir]
    mine = sorted({file for pattern in _SITE for file in _ROOT.glob(pattern) if file.is_file()})
    names = (file.relative_to(_ROOT).as_posix() for file in mine)
    made = (File(name, str(_ROOT), config.site_dir, config.use_directory_urls) for name in names)
    return Files([*theme, *made])
