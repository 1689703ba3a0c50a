"""Text and vectors: against scikit-learn's own TF-IDF and principal components."""

import json
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer

from pnuauc._utils.stored import Parts
from pnuauc.exceptions import InputError
from pnuauc.io.encode import TableEncoder
from pnuauc.io.readers import read_table
from pnuauc.io.text import N_LATENT, TextBlock, VectorBlock, embed, tokens

RNG = np.random.default_rng(5)
SYLLABLES = ["ba", "do", "fi", "gu", "ke", "lo", "mi", "nu", "pra", "sto"]
VOCABULARY = ["".join(RNG.choice(SYLLABLES, 3)) for _ in range(40)]
TITLES = [" ".join(RNG.choice(VOCABULARY, 4)) for _ in range(70)]
BODIES = [" ".join(RNG.choice(VOCABULARY, 25)) for _ in range(70)]
TABLE = pa.table({"title": TITLES, "body": BODIES})


def cosines(X):
    X = np.asarray(X.todense() if sparse.issparse(X) else X)
    X = X / np.linalg.norm(X, axis=1, keepdims=True)
    return X @ X.T


def four_letters(text):
    return [f" {w} "[i : i + 4] for w in tokens(text) for i in range(max(len(w) - 1, 1))]


def test_a_block_has_the_angles_of_the_tf_idf_of_words_and_letters():
    documents = [f"{title}\n{body}" for title, body in zip(TITLES, BODIES, strict=True)]
    words = TfidfVectorizer(analyzer=tokens, sublinear_tf=True, min_df=2)
    letters = TfidfVectorizer(analyzer=four_letters, sublinear_tf=True, min_df=2)
    both = sparse.hstack([words.fit_transform(documents), letters.fit_transform(documents)])
    block = TextBlock.fit(["title", "body"], TABLE, 0)
    assert block.width < N_LATENT  # 70 rows: nothing is cut off
    np.testing.assert_allclose(cosines(block.encode(TABLE)), cosines(both), atol=1e-5)
    assert set(block.words) == set(words.get_feature_names_out())


def test_rows_have_length_one_and_do_not_depend_on_their_neighbours():
    block = TextBlock.fit(["body"], TABLE, 0)
    whole = block.encode(TABLE)
    np.testing.assert_allclose(np.linalg.norm(whole, axis=1), 1.0)
    pieces = [block.encode(TABLE.slice(start, 13)) for start in range(0, 70, 13)]
    np.testing.assert_allclose(np.concatenate(pieces), whole, atol=1e-6)


def test_missing_and_unknown_text_is_nothing():
    block = TextBlock.fit(["body"], TABLE, 0)
    others = pa.table({"body": pa.array([None, "", "zzzzzz yyyyyy", "!!"], pa.string())})
    np.testing.assert_array_equal(block.encode(others), np.zeros((4, block.width)))
    assert block.encode(others.slice(0, 0)).shape == (0, block.width)


def test_without_a_word_is_the_text_without_it():
    block = TextBlock.fit(["title", "body"], TABLE, 0)
    words, without = block.without_words(TABLE, 3, 100)
    assert set(words) == set(tokens(TITLES[3] + " " + BODIES[3]))
    for word, found in zip(words, without, strict=True):
        left = [" ".join(w for w in text.split() if w != word) for text in (TITLES[3], BODIES[3])]
        expected = block.encode(pa.table({"title": [left[0]], "body": [left[1]]}))[0]
        np.testing.assert_allclose(found, expected, atol=1e-6)


def test_nothing_is_learned_from_words_that_do_not_recur():
    assert TextBlock.fit(["t"], pa.table({"t": ["one two", "three four", None]}), 0) is None


def test_nothing_is_learned_from_words_that_every_row_has():
    texts = [f"order {k} of shop {k % 7}" for k in range(100)]
    assert TextBlock.fit(["t"], pa.table({"t": texts}), 0) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Does NOT fit, refund!", ["does", "not", "fit", "refund"]),
        ("Größe über 3 cm", ["größe", "über", "cm"]),
        ("Не подошёл", ["не", "подошёл"]),
        ("東京都 is 大", ["is", "東京", "京都", "大"]),
        ("नमस्ते दुनिया।", ["नमस्ते", "दुनिया"]),
        ("cafe\u0301 ＡＢＣ", ["café", "abc"]),
        ("good 👍🔥", ["good", "👍", "🔥"]),
        ('<p class="x">3 < 5 &amp; <b>two</b>&nbsp;words</p><!-- no -->', ["two", "words"]),
        ("", []),
    ],
)
def test_words_of_any_script(text, expected):
    assert tokens(text) == expected


