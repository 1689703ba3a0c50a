"""Text and vectors of a table -> a few latent components of unit length, learned from all rows.

    t(x) = (1 + log count) idf of every word, and of every four neighbouring letters in a word;
           idf = 1 + log((1 + n) / (1 + rows with the term)); words and letters of length 1 each
    block(x) = t(x)'V / |t(x)'V|, V the first right singular vectors of all rows t

All text columns of a row are one document: a word says the same in the title and in the abstract,
and with ten positives it is seen too rarely to be learned twice. A vector (an embedding) is
centred and goes through its principal axes in the same way. Labels are not looked at: here the
unlabelled rows help without risk.
"""

from __future__ import annotations

import html
import re
import unicodedata
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.extmath import randomized_svd

from pnuauc._utils.arrays import Floats
from pnuauc._utils.extras import need
from pnuauc._utils.stored import Parts, refuse
from pnuauc.exceptions import InputError
from pnuauc.io.cells import is_vector, pa, pc

__all__ = [
    "N_LATENT",
    "SEVERAL_WORDS",
    "Block",
    "TextBlock",
    "VectorBlock",
    "block_from_parts",
    "embed",
    "prior_rows",
    "tokens",
]

#: Latent components at most, of text and of a vector.
N_LATENT = 100
#: Words and letters that are kept, the commonest of each; rows that a word must be in, at least.
_MAX_TERMS, _RARE = 20_000, 2
#: Rows that the singular vectors come from, and documents that are counted at a time.
_AXES_ROWS, _BLOCK = 15_000, 8192
#: A word longer than this is an address or a key, not a word.
_LONGEST = 40
#: Components of text beside columns that a class prior is estimated from.
_PRIOR_LATENT = 10
#: Largest length of a vector.
_MAX_VECTOR = 100_000

#: Letters and digits, two at least, with the marks that Indic, Arabic and Hebrew letters carry; or
#: a pictogram. Scripts without blanks are read by pairs of neighbours.
_MARKS = "\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u0670\u0900-\u0963\u0966-\u0dff"
_PICTOGRAMS = "[\u2600-\u27bf\U0001f300-\U0001faff]"
_NO_BLANKS = "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]"
_WORD = re.compile(rf"[\w{_MARKS}]{{2,}}|{_PICTOGRAMS}")
_RUNS = re.compile(f"{_NO_BLANKS}+")
_TAGS = re.compile(r"<(?:/?[a-zA-Z]|!--)[^<>]*>")
#: What a cell of words has and a name of a row has not: a blank, or what is written without.
SEVERAL_WORDS = rf"\s|{_NO_BLANKS}{{4}}|{_PICTOGRAMS}"


def tokens(text: str) -> list[str]:
    """The words of a text, in lower case; of scripts without blanks pairs of characters.

    HTML counts as what it shows; composed and decomposed letters are one.

    Examples
    --------
    >>> tokens("Does <b>NOT</b> fit: a refund!")
    ['does', 'not', 'fit', 'refund']
    >>> tokens("東京都")
    ['東京', '京都']
    """
    if "<" in text:
        text = _TAGS.sub(" ", text)
    if "&" in text:
        text = html.unescape(text)
    if text.isascii():
        return _WORD.findall(text.lower())
    text = unicodedata.normalize("NFKC", text).lower()
    runs = _RUNS.findall(text)
    pairs = [run[i : i + 2] for run in runs for i in range(max(len(run) - 1, 1))]
    return _WORD.findall(_RUNS.sub(" ", text)) + pairs


def _letters(word: str) -> list[str]:
    """Four neighbouring letters of a word, its ends marked by blanks."""
    marked = f" {word} "
    return [marked[i : i + 4] for i in range(max(len(marked) - 3, 1))]


@dataclass(frozen=True, eq=False)
class _Counts:
    """Words of documents: how often each has which.

    words : list of str, shape (w,); often : CSR matrix, shape (n, w)
    """

    words: list[str]
    often: Any

    @classmethod
    def of(cls, documents: Iterable[Mapping[str, int]]) -> _Counts:
        places: defaultdict[str, int] = defaultdict()
        places.default_factory = places.__len__  # a new word takes the next place
        indices, values = array("i"), array("f")  # a list would take nine times the memory
        ends = [0]
        for found in documents:
            indices.extend(map(places.__getitem__, found))
            values.extend(found.values())
            ends.append(len(indices))
        cells = np.frombuffer(values, np.float32), np.frombuffer(indices, np.int32), ends
        return cls(list(places), sparse.csr_matrix(cells, shape=(len(ends) - 1, len(places))))

    def rows(self) -> Iterator[Any]:
        """The matrix block by block."""
        for start in range(0, self.often.shape[0], _BLOCK):
            yield self.often[start : start + _BLOCK]


