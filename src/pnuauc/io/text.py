"""Text and vectors of a table -> a few latent components of unit length, learned from all rows.

    t(x) = (1 + log count) idf of every word, and of every four neighbouring letters in a word;
           idf = 1 + log((1 + n) / (1 + rows with the term)); words and letters of length 1 each
    block(x) = t(x)'V / |t(x)'V|, V the first right singular vectors of t(all rows or a draw)

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
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, repeat
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.preprocessing import normalize
from sklearn.utils.extmath import randomized_svd

from pnuauc._utils.arrays import Floats, rows_differ
from pnuauc._utils.extras import need
from pnuauc._utils.stored import Parts, Stored, refuse
from pnuauc.exceptions import InputError
from pnuauc.io.cells import is_vector, pa, pc

#: Latent components at most, of text and of a vector.
N_LATENT = 100
#: Words and letters that are kept, the commonest of each; rows that a word must be in, at least.
_MAX_TERMS, _RARE = 20_000, 2
#: Rows that a block is learned from, a draw of all; and documents that are encoded at a time.
_FIT_ROWS, _BLOCK = 15_000, 8192
#: A word longer than this is an address or a key, not a word.
_LONGEST = 40
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
class _Axes(Stored):
    """Columns of a table that become ``width`` components: ``axes`` is float32, (terms, width)."""

    columns: tuple[str, ...]
    axes: NDArray[np.float32]

    @property
    def width(self) -> int:
        return int(self.axes.shape[1])

    def spec(self) -> dict[str, Any]:
        return {"kind": self.kind, "columns": list(self.columns)}


@dataclass(frozen=True, eq=False)
class TextBlock(_Axes):
    """What was learned of the text columns together: v words, g letters, idf of shape (v + g,)."""

    words: tuple[str, ...]
    letters: tuple[str, ...]
    idf: Floats

    kind = "text"

    @property
    def name(self) -> str:
        return " + ".join(self.columns)

    @classmethod
    def fit(cls, columns: Sequence[str], batch: Any, seed: int) -> TextBlock | None:
        """From the columns of a table; None if no words distinguish the rows."""
        rng = np.random.RandomState(seed)
        drawn = np.sort(rng.permutation(batch.num_rows)[:_FIT_ROWS])
        if len(drawn) < batch.num_rows:
            batch = batch.select(list(columns)).take(drawn)
        seen, often = _counted(map(tokens, chain.from_iterable(_documents(columns, batch))))
        every = sorted({letters for word in seen for letters in _letters(word)})
        spelling = _terms_of(map(_letters, seen), {part: j for j, part in enumerate(every)})
        words, in_rows, own = _commonest(seen, often)
        letters, in_rows_too, others = _commonest(every, often @ spelling)
        if not words:
            return None
        rows = np.concatenate([in_rows, in_rows_too])
        idf = 1.0 + np.log((1.0 + len(drawn)) / (1.0 + rows))
        X = sparse.hstack(_weighed((own, others), idf), "csr")
        if not rows_differ(X):
            return None
        del often, own, others
        return cls(tuple(columns), _axes(X, rng), words, letters, idf)

    @cached_property
    def _places(self) -> tuple[dict[str, int], dict[str, int]]:
        words, letters = ({t: j for j, t in enumerate(own)} for own in (self.words, self.letters))
        return words, letters

    def _latent(self, documents: Iterable[Sequence[str]]) -> Floats:
        """Of the words of some documents."""
        words, letters = self._places
        seen, often = _counted(documents)
        own, spelling = _terms_of(zip(seen), words), _terms_of(map(_letters, seen), letters)
        counts = often @ own, often @ spelling
        axes = np.split(self.axes, [len(words)])
        parts = zip(_weighed(counts, self.idf), axes, strict=True)
        return _unit(sum(X @ own for X, own in parts).astype(np.float64))

    def encode(self, batch: Any) -> Floats:
        """Rows of unit length, shape (n, k); all 0 where no term is known."""
        blocks = [self._latent(map(tokens, part)) for part in _documents(self.columns, batch)]
        return np.concatenate([np.empty((0, self.width)), *blocks])

    def without_words(self, batch: Any, row: int, at_most: int) -> tuple[list[str], Floats]:
        """Known words of one row, the rarest, and the block without each, shape (m, k)."""
        ((text,),) = _documents(self.columns, batch.slice(row, 1))
        found = tokens(text)
        places = self._places[0]
        there = [word for word in dict.fromkeys(found) if word in places]
        known = sorted(there, key=lambda word: -self.idf[places[word]])[:at_most]
        return known, self._latent([w for w in found if w != word] for word in known)

    # ------------------------------------------------------------------ in and out of a file

    def spec(self) -> dict[str, Any]:
        return {**super().spec(), "words": list(self.words), "letters": list(self.letters)}

    @classmethod
    def rebuild(cls, parts: Parts, known: Mapping[str, str]) -> TextBlock:
        columns = _read_columns(parts, known, cls.kind)
        words = _texts(parts, "words", _MAX_TERMS, _LONGEST)
        letters = _texts(parts, "letters", _MAX_TERMS, 4)
        n = len(words) + len(letters)
        idf = parts.array("idf", "float", (n,)).astype(np.float64)
        if n and not 0.0 <= idf.min() <= idf.max() <= 100.0:  # 1 + a logarithm of rows
            raise refuse("the weights of its words are not such as pnuauc computes")
        return cls(columns, _read_axes(parts, n), words, letters, idf)


def _counted(documents: Iterable[Sequence[str]]) -> tuple[list[str], Any]:
    """Different words, and their counts in each document: CSR, a word twice in two cells."""
    places: defaultdict[str, int] = defaultdict()
    places.default_factory = places.__len__  # a new word takes the next place
    indices, ends = array("i"), [0]  # a list would take nine times the memory
    for found in documents:
        indices.extend(map(places.__getitem__, found))
        ends.append(len(indices))
    cells = np.ones(len(indices), np.float32), np.frombuffer(indices, np.int32), ends
    return list(places), sparse.csr_matrix(cells, shape=(len(ends) - 1, len(places)))


def _terms_of(words: Iterable[Sequence[str]], places: Mapping[str, int]) -> Any:
    """Which of the known terms are in each list, a one for each: CSR."""
    indices, ends = array("i"), [0]
    for found in words:
        indices.extend(map(places.get, found, repeat(-1)))
        ends.append(len(indices))
    where = np.frombuffer(indices, np.int32)
    known = where >= 0
    kept = np.append(0, np.cumsum(known))[ends]
    cells = np.ones(kept[-1], np.float32), where[known], kept
    return sparse.csr_matrix(cells, shape=(len(ends) - 1, len(places)))


def _weighed(counts: Sequence[Any], idf: Floats) -> list[Any]:
    """(1 + log count) idf of words and letters, each brought to length 1: there are more letters.

    counts : two CSR matrices; they are overwritten
    """
    parts = np.split(idf.astype(np.float32), [counts[0].shape[1]])
    for X, weights in zip(counts, parts, strict=True):
        np.log(X.data, out=X.data)
        X.data += 1.0
        X.data *= weights[X.indices]
    return [normalize(X, copy=False) if X.shape[0] else X for X in counts]


def _commonest(terms: Sequence[str], counts: Any) -> tuple[tuple[str, ...], Floats, Any]:
    """Terms of several rows, the commonest, in their order; how many rows have them; their columns.

    counts : CSR matrix, shape (n, len(terms))
    """
    counts.sum_duplicates()
    in_rows = np.bincount(counts.indices, minlength=len(terms))
    several: list[int] = np.flatnonzero(in_rows >= _RARE).tolist()
    known = [j for j in several if len(terms[j]) <= _LONGEST]
    chosen = sorted(known, key=lambda j: (-in_rows[j], terms[j]))[:_MAX_TERMS]
    chosen = sorted(chosen, key=lambda j: terms[j])
    return tuple(terms[j] for j in chosen), in_rows[chosen].astype(float), counts[:, chosen]


@dataclass(frozen=True, eq=False)
class VectorBlock(_Axes):
    """What was learned of a column of vectors, or of columns that are one; mean of shape (p,)."""

    mean: Floats

    kind = "vector"

    @property
    def name(self) -> str:
        first = self.columns[0]
        return first if len(self.columns) == 1 else f"{first} to {self.columns[-1]}"

    @classmethod
    def fit(cls, columns: Sequence[str], batch: Any, seed: int) -> VectorBlock | None:
        """From the columns of a table; None where all vectors are alike."""
        X = _vectors(columns, batch, None)
        there = np.isfinite(X).all(axis=1)
        X = X[there]
        if len(X) < 2 or not np.ptp(X, axis=0).any():
            return None
        rng = np.random.RandomState(seed)
        if len(X) > _FIT_ROWS:
            X = X[np.sort(rng.choice(len(X), _FIT_ROWS, replace=False))]
        mean = X.mean(axis=0)
        return cls(tuple(columns), _axes(X - mean, rng), mean)

    def encode(self, batch: Any) -> Floats:
        """Rows of unit length, shape (n, k); all 0 where the vector is missing."""
        X = _vectors(self.columns, batch, len(self.mean)) - self.mean
        X[~np.isfinite(X).all(axis=1)] = 0.0
        return _unit(X @ self.axes)

    @classmethod
    def rebuild(cls, parts: Parts, known: Mapping[str, str]) -> VectorBlock:
        columns = _read_columns(parts, known, cls.kind)
        mean = parts.array("mean", "float", (None,)).astype(np.float64)
        if not 0 < len(mean) <= _MAX_VECTOR or len(columns) not in (1, len(mean)):
            raise refuse("its vector block has the wrong width")
        return cls(columns, _read_axes(parts, len(mean)), mean)


Block: TypeAlias = TextBlock | VectorBlock


def _read_columns(parts: Parts, known: Mapping[str, str], kind: str) -> tuple[str, ...]:
    """The columns of a stored block, which must be of its kind."""
    columns = _texts(parts, "columns", len(known), 10_000)
    if not columns or any(known.get(name) != kind for name in columns):
        raise refuse(f"its {kind} block reads columns that are not {kind}")
    return columns


def _texts(parts: Parts, key: str, at_most: int, longest: int) -> tuple[str, ...]:
    """Different texts of a stored part."""
    found = parts.items(key, at_most)
    if not all(isinstance(text, str) and 0 < len(text) <= longest for text in found):
        raise refuse(f"{key} of a block are not texts that pnuauc writes")
    if len(set(found)) < len(found):
        raise refuse(f"{key} of a block must differ")
    return tuple(found)


def block_from_parts(parts: Parts, known: Mapping[str, str]) -> Block:
    """A block of a model file; ``known``: the encoder's columns and their kinds."""
    kinds: dict[str, Any] = {block.kind: block for block in (TextBlock, VectorBlock)}
    found: Block = kinds[parts.text("kind", kinds)].rebuild(parts, known)
    return found


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


def _documents(columns: Sequence[str], batch: Any) -> Iterator[list[str]]:
    """The text of each row, all columns one after the other; a few rows are Python's at a time."""
    for start in range(0, batch.num_rows, _BLOCK):
        cells = []
        for name in columns:
            values = batch.column(name).slice(start, _BLOCK)
            if pa.types.is_dictionary(values.type):
                values = values.cast(values.type.value_type)
            cells.append(pc.fill_null(values.cast(pa.large_string()), "").to_pylist())
        yield list(map("\n".join, zip(*cells, strict=True)))


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
