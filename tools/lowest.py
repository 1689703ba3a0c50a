"""``python tools/lowest.py``: the lowest versions that pyproject.toml admits, one pin a line.

Of the dependencies and of every extra that the package itself needs at run time; tools for
developing and for the documentation are left at their newest.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    import tomli as tomllib  # type: ignore[import-not-found,no-redef]

#: Extras that the installed package never asks for: tools, what experiments use, a model library.
DEVELOPERS = ("dev", "docs", "quantification", "embed")


def pins(pyproject: Path) -> Iterator[str]:
    project = tomllib.loads(pyproject.read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    needed = [
        *project["dependencies"],
        *(d for e in extras if e not in (*DEVELOPERS, "all") for d in extras[e]),
    ]
    for line in sorted(set(needed)):
        found = re.match(r"([\w.-]+)(\[[\w,-]+\])?\s*>=\s*([\w.]+)", line)
        if found is None:
            raise ValueError(f"{line!r} in pyproject.toml has no lowest version (>=)")
        yield f"{found[1]}=={found[3]}"


if __name__ == "__main__":
    print("\n".join(pins(Path(__file__).parents[1] / "pyproject.toml")))
