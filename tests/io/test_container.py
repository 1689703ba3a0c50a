"""Tests of io/container."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest

from attack.containers import join, sealed
from pnuauc.exceptions import ModelFileError
from pnuauc.io import (
    container as _container,
)
from pnuauc.io.container import (
    MAGIC,
    MAX_DEPTH,
    parse_manifest,
    read_container,
    write_container,
)

RNG = np.random.default_rng(8)


def test_arrays_come_back_as_they_were(tmp_path):
    arrays = {
        "a": RNG.normal(size=(3, 5)), "b": np.arange(7, dtype=np.int32), "c": np.empty((0, 4)),
        "d": np.array([True, False, True]), "e": np.float32(RNG.normal(size=(2, 3, 1))),
        "f": np.arange(6.0).reshape(2, 3).T,
    }  # fmt: skip
    path = tmp_path / "m"
    with path.open("wb") as stream:
        write_container(stream, {"k": [1, "ü"]}, arrays)
    manifest, found = read_container(path)
    assert manifest == {"k": [1, "ü"]}
    assert list(found) == list(arrays)
    for name, value in arrays.items():
        np.testing.assert_array_equal(found[name], value)
        assert found[name].shape == value.shape
    assert path.stat().st_size % 8 == 0
    data = path.read_bytes()
    for place in range(0, len(data), 13):  # one bit anywhere is noticed
        path.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        with pytest.raises(ModelFileError):
            read_container(path)
    for cut in (1, 8, 33, len(data) - 20):
        path.write_bytes(data[:-cut])
        with pytest.raises(ModelFileError):
            read_container(path)


def test_a_model_of_the_usual_size_fits(tmp_path):
    """200 centres of 10,000 columns are 16 MB, and their names 2 MB of manifest."""
    names = [f"{j:0200d}" for j in range(10_000)]
    centres = np.arange(2_000_000.0).reshape(200, 10_000)
    path = tmp_path / "m"
    with path.open("wb") as stream:
        write_container(stream, {"columns": names}, {"centres": centres})
    manifest, found = read_container(path)
    assert manifest == {"columns": names}
    np.testing.assert_array_equal(found["centres"], centres)


def nested(depth):
    return b'{"a": ' + b"[" * (depth - 1) + b"]" * (depth - 1) + b"}"


@pytest.mark.parametrize(
    ("text", "good"),
    [
        (nested(MAX_DEPTH), True), (nested(MAX_DEPTH + 1), False),
        (b'{"a": "' + b"[" * 99 + b'"}', True), (b'{"a": "\\"' + b"[" * 99 + b'"}', True),
        (b'{"a": "\\\\", "b": ' + b"[" * 24 + b"]" * 24 + b"}", False),
        (b'{"a": [[]], "b": [[[]]]}', True), (b"[]", False), (b"{", False), (b"3", False),
        (b'{"a": 12345678901234567890}', True), (b'{"a": 123456789012345678901}', False),
        (b'{"a": 0.' + b"1" * 38 + b"}", True), (b'{"a": 0.' + b"1" * 39 + b"}", False),
        (b'{"a": NaN}', False), (b'{"a": Infinity}', False), (b'{"a": 1e999}', False),
        (b'{"a": 1, "a": 2}', False), (b'{"a": {"b": 1, "b": 1}}', False), (b"\xff", False),
        (b'{"a": "\\ud800"}', False), (b'{"a": -1.5e-3}', True),
    ],
)  # fmt: skip
def test_manifests_within_their_bounds(text, good):
    if good:
        assert parse_manifest(text) == json.loads(text)
    else:
        with pytest.raises(ModelFileError):
            parse_manifest(text)


def contained(manifest, arrays):
    stream = io.BytesIO()
    write_container(stream, manifest, arrays)
    return stream.getvalue()


@pytest.fixture
def refused(tmp_path):
    """The sentence with which bytes are refused."""

    def sentence(data):
        (tmp_path / "m").write_bytes(data)
        with pytest.raises(ModelFileError) as caught:
            read_container(tmp_path / "m")
        return str(caught.value)

    return sentence


def test_a_container_may_hold_no_arrays(tmp_path, refused):
    """Head, manifest and checksum fill it; a byte less is told as a cut, not as damage."""
    data = contained({"k": 1}, {})
    (tmp_path / "m").write_bytes(data)
    assert read_container(tmp_path / "m") == ({"k": 1}, {})
    for cut in (1, 8, 31, 32):
        assert refused(data[:-cut]) == "it is cut short"


@pytest.mark.parametrize("n", [8, 9, 15])
def test_a_file_that_ends_within_its_head_is_none(refused, n):
    data = contained({"k": 1}, {})
    assert data.startswith(MAGIC)
    assert refused(data[:n]).startswith("it is not a pnuauc model")


@pytest.mark.parametrize("n", [1, 150_000, 400_000])
def test_what_a_stranger_wrote_is_told_from_damage(refused, n):
    """A right checksum, whatever the size: the lie is told, not damage; a wrong one is damage."""
    lie = [{"name": "a", "dtype": "float64", "shape": [n + 1]}]
    data = join({}, {"a": np.arange(float(n))}, lie)
    assert refused(data) == "its arrays and its size do not fit together"
    damaged = bytearray(data)
    damaged[-40] ^= 1
    assert refused(bytes(damaged)) == "it is damaged (its checksum differs)"
    assert refused(sealed(b"[]", b"\0" * 8 * n)) == "its manifest is not JSON that pnuauc writes"


def test_quotes_count_as_values(monkeypatch):
    """Strings cost memory without a comma: a quote is counted as a mark is."""
    monkeypatch.setattr(_container, "MAX_VALUES", 4)
    assert parse_manifest(b'{"a":"b"}') == {"a": "b"}
    monkeypatch.setattr(_container, "MAX_VALUES", 3)
    with pytest.raises(ModelFileError, match="more than 3 values"):
        parse_manifest(b'{"a":"b"}')


def test_types_that_no_file_holds():
    for value in (np.array(["a"]), np.zeros(2, dtype=complex), np.zeros(2, dtype=np.int16)):
        with pytest.raises(TypeError, match="array x of type"):
            contained({}, {"x": value})