@dataclass(frozen=True, eq=False)
class TextBlock:
    """What was learned of the text columns together.

    Attributes
    ----------
    columns : tuple of str
    words, letters : tuples of str
        The terms, v and g of them.
    idf : ndarray, shape (v + g,)
    axes : ndarray of float32, shape (v + g, k)
    """

    columns: tuple[str, ...]
    words: tuple[str, ...]
    letters: tuple[str, ...]
    idf: Floats
    axes: NDArray[np.float32]

    kind = "text"

    @property
    def name(self) -> str:
        return " + ".join(self.columns)

    @property
    def width(self) -> int:
        return int(self.axes.shape[1])

    @classmethod
    def fit(cls, columns: Sequence[str], batch: Any, seed: int) -> TextBlock | None:
        """From the columns of a table; None where no word occurs in two rows."""
        counts = _Counts.of(Counter(tokens(text)) for text in _documents(columns, batch))
        n = counts.often.shape[0]
        words, in_rows = _commonest(counts.words, np.bincount(counts.often.indices))
        if not words:
            return None
        every = sorted({letters for word in counts.words for letters in _letters(word)})
        spelled = _spelling(counts.words, {term: j for j, term in enumerate(every)})
        present = np.zeros(len(every))
        for rows in counts.rows():
            present += np.bincount((rows @ spelled).indices, minlength=len(every))
        letters, in_rows_too = _commonest(every, present)
        idf = 1.0 + np.log((1.0 + n) / (1.0 + np.concatenate([in_rows, in_rows_too])))
        none = np.zeros((len(idf), 0), dtype=np.float32)
        block = cls(tuple(columns), words, letters, idf, none)
        rng = np.random.RandomState(seed)
        drawn = np.sort(rng.permutation(n)[:_AXES_ROWS])
        X = block._terms(replace(counts, often=counts.often[drawn]))
        return replace(block, axes=_axes(sparse.vstack(list(X), format="csr"), rng))

    @cached_property
    def _places(self) -> tuple[dict[str, int], dict[str, int]]:
        v = len(self.words)
        words = {word: j for j, word in enumerate(self.words)}
        return words, {letters: v + j for j, letters in enumerate(self.letters)}

    def _terms(self, counts: _Counts) -> Iterator[Any]:
        """t(x), block by block, shape (n, v + g)."""
        words, letters = self._places
        terms = _spelling(counts.words, letters, words, len(self.idf))
        weights = self.idf.astype(np.float32)
        for rows in counts.rows():
            found = rows @ terms
            found.data = (1.0 + np.log(found.data)) * weights[found.indices]
            # words and letters are brought to length 1 apart: there are more letters
            part = 2 * np.repeat(np.arange(found.shape[0]), np.diff(found.indptr))
            part += found.indices >= len(self.words)
            square = np.bincount(part, found.data**2, 2 * found.shape[0])
            found.data /= np.sqrt(square).astype(np.float32)[part]
            yield found

    def _latent(self, counts: _Counts) -> Floats:
        blocks = [np.asarray(found @ self.axes) for found in self._terms(counts)]
        whole = np.concatenate([np.empty((0, self.width), np.float32), *blocks])
        return _unit(whole.astype(np.float64))

    def encode(self, batch: Any) -> Floats:
        """Rows of unit length, shape (n, k); all 0 where no term is known."""
        texts = _documents(self.columns, batch)
        return self._latent(_Counts.of(Counter(tokens(text)) for text in texts))

    def without_words(self, batch: Any, row: int, at_most: int) -> tuple[list[str], Floats]:
        """Known words of one row, the rarest, and the block without each, shape (m, k)."""
        found = Counter(tokens(next(iter(_documents(self.columns, batch.slice(row, 1))))))
        places = self._places[0]
        there = [word for word in found if word in places]
        known = sorted(there, key=lambda word: -self.idf[places[word]])[:at_most]
        rest = ({w: n for w, n in found.items() if w != word} for word in known)
        return known, self._latent(_Counts.of(rest))

    # ------------------------------------------------------------------ in and out of a file

    def spec(self) -> dict[str, Any]:
        names = {"columns": self.columns, "words": self.words, "letters": self.letters}
        return {"kind": self.kind, **{key: list(found) for key, found in names.items()}}

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {"idf": self.idf, "axes": self.axes}

    @classmethod
    def rebuild(cls, parts: Parts, known: Mapping[str, str]) -> TextBlock:
        columns = _texts(parts, "columns", len(known), 10_000)
        if not columns or any(known.get(name) != "text" for name in columns):
            raise refuse("its text block reads columns that are not text")
        words = _texts(parts, "words", _MAX_TERMS, _LONGEST)
        letters = _texts(parts, "letters", _MAX_TERMS, 4)
        n = len(words) + len(letters)
        idf = parts.array("idf", "float", (n,)).astype(np.float64)
        return cls(columns, words, letters, idf, _read_axes(parts, n))


