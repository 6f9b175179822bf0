"""docs/messages.md has every code that a user can meet, and no other."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = ("solvers", "profiles", "checkmate_tf", "experiments")
SAYING = ("CheckmateWarning", "warn_user", "say_once", "_say_once")
SAYING += ("announce", "announce_beside", "detail", "conclude", "_say")
"""What takes a code first, beside the errors."""


def modules() -> list[ast.Module]:
    files = [each for package in PACKAGES for each in sorted((ROOT / package).rglob("*.py"))]
    return [ast.parse(each.read_text(encoding="utf-8")) for each in files]


def error_classes(trees: list[ast.Module]) -> set[str]:
    found = {"CheckmateError"}
    classes = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    while more := {each.name for each in classes if found & set(map(name_of, each.bases))} - found:
        found |= more
    return found


def name_of(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def texts(node: ast.expr) -> Iterator[str]:
    for each in ast.walk(node):
        if isinstance(each, ast.Constant) and isinstance(each.value, str):
            yield each.value


def codes_of_the_source() -> set[str]:
    trees = modules()
    saying = error_classes(trees) | set(SAYING)
    found: set[str] = set()
    for node in (node for tree in trees for node in ast.walk(tree)):
        if isinstance(node, ast.Call) and name_of(node.func) in saying and node.args:
            if isinstance(node.args[0], ast.Constant):
                found.update(texts(node.args[0]))
        elif isinstance(node, ast.Assign) and list(map(name_of, node.targets)) == ["code"]:
            found.update(texts(node.value))
    return found


def codes_of_the_page() -> list[str]:
    page = (ROOT / "docs" / "messages.md").read_text(encoding="utf-8")
    return re.findall(r"^\| `([^`]*)` \| [^|]+ \| [^|]+ \|$", page, re.MULTILINE)


def test_the_page_has_every_code_of_the_source_and_no_other() -> None:
    page, source = codes_of_the_page(), codes_of_the_source()
    assert len(page) == len(set(page))
    assert sorted(page) == sorted(source)


def test_a_code_is_a_few_words() -> None:
    assert all(re.fullmatch(r"[a-z]+(-[a-z]+){1,5}", each) for each in codes_of_the_source())
