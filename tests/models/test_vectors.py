import gzip
import json
import re
import struct
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse.linalg import svds
from work import times_as_long

from evenhand.errors import DataError, UsageError
from evenhand.models.corpus import Corpus
from evenhand.models.vector_files import Subwords, piece_hash, read_vectors
from evenhand.models.vectors import (
    WordVectors,
    cosine_weights,
    neighbours,
    positive_information,
    truncated_svd,
)

ORACLES = json.loads((Path(__file__).parents[1] / "oracles" / "oracles.json").read_text())
GLOVE = Path(__file__).parents[3] / "shared" / "data" / "glove_100d.vec.gz"
WORDS = ["the", "café", "cat", ". . ."]
TABLE = np.array([[1, 2, 3], [0.5, -0.25, 0], [-1, 1e-3, 2], [4, 5, 6]], dtype=np.float32)


def lines(words, table):
    return "".join(
        f"{w} {' '.join(str(float(x)) for x in row)}\n" for w, row in zip(words, table, strict=True)
    )


def word2vec_binary(words, table, *, line_breaks):
    records = [
        w.encode() + b" " + row.astype("<f4").tobytes() + (b"\n" if line_breaks else b"")
        for w, row in zip(words, table, strict=True)
    ]
    return f"{len(words)} {table.shape[1]}\n".encode() + b"".join(records)


def fasttext_binary(words, table, *, bucket, shortest, longest, quantised=0, pruned=-1):
    """A model as fastText writes it: settings, dictionary, then rows of words and of pieces."""
    settings = struct.pack(
        "<ii12id",
        *(793712314, 12, table.shape[1], 5, 5, 1, 5, 1, 1, 2, bucket, shortest, longest, 100, 1e-4),
    )
    dictionary = struct.pack("<iiiqq", len(words), len(words), 0, 100, pruned)
    for word in words:
        dictionary += word.encode() + b"\0" + struct.pack("<qb", 7, 0)
    matrix = struct.pack("<qq", *table.shape) + table.astype("<f4").tobytes()
    return settings + dictionary + struct.pack("<b", quantised) + matrix


def says(error, words):
    return pytest.raises(error, match=f"^{re.escape(words)}$")


def agrees(path, words=WORDS, table=TABLE):
    found, vectors = read_vectors(path)
    order = np.argsort(words)
    assert found == tuple(np.array(words)[order])
    np.testing.assert_allclose(vectors, table[order], rtol=1e-6)
    assert vectors.dtype == np.float32


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("kind", ["glove", "vec", "binary", "binary with line breaks"])
def test_each_format_plain_and_compressed(tmp_path, kind, packed):
    content = {
        "glove": lines(WORDS, TABLE).encode(),
        # fastText ends each line with a blank.
        "vec": f"4 3\n{lines(WORDS, TABLE)}".replace("\n", " \n").encode(),
        "binary": word2vec_binary(WORDS[:3], TABLE[:3], line_breaks=False),
        "binary with line breaks": word2vec_binary(WORDS[:3], TABLE[:3], line_breaks=True),
    }[kind]
    path = tmp_path / "vectors"
    path.write_bytes(gzip.compress(content) if packed else content)
    rows = 3 if "binary" in kind else 4
    agrees(path, WORDS[:rows], TABLE[:rows])
    found, vectors = read_vectors(path, wanted=["cat", "dog"])
    assert found == ("cat",)
    np.testing.assert_allclose(vectors, TABLE[2:3], rtol=1e-6)


def test_piece_hash_is_fnv_1a_and_takes_bytes_as_signed():
    # Published values of FNV-1a with 32 bits.
    assert piece_hash(b"") == 0x811C9DC5
    assert piece_hash(b"foobar") == 0xBF9CF968
    # 0xC3 as a signed byte is 0xFFFFFFC3: (0x811c9dc5 ^ 0xffffffc3) * 16777619 mod 2^32.
    assert piece_hash(b"\xc3") == ((0x811C9DC5 ^ 0xFFFFFFC3) * 16777619) % 2**32


def test_pieces_of_a_word_by_hand():
    # "<né>" has the characters < n é >; pieces of two and three of them.
    rule = Subwords(words=10, bucket=1000, shortest=2, longest=3)
    pieces = ["<n", "<né", "né", "né>", "é>"]
    assert rule.rows("né".encode()) == [10 + piece_hash(p.encode()) % 1000 for p in pieces]
    single = Subwords(words=0, bucket=1000, shortest=1, longest=1)
    assert single.rows(b"ab") == [piece_hash(b"a") % 1000, piece_hash(b"b") % 1000]
    assert rule.rows(b"</s>") == []


