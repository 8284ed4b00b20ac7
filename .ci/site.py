"""Helps mdBook to build the manual as a site.

`site.py` is a preprocessor of mdBook: links that leave the folder of the manual get the address of the repository.
`site.py check DIR` reads the pages that were built and names every link that leads nowhere.
"""

import html.parser
import json
import pathlib
import re
import sys
import urllib.parse

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent


def leave(page, manual, url):
    """Returns a page's text with the repository's address in links to files outside of the manual."""
    folder = (manual / page).parent

    def link(match):
        target, mark, anchor = match[1].partition("#")
        file = pathlib.Path((folder / target).resolve())
        if "://" in target or not target or file.is_relative_to(manual):
            return match[0]
        return f"]({url}/{file.relative_to(REPOSITORY)}{mark}{anchor})"

    return lambda text: re.sub(r"\]\(([^)\s]+)\)", link, text)


def preprocess():
    context, book = json.load(sys.stdin)
    manual = REPOSITORY / context["config"]["book"]["src"]
    url = context["config"]["preprocessor"]["repository"].get("url") or REPOSITORY.as_uri()

    def visit(items):
        for chapter in (item["Chapter"] for item in items if "Chapter" in item):
            chapter["content"] = leave(chapter["path"], manual, url)(chapter["content"])
            visit(chapter["sub_items"])

    visit(book.get("items") or book["sections"])
    json.dump(book, sys.stdout)


class Page(html.parser.HTMLParser):
    """The targets of a page's links, and the names that links may end in."""

    def __init__(self, text):
        super().__init__()
        self.links, self.names = set(), set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name in ("href", "src") and value:
                self.links.add(value)
            elif name == "id" and value:
                self.names.add(value)


def check(site):
    pages = {path: Page(path.read_text()) for path in site.rglob("*.html") if path.name not in ("print.html", "404.html")}
    dead, seen = [], 0
    for path, page in pages.items():
        for link in page.links:
            target = urllib.parse.urlsplit(link)
            if target.scheme not in ("", "file"):
                continue
            seen += 1
            own = path if not target.path else (path.parent / urllib.parse.unquote(target.path)).resolve()
            named = pages[own].names if own in pages else None
            if not own.exists() or (target.fragment and named is not None and urllib.parse.unquote(target.fragment) not in named):
                dead.append(f"{path.relative_to(site)}: {link}")
    if dead or seen < 100:
        sys.exit("\n".join(sorted(dead)) or f"only {seen} links were found")
    print(f"{len(pages)} pages, {seen} links")


if sys.argv[1:2] == ["check"]:
    check(pathlib.Path(sys.argv[2]).resolve())
elif sys.argv[1:2] != ["supports"]:
    preprocess()
