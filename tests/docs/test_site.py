"""The site: every page on its way, every link alive, nothing from elsewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from docsite.build import build
from docsite.linking import problems_in
from docsite.markdown import anchor_of, rendered

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")])
EXAMPLES = sorted((ROOT / "src" / "viewkeeper" / "examples").glob("*/README.md"))


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    target = tmp_path_factory.mktemp("site") / "site"
    assert build(ROOT, target) == []
    return target


def test_every_link_leads_somewhere() -> None:
    assert [problem for page in PAGES + EXAMPLES for problem in problems_in(page, ROOT)] == []


def test_dead_links_and_anchors_are_found(tmp_path: Path) -> None:
    (tmp_path / "other.md").write_text("# A heading, here\n")
    page = tmp_path / "page.md"
    page.write_text(
        "[a](other.md#a-heading-here) [b](other.md#gone) [c](gone.md) ![d](no.png) [e](../../x.md)\n"
    )
    assert list(problems_in(page, tmp_path)) == [
        "page.md: other.md#gone: the page has no such heading",
        "page.md: gone.md: there is no such file",
        "page.md: no.png: there is no such file",
        "page.md: ../../x.md: it leads out of the repository",
    ]


def test_nothing_is_fetched_when_the_site_is_read(site: Path) -> None:
    for file in site.rglob("*"):
        if file.suffix == ".html":
            text = file.read_text(encoding="utf-8")
            loaded = re.findall(r"""(?:src|srcset)=["']([^"']*)""", text)
            loaded += re.findall(r"""<link[^>]*href=["']([^"']*)""", text)
            assert [link for link in loaded if "//" in link] == [], file.name
        if file.suffix in (".css", ".js") and file.name != "search-index.js":
            assert not re.search(r"https?://|@import|url\(", file.read_text()), file.name
        if file.suffix == ".svg":
            links = re.findall(r"""(?:href|src)=["']([^"'#]+)""", file.read_text())
            assert links == [], file.name


def test_links_between_pages_lead_to_pages_of_the_site(site: Path) -> None:
    for file in site.rglob("*.html"):
        for link in re.findall(r'<a [^>]*href="([^"#:]+)', file.read_text(encoding="utf-8")):
            assert (file.parent / link).exists(), f"{file.relative_to(site)}: {link}"


def test_a_page_that_is_gone_fails_the_build_and_a_new_one_is_found(tmp_path: Path) -> None:
    (tmp_path / "docs" / "decisions").mkdir(parents=True)
    (tmp_path / "docs" / "images").mkdir()
    (tmp_path / "docs" / "new.md").write_text("# New\n")
    way = tmp_path / "docs" / "site.toml"
    way.write_text('[[sections]]\ntitle = "A"\npages = ["gone.md"]\n')
    assert build(tmp_path, tmp_path / "site") == ["docs/site.toml names gone.md: no such page"]
    way.write_text("sections = []\n")
    assert build(tmp_path, tmp_path / "site") == []
    assert "<h1" in (tmp_path / "site" / "new.html").read_text()


def test_headings_get_the_anchors_that_github_gives_them() -> None:
    assert anchor_of("What to keep: `viewkeeper advise`") == "what-to-keep-viewkeeper-advise"
    page = rendered("# A\n## B c\n## B c\n[x](y.md#z)\n", lambda link: link.replace(".md", ".html"))
    assert [heading.anchor for heading in page.headings] == ["a", "b-c", "b-c-1"]
    assert 'href="y.html#z"' in page.html