# ---------------------------------------------------------------------------- vectors

VECTORS = RNG.normal(size=(60, 8)) @ RNG.normal(size=(8, 8)) + 3.0


def vector_column(kind):
    return pa.array(VECTORS.tolist(), kind)


@pytest.mark.parametrize(
    "kind",
    [pa.list_(pa.float64()), pa.list_(pa.float64(), 8), pa.large_list(pa.float64())],
    ids=str,
)
def test_a_vector_has_the_angles_of_its_centred_rows(kind):
    table = pa.table({"e": vector_column(kind)})
    found = TableEncoder().fit(table).transform(table)
    np.testing.assert_allclose(cosines(found), cosines(VECTORS - VECTORS.mean(axis=0)), atol=1e-5)


def test_columns_with_a_stem_are_one_vector():
    lists = pa.table({"e": vector_column(pa.list_(pa.float64()))})
    apart = pa.table({f"e_{j}": VECTORS[:, j] for j in range(8)}).append_column(
        "other", pa.array(RNG.normal(size=60))
    )
    encoder = TableEncoder(embedding=["e"]).fit(apart)
    np.testing.assert_allclose(
        encoder.transform(apart)[:, 1:], TableEncoder().fit(lists).transform(lists), atol=1e-6
    )
    assert list(encoder.groups_) == ["other", "e_0 to e_7"]
    assert encoder.encoding_.width("trees") == 1


def test_pandas_and_json_lines_hold_vectors_too(tmp_path):
    expected = (
        TableEncoder()
        .fit(pa.table({"e": VECTORS.tolist()}))
        .transform(pa.table({"e": VECTORS.tolist()}))
    )
    frame = pd.DataFrame({"e": list(VECTORS)})
    np.testing.assert_allclose(TableEncoder().fit(frame).transform(frame), expected)
    path = tmp_path / "t.jsonl"
    path.write_text("\n".join(json.dumps({"e": row}) for row in VECTORS.tolist()))
    table = read_table(path)
    np.testing.assert_allclose(TableEncoder().fit(table).transform(table), expected)


def test_a_missing_vector_is_nothing_and_one_of_another_length_is_refused():
    table = pa.table({"e": vector_column(pa.list_(pa.float64()))})
    encoder = TableEncoder().fit(table)
    gaps = pa.table({"e": pa.array([None, VECTORS[0].tolist()])})
    found = encoder.transform(gaps)
    assert not found[0].any()
    assert np.linalg.norm(found[1]) == pytest.approx(1.0)
    with pytest.raises(InputError, match="vectors of 8 and of 2 numbers"):
        encoder.transform(pa.table({"e": [[1.0, 2.0]]}))
    with pytest.raises(InputError, match="string values where the model needs vectors"):
        encoder.transform(pa.table({"e": ["a"]}))


def test_lists_of_different_lengths_and_embeddings_that_are_none():
    ragged = pa.table({"e": [[1.0] * (1 + k % 2) for k in range(30)], "x": RNG.normal(size=30)})
    encoder = TableEncoder().fit(ragged)
    assert [c.name for c in encoder.columns_] == ["x"]
    assert "lists of different lengths" in encoder.notes_[0]
    with pytest.raises(InputError, match="There is no embedding 'z'"):
        TableEncoder(embedding=["z"]).fit(ragged)


def test_texts_become_vectors_by_a_model_on_disk(tmp_path, monkeypatch):
    class Model:
        def __init__(self, folder, device, local_files_only):
            assert (folder, local_files_only) == (str(tmp_path), True)

        def encode(self, texts, normalize_embeddings):
            return np.array([[len(text), 1.0] for text in texts])

    library = type("library", (), {"SentenceTransformer": Model})
    monkeypatch.setitem(sys.modules, "sentence_transformers", library)
    found = embed(["abc", None, "d"], tmp_path)
    np.testing.assert_array_equal(found, [[3.0, 1.0], [np.nan, np.nan], [1.0, 1.0]])
    with pytest.raises(InputError, match="no folder 'hub/name'"):
        embed(["abc"], "hub/name")


# ---------------------------------------------------------------------------- in a table


def mixed(n=120):
    names = [f"{a} {b}" for a, b in RNG.choice(VOCABULARY, (n, 2))]
    return pa.table(
        {
            "body": [" ".join(RNG.choice(VOCABULARY, 12)) for _ in range(n)],
            "size": RNG.normal(size=n),
            "name": names,
            "shop": [f"shop{k % 15}" for k in range(n)],
            "e": RNG.normal(size=(n, 5)).tolist(),
        }
    )