def _commonest(terms: Sequence[str], in_rows: NDArray[Any]) -> tuple[tuple[str, ...], Floats]:
    """Terms of several rows, the commonest, in their order; and how many rows each is in."""
    several: list[int] = np.flatnonzero(in_rows >= _RARE).tolist()
    known = [j for j in several if len(terms[j]) <= _LONGEST]
    chosen = sorted(known, key=lambda j: (-in_rows[j], terms[j]))[:_MAX_TERMS]
    chosen = sorted(chosen, key=lambda j: terms[j])
    return tuple(terms[j] for j in chosen), np.asarray(in_rows[chosen], dtype=np.float64)


def _spelling(
    words: Sequence[str],
    letters: Mapping[str, int],
    known: Mapping[str, int] | None = None,
    width: int | None = None,
) -> Any:
    """Which terms a word stands for: itself where it is known, and its letters; CSR."""
    indices: list[int] = []
    ends = [0]
    for word in words:
        if known is not None and word in known:
            indices.append(known[word])
        indices.extend(letters[part] for part in _letters(word) if part in letters)
        ends.append(len(indices))
    shape = (len(words), len(letters) if width is None else width)
    cells = np.ones(len(indices), np.float32), np.asarray(indices, np.int32), ends
    return sparse.csr_matrix(cells, shape=shape)


def _texts(parts: Parts, key: str, at_most: int, longest: int) -> tuple[str, ...]:
    """Different texts of a stored part."""
    found = parts.items(key, at_most)
    if not all(isinstance(text, str) and 0 < len(text) <= longest for text in found):
        raise refuse(f"{key} of a block are not texts that pnuauc writes")
    if len(set(found)) < len(found):
        raise refuse(f"{key} of a block must differ")
    return tuple(found)


@dataclass(frozen=True, eq=False)
class VectorBlock:
    """What was learned of a column of vectors, or of columns that are one.

    Attributes
    ----------
    columns : tuple of str
        One column of lists, or p columns of numbers.
    mean : ndarray, shape (p,)
    axes : ndarray of float32, shape (p, k)
    """

    columns: tuple[str, ...]
    mean: Floats
    axes: NDArray[np.float32]

    kind = "vector"

    @property
    def name(self) -> str:
        first = self.columns[0]
        return first if len(self.columns) == 1 else f"{first} to {self.columns[-1]}"

    @property
    def width(self) -> int:
        return int(self.axes.shape[1])

    @classmethod
    def fit(cls, columns: Sequence[str], batch: Any, seed: int) -> VectorBlock | None:
        """From the columns of a table; None where all vectors are alike."""
        X = _vectors(columns, batch, None)
        there = np.isfinite(X).all(axis=1)
        X = X[there]
        if len(X) < 2 or not np.ptp(X, axis=0).any():
            return None
        rng = np.random.RandomState(seed)
        if len(X) > _AXES_ROWS:
            X = X[np.sort(rng.choice(len(X), _AXES_ROWS, replace=False))]
        mean = X.mean(axis=0)
        return cls(tuple(columns), mean, _axes(X - mean, rng))

    def encode(self, batch: Any) -> Floats:
        """Rows of unit length, shape (n, k); all 0 where the vector is missing."""
        X = _vectors(self.columns, batch, len(self.mean)) - self.mean
        X[~np.isfinite(X).all(axis=1)] = 0.0
        return _unit(X @ self.axes)

    def spec(self) -> dict[str, Any]:
        return {"kind": self.kind, "columns": list(self.columns)}

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {"mean": self.mean, "axes": self.axes}

    @classmethod
    def rebuild(cls, parts: Parts, known: Mapping[str, str]) -> VectorBlock:
        columns = _texts(parts, "columns", len(known), 10_000)
        if not columns or any(known.get(name) != "vector" for name in columns):
            raise refuse("its vector block reads columns that are not vectors")
        mean = parts.array("mean", "float", (None,)).astype(np.float64)
        if not 0 < len(mean) <= _MAX_VECTOR or len(columns) not in (1, len(mean)):
            raise refuse("its vector block has the wrong width")
        return cls(columns, mean, _read_axes(parts, len(mean)))


Block: TypeAlias = TextBlock | VectorBlock


def block_from_parts(parts: Parts, known: Mapping[str, str]) -> Block:
    """A block of a model file; ``known``: the encoder's columns and their kinds."""
    kinds: dict[str, Any] = {block.kind: block for block in (TextBlock, VectorBlock)}
    found: Block = kinds[parts.text("kind", kinds)].rebuild(parts, known)
    parts.finish()
    return found