def test_fasttext_model_averages_a_word_and_its_pieces(tmp_path):
    generator = np.random.default_rng(0)
    table = generator.normal(size=(3 + 50, 4)).astype(np.float32)
    path = tmp_path / "model.bin"
    words = ["cat", "café", "</s>"]
    path.write_bytes(fasttext_binary(words, table, bucket=50, shortest=3, longest=4))
    rule = Subwords(words=3, bucket=50, shortest=3, longest=4)
    expected = [table[[k, *rule.rows(w.encode())]].mean(0) for k, w in enumerate(words)]
    agrees(path, words, np.stack(expected))
    plain = tmp_path / "plain.bin"
    plain.write_bytes(fasttext_binary(words, table[:3], bucket=0, shortest=0, longest=0))
    agrees(plain, words, table[:3])


def test_broken_fasttext_models(tmp_path):
    table = np.ones((3, 4), dtype=np.float32)
    whole = fasttext_binary(["cat", "dog"], table, bucket=1, shortest=3, longest=3)
    path = tmp_path / "model.bin"
    for size in (40, 100, 130, len(whole) - 1):
        path.write_bytes(whole[:size])
        with says(
            DataError,
            f"vectors={str(path)!r} is truncated: its fastText matrix breaks off. "
            "Download or copy it again.",
        ):
            read_vectors(path)
    path.write_bytes(fasttext_binary(["cat"], table, bucket=1, shortest=3, longest=3, quantised=1))
    with pytest.raises(DataError, match="is a quantised fastText model"):
        read_vectors(path)
    path.write_bytes(gzip.compress(whole))
    with pytest.raises(DataError, match=r"is a compressed fastText model\. Unpack it first"):
        read_vectors(path)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (
            b"a 1 2 3\nb 1 2\nc 1 2 3\n",
            "has 2 numbers in line 2 and 3 before. "
            "Every line must hold one word and the same number of numbers.",
        ),
        (
            b"3 3\na 1 2 3\nb 1 2 3 4\nc 1 2 3\n",
            "has 4 numbers in line 3 and 3 before. "
            "Every line must hold one word and the same number of numbers.",
        ),
        (
            b"a 1 2 3\nb 1 2",
            "is truncated: its last line has 2 numbers instead of 3. Download or copy it again.",
        ),
        (
            b"a 1 2 3\nb 1",
            "is truncated: its last line has 1 number instead of 3. Download or copy it again.",
        ),
        (
            b"5 3\na 1 2 3\nb 1 2 3\n",
            "is truncated: it promises 5 words and has 2. Download or copy it again.",
        ),
        (
            b"2 3\na 1 2 3\nb 1 x 3\n",
            "has something that is not a finite number in line 3. "
            "Every line must hold a word and its numbers.",
        ),
        (
            b"a 1 2 3\nb 1 nan 3\n",
            "has something that is not a finite number in line 2. "
            "Every line must hold a word and its numbers.",
        ),
        (b"", "is empty. Give a file with word vectors."),
        (
            word2vec_binary(WORDS[:3], TABLE[:3], line_breaks=False)[:-5],
            "is truncated: it promises 3 words and breaks off in word 3. "
            "Download or copy it again.",
        ),
        (
            gzip.compress(lines(WORDS, TABLE).encode(), mtime=0)[:-12],
            "is truncated: its compressed content breaks off. Download or copy it again.",
        ),
    ],
)
def test_broken_files_in_words(tmp_path, content, words):
    path = tmp_path / "vectors"
    path.write_bytes(content)
    with says(DataError, f"vectors={str(path)!r} {words}"):
        read_vectors(path)


def test_file_that_is_not_there_or_knows_no_word(tmp_path):
    path = tmp_path / "vectors.vec"
    with says(
        UsageError,
        f"vectors={str(path)!r} is not a file. Give a .vec, .txt, .bin or .gz file.",
    ):
        read_vectors(path)
    path.write_text(lines(WORDS, TABLE))
    with says(
        DataError,
        f"vectors={str(path)!r} has none of the 2 words of the texts. "
        "See whether its language and its case are those of the texts.",
    ):
        WordVectors(path).fit(Corpus.from_texts(["hund und"]))


def test_mean_over_known_words(tmp_path):
    path = tmp_path / "vectors.vec"
    path.write_text(lines(WORDS, TABLE))
    train = Corpus.from_texts(["the cat sat", "the café"])
    model = WordVectors(path).fit(train)
    assert model.words == ("café", "cat", "the")
    # Four of the five words have a vector.
    assert model.coverage == pytest.approx(4 / 5)
    found = model.features(Corpus.from_texts(["the the cat zebra", "zebra", ""]))
    expected = (2 * TABLE[0] + TABLE[2]) / 3
    np.testing.assert_allclose(found, [expected, [0, 0, 0], [0, 0, 0]], rtol=1e-6)