def test_text_and_vectors_come_last_and_trees_do_not_see_them():
    table = mixed()
    encoder = TableEncoder().fit(table)
    groups = encoder.groups_
    assert list(groups) == ["size", "shop", "body + name", "e"]
    latent = encoder.encoding_.n_latent
    assert groups["body + name"] + groups["e"] == list(range(16, 16 + latent))
    assert list(encoder.groups("trees")) == ["size", "shop"]
    assert encoder.layout(encoder.views) == {"n_tree_columns": 2, "n_latent_columns": latent}


@pytest.mark.parametrize(
    ("parts", "kind"),
    [
        (["退款", "不合适", "颜色", "很好", "物流"], "text"),
        (["ไม่พอดี", "สี", "ดีมาก", "ส่งช้า"], "text"),
        (["返金", "サイズ", "とても", "良い"], "text"),
        (["😀", "😡", "👍", "🔥"], "text"),
        (["возврат ", "размер ", "цвет "], "text"),
        (["A7", "x_", "09", "b-"], None),
    ],
)
def test_text_has_several_words_in_any_script_and_other_strings_name_the_rows(parts, kind):
    rng = np.random.default_rng(0)
    cells = ["".join(rng.choice(parts, 12)) for _ in range(300)]
    assert len(set(cells)) == 300
    table = pa.table({"t": cells, "x": rng.normal(size=300)})
    found = {column.name: column.kind for column in TableEncoder().fit(table).columns_}
    assert found.get("t") == kind


def test_short_strings_that_recur_are_categories_however_many():
    codes = pa.table({"code": [f"c{k % 150}" for k in range(1500)]})
    (column,) = TableEncoder().fit(codes).columns_
    assert column.kind == "category"


def rebuilt(spec, arrays):
    """The encoder that a model file describes."""
    parts = Parts({"encoder": spec}, {f"encoder/{k}": v for k, v in arrays.items()})
    return parts.part("encoder", TableEncoder.rebuild)


def test_what_was_learned_is_stored_and_read():
    table = mixed()
    encoder = TableEncoder().fit(table)
    spec = json.loads(json.dumps(encoder.spec()))
    again = rebuilt(spec, encoder.arrays())
    np.testing.assert_array_equal(again.transform(table), encoder.transform(table))


def _text(spec):
    return spec["block0"]


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda s, a: _text(s)["words"].append("more"), "idf"),
        (lambda s, a: _text(s)["words"].__setitem__(0, 7), "words"),
        (lambda s, a: _text(s)["words"].__setitem__(0, _text(s)["words"][1]), "differ"),
        (lambda s, a: _text(s)["columns"].__setitem__(0, "size"), "not text"),
        (lambda s, a: _text(s)["columns"].pop(), "do not read"),
        (lambda s, a: _text(s).__setitem__("more", 1), "more"),
        (lambda s, a: _text(s).__setitem__("kind", "pickle"), "kind"),
        (lambda s, a: s.pop("block1"), "block1"),
        (lambda s, a: s.pop("n_blocks"), "n_blocks"),
        (lambda s, a: a.__setitem__("block0/axes", np.full((3, 2), 1.0)), "shape"),
        (lambda s, a: a["block0/idf"].__setitem__(0, np.nan), "finite"),
        (lambda s, a: a["block0/idf"].__setitem__(0, 1e300), "weights of its words"),
        (lambda s, a: a.__setitem__("block1/mean", np.zeros(0)), "width"),
        (lambda s, a: a.__setitem__("block9/mean", np.zeros(2)), "block9"),
    ],
)
def test_a_crafted_block_is_refused(spoil, message):
    encoder = TableEncoder().fit(mixed())
    spec = json.loads(json.dumps(encoder.spec()))
    arrays = {name: values.copy() for name, values in encoder.arrays().items()}
    spoil(spec, arrays)
    with pytest.raises(ValueError, match=message):
        rebuilt(spec, arrays)


def test_vectors_that_are_all_alike_are_left_out():
    table = pa.table({"e": [[1.0, 2.0]] * 30, "x": RNG.normal(size=30)})
    assert VectorBlock.fit(["e"], table, 0) is None
    encoder = TableEncoder().fit(table)
    assert [c.name for c in encoder.columns_] == ["x"]
    assert encoder.notes_ == ["Column 'e': all vectors are alike; left out."]