def prior_rows(columns: Floats, latent: Floats) -> Any:
    """What a class prior is estimated from: the columns, and the first components of text.

    Each column would be brought to deviation 1, and a hundred components would drown the columns.
    Text alone is handed over as a sparse matrix, which is taken as it is.
    """
    if not latent.shape[1]:
        return columns
    if not columns.shape[1]:
        return sparse.csr_matrix(latent)
    return np.concatenate([columns, latent[:, :_PRIOR_LATENT]], axis=1)


def _read_axes(parts: Parts, n: int) -> NDArray[np.float32]:
    axes = parts.array("axes", "float", (n, None)).astype(np.float32)
    if not 0 < axes.shape[1] <= N_LATENT:
        raise refuse("a block has too many components")
    return axes


def _axes(X: Any, rng: np.random.RandomState) -> NDArray[np.float32]:
    """The first right singular vectors, shape (v, k), each of a fixed sign."""
    k = min(N_LATENT, *X.shape)
    _, lengths, rows = randomized_svd(X, k, n_iter=3, random_state=rng)
    rows = rows[lengths > 1e-6 * lengths[0]]
    signs = np.sign(rows[np.arange(len(rows)), np.abs(rows).argmax(axis=1)])
    return np.ascontiguousarray((rows * signs[:, None]).T, dtype=np.float32)


def _unit(X: Floats) -> Floats:
    length = np.sqrt(np.einsum("ij,ij->i", X, X))
    return np.asarray(X / np.where(length > 1e-9, length, np.inf)[:, None])


def _documents(columns: Sequence[str], batch: Any) -> Iterator[str]:
    """The text of each row, all columns one after the other; a few rows are Python's at a time."""
    for start in range(0, batch.num_rows, _BLOCK):
        cells = []
        for name in columns:
            values = batch.column(name).slice(start, _BLOCK)
            if pa.types.is_dictionary(values.type):
                values = values.cast(values.type.value_type)
            cells.append(pc.fill_null(values.cast(pa.large_string()), "").to_pylist())
        yield from map("\n".join, zip(*cells, strict=True))


# ---------------------------------------------------------------------------- vectors


def _vectors(columns: Sequence[str], batch: Any, width: int | None) -> Floats:
    """Shape (n, p), NaN where a vector is missing; all must be of one length."""
    if len(columns) > 1:
        found = [batch.column(name).cast(pa.float64()) for name in columns]
        return np.column_stack([v.to_numpy(zero_copy_only=False) for v in map(_whole, found)])
    values = _whole(batch.column(columns[0]))
    n = len(values)
    if pa.types.is_null(values.type):
        return np.full((n, width or 0), np.nan)
    if not is_vector(values.type):
        raise InputError(
            f"Column '{columns[0]}' holds {values.type} values where the model needs vectors."
        )
    there = np.asarray(values.is_valid().to_numpy(zero_copy_only=False), dtype=bool)
    present = values.filter(pa.array(there))
    lengths = np.unique(pc.list_value_length(present).to_numpy(zero_copy_only=False))
    wanted = width if width is not None else (int(lengths[0]) if len(lengths) else 0)
    if any(length != wanted for length in lengths):
        odd = next(int(length) for length in lengths if length != wanted)
        raise InputError(
            f"Column '{columns[0]}' holds vectors of {wanted} and of {odd} numbers; they must be "
            "of one length."
        )
    out = np.full((n, wanted), np.nan)
    if len(present):
        flat = pc.list_flatten(present).cast(pa.float64()).to_numpy(zero_copy_only=False)
        out[there] = flat.reshape(-1, wanted)
    return out


def embed(texts: Iterable[Any], folder: Any) -> NDArray[np.float32]:
    """A vector for each text, by a sentence-transformers model on disk; nothing is downloaded.

    As a column of lists beside the text it is one more view of it. Needs the extra ``embed``.

    Parameters
    ----------
    texts : strings, or what stands for a missing text
    folder : path, folder of the model

    Returns
    -------
    ndarray, shape (n, k)
        Rows of length 1; NaN, a missing vector, where the text is missing.
    """
    library = need("sentence_transformers", "embed")
    if not Path(folder).is_dir():
        raise InputError(f"There is no folder {str(folder)!r} with a sentence-transformers model.")
    model = library.SentenceTransformer(str(folder), device="cpu", local_files_only=True)
    cells = list(texts)
    there = np.array([isinstance(text, str) for text in cells], dtype=bool)
    known = [text for text in cells if isinstance(text, str)]
    found = np.asarray(model.encode(known, normalize_embeddings=True), dtype=np.float32)
    out = np.full((len(cells), found.shape[-1]), np.nan, dtype=np.float32)
    out[there] = found
    return out


def _whole(values: Any) -> Any:
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
