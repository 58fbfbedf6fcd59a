"""Build the documentation as a site: `python docs/build_site.py FOLDER`.

It needs `pip install '.[docs]'` and no network. Pages are those of the checkout, where they are, so that their links
hold in a checkout as well; every link is checked, and nothing is loaded from another host. Formulas become MathML,
which browsers draw by themselves. `python -m http.server -d FOLDER` shows it; from a disk, too, all but the search
works.
"""

from __future__ import annotations

import html
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml  # noqa: TID253

ROOT = Path(__file__).resolve().parents[1]

NAVIGATION: dict[str, tuple[str, ...]] = {
    "Start": (
        "README.md", "docs/tutorial.md", "docs/guides/opacus.md", "docs/guides/ci.md",
    ),
    "How to": (
        "docs/training.md", "docs/after-training.md", "docs/ledger.md", "docs/cards.md", "docs/audit.md",
        "docs/scale.md", "docs/figures.md", "recipes/README.md", "docs/examples/index.md",
    ),
    "Reference": ("docs/README.md", "docs/commands.md", "docs/bounds/README.md", "docs/stability.md", "CHANGELOG.md"),
    "Theory": ("docs/method.md", "docs/tightness.md", "docs/errata.md", "docs/bounds/*.md", "docs/note/*.md"),
    "Evidence": ("docs/benchmarks.md", "docs/utility.md", "docs/landscape.md", "docs/paper/paper.md"),
    "Trust": ("docs/threat-model.md", "SECURITY.md", "CONTRIBUTING.md", "CODE_OF_CONDUCT.md"),
}  # fmt: skip
"""Section -> its pages; those that are not there are left out, and every page has to be in one."""

_COPIED = (
    "recipes", "docs", "CHANGELOG.md", "SECURITY.md", "CONTRIBUTING.md", "CODE_OF_CONDUCT.md", "README.md", "LICENSE",
)  # fmt: skip
_ELSEWHERE = re.compile(
    r"""<(?:script|img|iframe|source)[^>]+src=["']?(?:https?:)?//"""
    r"""|<link[^>]+(?:stylesheet|preload|icon)[^>]+href=["']?(?:https?:)?//"""
    r"""|url\(["']?(?:https?:)?//"""
)

_FORMULA = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.DOTALL)

_COMMENT = re.compile(r"\A<!--.*?-->\s*")
"""What a page begins with that a program made: with it there, its heading would not be its name in the navigation."""

_ANCHORS = "permalink: true\n    slugify: !!python/object/apply:pymdownx.slugs.slugify {kwds: {case: lower}}"
"""Anchors are made as GitHub makes them, so that links hold there as well."""


def _theme(preferred: str, scheme: str, following: str) -> dict[str, Any]:
    """Return a theme, where the system prefers it, and the name of the one that a button leads to."""
    toggle = {"icon": "material/theme-light-dark", "name": following}
    return {"media": f"(prefers-color-scheme{preferred})", "scheme": scheme, "primary": "teal", "toggle": toggle}


def configuration(pages: Path, site: Path) -> dict[str, Any]:
    """Return the configuration of mkdocs for pages in a folder."""
    return {
        "site_name": "dpcalc",
        "site_description": "How private is this training run, what noise does it need, and what does that cost?",
        "docs_dir": str(pages),
        "site_dir": str(site),
        "use_directory_urls": False,  # so that it can be read from a disk
        "theme": {
            "name": "material",
            "font": False,
            "features": ["navigation.tabs", "navigation.top", "toc.follow", "content.code.copy", "search.highlight"],
            "palette": [
                _theme("", "default", "Light colours"),
                _theme(": light", "default", "Dark colours"),
                _theme(": dark", "slate", "Colours of the system"),
            ],
        },
        "extra_css": ["docs/site.css"],
        "plugins": ["search"],
        "markdown_extensions": [
            "tables", "admonition", "pymdownx.superfences", "pymdownx.highlight", "sane_lists",
            {"toc": {"permalink": True}}, {"pymdownx.arithmatex": {"generic": True}},
        ],
        "validation": {
            "omitted_files": "warn", "absolute_links": "warn", "unrecognized_links": "warn", "anchors": "warn",
            "not_found": "warn",
        },
        "exclude_docs": "*.py\n*.ipynb\n",
        "nav": [{section: list(found)} for section, names in NAVIGATION.items() if (found := [*there(names, pages)])],
    }  # fmt: skip


def there(names: tuple[str, ...], pages: Path) -> Iterator[str]:
    """Yield the pages of these names, or of these patterns, that there are; an index comes first and once."""
    for name in names:
        for found in sorted(pages.glob(name)):
            path = str(found.relative_to(pages))
            if "*" not in name or found.name != "README.md":
                yield path


def stage(pages: Path) -> None:
    """Copy what the site is made of, and give folders that are linked a page of their own."""
    for name in _COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, pages / name, ignore=shutil.ignore_patterns("__pycache__", "*.py"))
        elif source.exists():
            shutil.copy(source, pages / name)
    examples = pages / "docs" / "examples"
    listed = "\n".join(f"* [{path.name}]({path.name})" for path in sorted(examples.iterdir()))
    (examples / "index.md").write_text(f"# Examples\n\n{listed}\n", encoding="utf-8")
    for page in pages.rglob("*.md"):
        text = _COMMENT.sub("", page.read_text(encoding="utf-8")).replace("\\<", "&lt;")
        page.write_text(re.sub(r"\]\(examples/?\)", "](examples/index.md)", text), encoding="utf-8")


def with_formulas(page: str) -> str:
    """Return a page with its formulas, marked by the extension for Markdown, as MathML."""
    from latex2mathml.converter import convert

    def drawn(found: re.Match[str]) -> str:
        drawing = convert(html.unescape(found[2]), display="block" if found[1] == "div" else "inline")
        return f'<{found[1]} class="formula">{drawing}</{found[1]}>'

    return _FORMULA.sub(drawn, page)


def build(site: Path) -> None:
    """Build the site.

    Raises:
        SystemExit: mkdocs is missing, a link leads nowhere, or a page loads something from another host.
    """
    with tempfile.TemporaryDirectory() as scratch:
        pages = Path(scratch) / "pages"
        pages.mkdir()
        stage(pages)
        told = Path(scratch) / "mkdocs.yml"
        text = yaml.safe_dump(configuration(pages, site.resolve()), sort_keys=False)
        told.write_text(text.replace("permalink: true", _ANCHORS), encoding="utf-8")
        command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--clean", "-q", "-f", str(told)]
        done = subprocess.run(command, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, check=False)
    if done.returncode:
        sys.exit("the site was not built: see above; mkdocs comes with pip install '.[docs]'")
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        if _FORMULA.search(text):
            page.write_text(with_formulas(text), encoding="utf-8")
    loading = [page for page in site.rglob("*.html") if _ELSEWHERE.search(page.read_text(encoding="utf-8"))]
    if loading:
        sys.exit(f"{loading[0]} loads something from another host")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("python docs/build_site.py FOLDER: where the site is written")
    build(Path(sys.argv[1]))
