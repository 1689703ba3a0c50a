"""LIBSVM text -> CSR matrices, block by block; errors name the line."""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from typing import Any

import numpy as np
from scipy import sparse

from pnuauc.exceptions import InputError
from pnuauc.io._formats import Source, told

__all__ = ["MAX_FEATURES", "LibsvmReader"]

#: Largest index that is read: every feature takes some bytes in the model, used or not.
MAX_FEATURES = 2**22
_BLOCK_BYTES = 8 * 2**20
_SHAPE = "each line reads: label index:value index:value ..., indices from 1"


class LibsvmReader:
    """(CSR, labels) of a LIBSVM file; indices from 1, as the format has them."""

    def __init__(self, source: Source) -> None:
        self.source = source

    def names(self) -> list[str]:
        return []

    def table(self) -> tuple[Any, Any]:
        blocks = list(self.blocks(65_536, None))
        width = max(X.shape[1] for X, _ in blocks)
        for X, _ in blocks:
            X.resize((X.shape[0], width))
        stacked = sparse.vstack([X for X, _ in blocks], format="csr")
        return stacked, np.concatenate([y for _, y in blocks])

    def blocks(self, rows: int, n_features: int | None) -> Iterator[tuple[Any, Any]]:
        """Blocks of ``rows`` lines; ``n_features`` is the width, None takes what the block has."""
        first_line, found = 1, False
        for lines in self._lines(rows):
            X, y = self._parse(lines, first_line, n_features)
            first_line += len(lines)
            if X.shape[0]:
                found = True
                yield X, y
        if not found:
            raise InputError(f"'{self.source.name}' has no rows.")

    def _lines(self, rows: int) -> Iterator[list[bytes]]:
        with told(self.source), self.source.open() as raw:
            rest, done = b"", False
            while not done:
                chunk = raw.read(_BLOCK_BYTES)
                done = not chunk
                lines = (rest + chunk).split(b"\n")
                rest = b"" if done else lines.pop()
                for start in range(0, len(lines), rows):
                    yield lines[start : start + rows]

    def _parse(
        self, lines: list[bytes], first_line: int, n_features: int | None
    ) -> tuple[Any, Any]:
        name = self.source.name
        try:
            X, y = _load(lines)
        except (ValueError, OverflowError, MemoryError) as error:
            k = _first_bad(lines)
            raise InputError(
                f"'{name}' is not LIBSVM text in line {first_line + k} ({_reason(lines[k], error)})"
                f"; {_SHAPE}."
            ) from error
        limit = MAX_FEATURES if n_features is None else n_features
        bad = np.flatnonzero((X.indices >= limit) | ~np.isfinite(X.data))
        if len(bad) or not np.isfinite(y).all():
            places = [k for k, line in enumerate(lines) if line.split(b"#")[0].strip()]
            if not len(bad):
                line = first_line + places[int(np.flatnonzero(~np.isfinite(y))[0])]
                raise InputError(f"'{name}' has a label that is not a number in line {line}.")
            row = int(np.searchsorted(X.indptr, bad[0], side="right")) - 1
            line, index = first_line + places[row], int(X.indices[bad[0]]) + 1
            if index <= limit:
                raise InputError(
                    f"'{name}' holds {X.data[bad[0]]} in line {line}, feature {index}; leave the "
                    "feature out or write a number."
                )
            needs = "the model has" if n_features is not None else "features may number"
            raise InputError(f"'{name}' has feature {index:,} in line {line}; {needs} {limit:,}.")
        X.resize((X.shape[0], n_features if n_features is not None else X.shape[1]))
        return X, y


def _load(lines: list[bytes]) -> tuple[Any, Any]:
    from sklearn.datasets import load_svmlight_file

    text = b"\n".join(lines)
    if not text.strip():
        return sparse.csr_matrix((0, 0)), np.empty(0)
    X, y = load_svmlight_file(BytesIO(text), zero_based=False)
    return X, y


def _fails(lines: list[bytes]) -> bool:
    try:
        _load(lines)
    except (ValueError, OverflowError, MemoryError):
        return True
    return False


def _first_bad(lines: list[bytes]) -> int:
    """The first line that cannot be read: the place where longer and longer beginnings fail."""
    good, bad = 0, len(lines)
    while bad - good > 1:
        middle = (good + bad) // 2
        if _fails(lines[:middle]):
            bad = middle
        else:
            good = middle
    return bad - 1


def _reason(line: bytes, error: Exception) -> str:
    shown = line[:60].decode("utf-8", errors="replace").strip()
    text = str(error).strip().splitlines()
    return f"{shown!r}: {text[0]}" if text else repr(shown)
