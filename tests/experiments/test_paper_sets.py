"""Tests of experiments/paper_sets."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from experiments.paper_sets import load


def test_load_from_an_argument_and_from_the_environment(tmp_path, monkeypatch) -> None:
    X = np.arange(6, dtype=np.float32).reshape(3, 2)
    np.savez(tmp_path / "banana.npz", X=X, y=np.array([1, -1, 1], dtype=np.int8))
    for part in ("news20_part0", "news20_part1"):
        sparse.save_npz(tmp_path / f"{part}.npz", sparse.csr_matrix(X))
    np.save(tmp_path / "news20_y.npy", np.array([1, -1, 1, -1, -1, -1]))
    for folder in (tmp_path, None):
        monkeypatch.setenv("PNUAUC_DATA", str(tmp_path))
        got, y = load("banana", folder)
        np.testing.assert_array_equal(got, X)
        np.testing.assert_array_equal(y, [1, 0, 1])
        text, y = load("news20", folder)
        assert text.shape == (6, 2)
        assert y.tolist() == [1, 0, 1, 0, 0, 0]
    with pytest.raises(FileNotFoundError, match="magic"):
        load("magic", tmp_path)
    with pytest.raises(FileNotFoundError, match="does not exist"):
        load("magic", tmp_path / "nowhere")
    with pytest.raises(ValueError, match="There is no data set"):
        load("iris")
