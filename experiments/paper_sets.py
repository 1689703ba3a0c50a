"""The paper's data sets: read from a folder, or fetched from where they are published.

``y`` is 1 (positive) or 0 (negative) for every row.
"""

from __future__ import annotations

import hashlib
import lzma
import os
import shutil
import urllib.request
from pathlib import Path
from typing import Any, NamedTuple
from urllib.error import URLError

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.datasets import fetch_openml, load_svmlight_file
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.preprocessing import normalize

from pnuauc.datasets import GENERATORS

__all__ = ["DENSE", "TEXT", "load"]

DENSE = [
    "banana",
    "skin_nonskin",
    "cod-rna",
    "magic",
    "image",
    "susy",
    "ringnorm",
    "twonorm",
    "waveform",
    "covtype",
    "phishing",
    "a9a",
    "mushrooms",
    "usps",
    "w8a",
]
TEXT = ["rcv1", "amazon2", "news20", "reuters21578"]

# File stems of the text sets; a set in several files is stacked in this order.
_TEXT_FILES: dict[str, tuple[list[str], str]] = {
    "rcv1": (["rcv1_vw1500"], "rcv1_vw1500_y"),
    "reuters21578": (["reuters21578_nonearn"], "reuters21578_nonearn_y"),
    "amazon2": (["amazon2_books_vs_music"], "amazon2_books_vs_music_y"),
    "news20": (["news20_part0", "news20_part1"], "news20_y"),
}

_LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary/"


class _Source(NamedTuple):
    """Where a set can be obtained: LIBSVM-format files (stacked) or an OpenML number."""

    files: tuple[str, ...] = ()
    openml_id: int | None = None
    positive: str = "1"  # the source's label of the positive class, or "minority"


_SOURCES: dict[str, _Source] = {
    "skin_nonskin": _Source((_LIBSVM + "skin_nonskin",)),
    "cod-rna": _Source((_LIBSVM + "cod-rna",), positive="-1"),
    "susy": _Source((_LIBSVM + "SUSY.xz",)),
    "covtype": _Source((_LIBSVM + "covtype.libsvm.binary.bz2",)),
    "phishing": _Source((_LIBSVM + "phishing",), positive="minority"),
    "a9a": _Source((_LIBSVM + "a9a", _LIBSVM + "a9a.t")),
    "mushrooms": _Source((_LIBSVM + "mushrooms",), positive="minority"),
    "w8a": _Source((_LIBSVM + "w8a", _LIBSVM + "w8a.t")),
    "rcv1": _Source((_LIBSVM + "rcv1_train.binary.bz2",)),
    "news20": _Source((_LIBSVM + "news20.binary.bz2",)),
    "banana": _Source(openml_id=1460, positive="minority"),
    "magic": _Source(openml_id=1120, positive="minority"),
}


def load(name: str, folder: str | os.PathLike[str] | None = None) -> tuple[Any, NDArray[np.int8]]:
    """One of the paper's 18 data sets (or a stand-in for it), as it is: columns are not rescaled.

    Dense sets are read from ``folder/NAME.npz`` (arrays ``X`` and ``y`` in {-1, +1}); text sets
    from scipy CSR files with labels in ``NAME_y.npy``. Text rows leave here with unit L2 norm
    (reuters21578, raw counts, through tf-idf first). Without a folder, or when the folder lacks the
    set, the set is fetched from OpenML or LIBSVM's site where one of them has it, and cached.

    Parameters
    ----------
    name : str
        One of ``DENSE`` or ``TEXT``; upper and lower case are the same.
    folder : path, optional
        Default: the environment variable ``PNUAUC_DATA``, if it is set.

    Returns
    -------
    X : ndarray of float32 or CSR matrix, shape (n, d)
    y : ndarray of int8, shape (n,)
        1 or 0.

    Notes
    -----
    Downloads go to ``PNUAUC_CACHE`` (default ``~/.cache/pnuauc``). OpenML files are checked
    against the checksum OpenML states. LIBSVM's site states none: the SHA-256 of the first
    download is kept beside the file and every later read must match it.
    """
    key = name.lower()
    if key not in DENSE and key not in TEXT:
        raise ValueError(f"There is no data set {name!r}; choose from {', '.join(DENSE + TEXT)}.")
    where = _folder(folder)
    stems, label_stem = _TEXT_FILES.get(key, ([key], ""))
    if where is not None and all((where / f"{stem}.npz").is_file() for stem in stems):
        return _load_text(where, key, stems, label_stem) if key in TEXT else _load_dense(where, key)
    if folder is not None:
        raise FileNotFoundError(
            f"The folder {os.fspath(folder)} has no file {stems[0]}.npz for the data set {key}; "
            "pass the folder that holds it, or leave folder out to download."
        )
    return _fetch(key)