def test_cosine_as_in_oracle_1_10():
    case = ORACLES["1.10_beta_WE"]
    found = cosine_weights(np.array([case["e_w"]]), np.array([case["W"]]))
    assert float(found[0, 0]) == pytest.approx(case["beta"], abs=1e-9)
    assert cosine_weights(np.zeros((1, 3)), np.ones((1, 3))).tolist() == [[0.0]]


def test_neighbours_by_hand():
    corpus = Corpus.from_tokens([["a", "b", "a", "c"], ["c", "z"]])
    # Window 1: a-b, b-a, a-c in the first text; c-z is left out, z being unknown.
    found = neighbours(corpus, ("a", "b", "c"), window=1).toarray()
    assert found.tolist() == [[0, 2, 1], [2, 0, 0], [1, 0, 0]]
    # Window 2 adds a-a (counted from both ends) and b-c.
    wider = neighbours(corpus, ("a", "b", "c"), window=2).toarray()
    assert wider.tolist() == [[2, 2, 1], [2, 0, 1], [1, 1, 0]]


def test_information_by_hand():
    corpus = Corpus.from_tokens([["a", "b"], ["a", "b"], ["c", "d"]])
    together = neighbours(corpus, ("a", "b", "c", "d"), window=1)
    found = positive_information(together).toarray()
    # a and b: log(2 / (2·2^¾/(2·2^¾ + 2))).
    assert found[0, 1] == pytest.approx(np.log(2 / (2 * 2**0.75 / (2 * 2**0.75 + 2))), rel=1e-6)
    assert found[0, 2] == 0


def test_truncated_svd_equals_scipy():
    corpus = Corpus.from_tokens(
        np.random.default_rng(0).choice(list("abcdefghijklmnopqrstuvwxyz"), size=(300, 8)).tolist()
    )
    matrix = positive_information(neighbours(corpus, corpus.words, window=2))
    left, sizes = truncated_svd(matrix, width=5, seed=0)
    expected = svds(matrix.astype(float), k=5, random_state=0)
    np.testing.assert_allclose(sizes, expected[1][::-1], rtol=2e-3)
    np.testing.assert_allclose(left.T @ left, np.eye(5), atol=1e-4)


def test_learned_vectors_are_seeded_and_know_the_company_of_words():
    generator = np.random.default_rng(1)
    topics = [[f"t{k}w{j}" for j in range(12)] for k in range(4)]
    texts = [" ".join(generator.choice(topics[k % 4], size=10)) for k in range(400)]
    model = WordVectors(width=8).fit(Corpus.from_texts(texts))
    again = WordVectors(width=8).fit(Corpus.from_texts(texts))
    np.testing.assert_array_equal(model.embedding, again.embedding)
    assert model.embedding.shape == (48, 8)
    near = cosine_weights(model.embedding, model.embedding)
    topic = np.array([word[:2] for word in model.words])
    same = topic[:, None] == topic
    assert near[same].min() > near[~same].max()


def test_nothing_to_learn_from():
    with says(
        DataError,
        "No two of the 2 frequent words stand within 5 words of each other. "
        "Give longer texts, or a file of vectors.",
    ):
        WordVectors(minimum=1).fit(Corpus.from_texts(["one", "two"]))
    with says(UsageError, "width=0 is not a number of dimensions. Give 1 or more."):
        WordVectors(width=0)
    with says(UsageError, "window=0 is not a number of words. Give 1 or more."):
        WordVectors(window=0)


@pytest.mark.heavy
@pytest.mark.skipif(not GLOVE.is_file(), reason="the real vectors are not beside the repository")
def test_glove_file_loads_whole_and_fast():
    words, vectors = read_vectors(GLOVE)
    assert (len(words), vectors.shape[1]) == (59_258, 100)
    near = cosine_weights(vectors, vectors[[words.index("nurse")]])[0]
    best = [words[k] for k in np.argsort(-near)[:20]]
    assert "nurses" in best

    def read():
        with gzip.open(GLOVE, "rt", encoding="utf-8") as lines:
            for line in lines:
                np.array(line.split()[1:], dtype=np.float32)

    ratio = times_as_long(lambda: read_vectors(GLOVE), read, runs=1)
    print(f"a file of vectors: {ratio:.2f} times its numbers, line by line")
    assert ratio < 3