def _folder(folder: str | os.PathLike[str] | None) -> Path | None:
    if folder is not None:
        path = Path(folder)
        if not path.is_dir():
            raise FileNotFoundError(f"The data folder {path} does not exist.")
        return path
    return _folder(os.environ["PNUAUC_DATA"]) if os.environ.get("PNUAUC_DATA") else None


def _load_dense(where: Path, key: str) -> tuple[NDArray[np.float32], NDArray[np.int8]]:
    with np.load(where / f"{key}.npz", allow_pickle=False) as file:
        return file["X"], (file["y"] > 0).astype(np.int8)


def _load_text(where: Path, key: str, stems: list[str], labels: str) -> tuple[Any, Any]:
    X = sparse.vstack([sparse.load_npz(where / f"{stem}.npz") for stem in stems], format="csr")
    y = (np.load(where / f"{labels}.npy", allow_pickle=False) > 0).astype(np.int8)
    return _normalize_text(X, key), y


def _normalize_text(X: Any, key: str) -> Any:
    X = sparse.csr_matrix(X)  # a copy: normalising must not write into a cached array
    if X.dtype.kind != "f":
        X = X.astype(np.float32)
    if key == "reuters21578":
        return TfidfTransformer(sublinear_tf=True).fit_transform(X)
    return normalize(X)


def _fetch(key: str) -> tuple[Any, NDArray[np.int8]]:
    source = _SOURCES.get(key)
    if source is None:
        instead = f"; make_{key} draws from the same distribution" if key in GENERATORS else ""
        raise FileNotFoundError(
            f"The data set {key} is in no data folder and no download of it is known: set "
            f"PNUAUC_DATA to the folder that holds {key}.npz{instead}."
        )
    try:
        if source.openml_id is not None:
            X, labels = _fetch_openml(source.openml_id)
        else:
            X, labels = _fetch_libsvm(source.files)
    except (URLError, OSError, TimeoutError) as error:
        raise FileNotFoundError(
            f"The data set {key} is in no data folder and could not be downloaded ({error}): "
            f"connect to a network, or set PNUAUC_DATA to the folder that holds {key}.npz."
        ) from error
    y = _binary(labels, source.positive)
    if key in TEXT:
        return _normalize_text(X, key), y
    dense: Any = X.toarray() if hasattr(X, "toarray") else X
    return dense.astype(np.float32), y


def _binary(labels: NDArray[Any], positive: str) -> NDArray[np.int8]:
    values, index, counts = np.unique(labels.astype(str), return_inverse=True, return_counts=True)
    wanted = str(values[counts.argmin()]) if positive == "minority" else positive
    names = [v.removesuffix(".0") for v in values]
    if len(values) != 2 or wanted.removesuffix(".0") not in names:
        raise ValueError(f"Expected two labels with {wanted} among them, got {', '.join(names)}.")
    return np.asarray((index == names.index(wanted.removesuffix(".0"))).astype(np.int8))


def _cache() -> Path:
    path = Path(os.environ.get("PNUAUC_CACHE", Path.home() / ".cache" / "pnuauc"))
    path.mkdir(parents=True, exist_ok=True)
    return path


def _fetch_openml(data_id: int) -> tuple[NDArray[Any], NDArray[Any]]:
    X, y = fetch_openml(
        data_id=data_id,
        data_home=str(_cache()),
        as_frame=False,
        parser="liac-arff",
        return_X_y=True,
        n_retries=1,
    )
    return X, y


def _fetch_libsvm(urls: tuple[str, ...]) -> tuple[Any, NDArray[Any]]:
    blocks, labels, width = [], [], 0
    for url in urls:
        path = _download(url)
        if path.suffix == ".xz":
            with lzma.open(path, "rb") as file:
                X, y = load_svmlight_file(file, dtype=np.float32)
        else:
            X, y = load_svmlight_file(str(path), dtype=np.float32)
        blocks.append(X)
        labels.append(y)
        width = max(width, X.shape[1])
    for X in blocks:  # a part that lacks the last columns reads as narrower
        X.resize(X.shape[0], width)
    return sparse.vstack(blocks, format="csr"), np.concatenate(labels)


def _download(url: str) -> Path:
    """The cached copy of ``url``; fetched first if need be, and checked against its SHA-256."""
    path = _cache() / url.rsplit("/", 1)[-1]
    record = path.with_name(path.name + ".sha256")
    if not path.exists():
        part = path.with_name(path.name + ".part")
        with urllib.request.urlopen(url, timeout=60) as response, open(part, "wb") as out:
            shutil.copyfileobj(response, out)
        record.write_text(_sha256(part) + "\n")
        part.replace(path)  # only a whole file ever carries the final name
    if _sha256(path) != record.read_text().strip():
        raise ValueError(
            f"The cached file {path} does not match its recorded checksum: delete it and "
            f"{record.name}, and load again."
        )
    return path


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()
