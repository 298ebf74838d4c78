"""`evenhand norms`: fit, score and audit, the words of every refusal, and real biographies."""

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from evenhand.models.corpus import BagOfWords, Corpus
from evenhand.models.linear import LogisticClassifier
from evenhand.models.norms.table import training_rows
from evenhand.models.vectors import WordVectors
from evenhand.simulate.biographies import Occupation, biographies
from evenhand.text.mask import mask_texts

DATA = Path(__file__).parents[3] / "shared" / "data"
SHARES = {"nurse": 0.8, "teacher": 0.65, "poet": 0.5, "lawyer": 0.4, "pilot": 0.3, "rapper": 0.2}
FEW = {title: Occupation(female_share=share) for title, share in SHARES.items()}
ROLES = ("--text", "text", "--truth", "title")


@pytest.fixture(scope="module")
def bios(tmp_path_factory) -> Path:
    """2,400 biographies with a score of their own title that leaks the norm of the group."""
    made = biographies(2_400, occupations=FEW, spurious=2.0, seed=0)
    hidden = made.hidden["norm"].to_numpy()
    share = np.array([SHARES[title] for title in made.frame["title"]])
    noise = np.random.default_rng(1).standard_normal(2_400)
    table = made.frame.with_columns(
        pl.Series("score:truth", 3 * (share - 0.5) * hidden + noise),
        pl.Series("part", np.where(np.arange(2_400) % 3 > 0, "train", "test")),
        pl.Series("hours", hidden * 5 + 40),
    )
    path = tmp_path_factory.mktemp("norms") / "bios.parquet"
    table.write_parquet(path)
    return path


def test_fit_score_and_audit(run, bios, tmp_path):
    norms, out = tmp_path / "norms", tmp_path / "normed.parquet"
    code, told, _ = run("norms", "fit", bios, *ROLES, "--group", "gender", "--name", "name",
                        "--bag-of-words", "--split", "part", "--out", norms)  # fmt: skip
    assert code == 0
    assert told.startswith("Norm scorer of female and male, on rows it was not trained on")
    assert "1,600 rows trained, 800 held out. Saved:" in told
    held = pl.read_parquet(bios).filter(pl.col("part") == "test")
    held.write_parquet(tmp_path / "held.parquet")
    code, told, warned = run("norms", "score", tmp_path / "held.parquet", "--norms", norms, *ROLES,
                             "--name", "name", "--out", out)  # fmt: skip
    assert (code, warned) == (0, "")
    assert told == (
        "800 rows, norm@female, norm@male, norm_irrelevant@female, norm_irrelevant@male added. "
        f"Saved: {out}\n"
    )
    table = pl.read_parquet(out)
    assert table.columns == [*held.columns, "norm@female", "norm@male",
                             "norm_irrelevant@female", "norm_irrelevant@male"]  # fmt: skip
    assert table.drop(table.columns[-4:]).equals(held)
    code, _, _ = run("audit", out, "--truth", "title", "--group", "gender", "--lens", "norms",
                     "--json", tmp_path / "audit.json", "--quiet")  # fmt: skip
    assert code == 0
    rows = json.loads((tmp_path / "audit.json").read_text())["results"]
    found = {(r["measure"], r["group"]): r for r in rows if r["norm"] == r["group"]}
    # What was planted is found for both groups: the correlation rises with the share.
    assert found["norm_slope", "female"]["low"] > 0
    assert found["norm_slope", "male"]["low"] > 0
    assert found["norm_bias", "female"]["value"] > 0.4
    assert found["norm_bias_irrelevant", "female"]["n"] == 6


def test_rows_of_the_training_split_are_a_leak(run, bios, tmp_path):
    norms, out = tmp_path / "norms", tmp_path / "normed.parquet"
    run("norms", "fit", bios, *ROLES, "--group", "gender", "--bag-of-words", "--no-irrelevant",
        "--split", "part", "--out", norms)  # fmt: skip
    score = ("norms", "score", bios, "--norms", norms, *ROLES, "--out", out)
    code, _, warned = run(*score)
    assert code == 0
    assert warned == (
        "evenhand: 1,600 of these rows were in the scorer's training split (a leak): their norms "
        "look better than they are. Audit rows that it has not seen, or use --skip-seen.\n"
    )
    code, told, warned = run(*score, "--skip-seen")
    assert warned == ""
    assert "1,600 rows of the scorer's training split were given no norm." in told
    table = pl.read_parquet(out)
    assert table.filter(pl.col("norm@male").is_null())["part"].unique().to_list() == ["train"]


def test_a_share_of_every_cell_is_held_out(run, bios, tmp_path):
    more = ("--test-share", 0.5, "--no-irrelevant", "--out", tmp_path / "n")
    code, told, _ = run("norms", "fit", bios, *ROLES, "--group", "gender", "--bag-of-words", *more)
    assert code == 0
    assert "1,200 held out" in told or "1,201 held out" in told or "1,199 held out" in told
    with pytest.raises(Exception, match=r"split='part' must mark some rows 'train'"):
        training_rows(["a"], ["f"], split=["x"], share=0.5, seed=0, column="part")


def test_relevant_words_and_names_are_chosen(run, bios, tmp_path):
    names = tmp_path / "names.txt"
    names.write_text("Chess\n")
    fit = ("norms", "fit", bios, *ROLES, "--group", "gender", "--name", "name", "--bag-of-words")
    code, told, _ = run(*fit, "--relevant", 0.6, "--names", names, "--out", tmp_path / "n")
    assert code == 0
    assert "relevant            the 60% of the words as used most typical of the class" in told
    assert "by the name column, 1 by the file" in told
    document = json.loads((tmp_path / "n" / "norms.json").read_text())
    assert document["settings"]["rule"]["relevant"] == 0.6
    assert document["card"]["relevant"] == document["facts"]["relevant"]
    assert document["card"]["irrelevant_use"]["chosen"] == pytest.approx(0.4, abs=0.02)
    code, told, _ = run(*fit, "--relevant", 40, "--out", tmp_path / "n")
    assert "relevant            the 40 words most typical of the class" in told
    code, told, _ = run(*fit, "--fdr", 0.2, "--unit", "document", "--out", tmp_path / "n")
    assert "more in all groups at a false discovery rate of 0.2" in told
    code, told, _ = run(*fit, "--relevant", 0.1, "--relevant-of", "vocabulary", "--capitals",
                        "--out", tmp_path / "n")  # fmt: skip
    assert "relevant            the 10% of the vocabulary most typical of the class" in told
    assert "by capitals" in told


@pytest.mark.parametrize(
    ("flags", "code", "words"),
    [
        (["--relevant", "0.6", "--fdr", "0.1"], 2, "relevant=0.6 and fdr=0.1 are two rules."),
        (
            ["--relevant", "-1"],
            2,
            "relevant=-1 is neither a share under 1, such as 0.6, nor a whole",
        ),
        (["--relevant", "1e9"], 2, "relevant=1e+09 is all of the 258 words there are"),
        (["--tagger", "en_core_web_sm"], 2, "tagger='en_core_web_sm' is no tagger. Write spacy:"),
        (["--names", "none.txt"], 4, "names='none.txt' is not a file. Name a text file with"),
    ],
)
def test_bad_rules_and_names(run, bios, tmp_path, flags, code, words):
    found, _, warned = run("norms", "fit", bios, *ROLES, "--group", "gender", "--bag-of-words",
                           *flags, "--out", tmp_path / "n")  # fmt: skip
    assert words in warned
    assert found == code
    assert not (tmp_path / "n").exists()


def test_numbers_instead_of_texts(run, bios, tmp_path):
    norms, out = tmp_path / "norms", tmp_path / "normed.parquet"
    code, told, _ = run("norms", "fit", bios, "--features", "hours", "--truth", "title",
                        "--group", "gender", "--out", norms)  # fmt: skip
    assert code == 0
    assert "most female           hours" in told
    code, told, _ = run("norms", "score", bios, "--norms", norms, "--out", out)
    assert code == 0
    assert told.startswith("2,400 rows, norm@female, norm@male added.")
    assert pl.read_parquet(out)["norm@female"].null_count() == 0


def test_ratings_are_shown(run, bios, tmp_path):
    ratings = tmp_path / "ratings.csv"
    ratings.write_text("word,mean\nkindness,5\nchess,1\nchildren,4.5\nqqqq,3\n")
    arguments = ("norms", "fit", bios, *ROLES, "--group", "gender", "--bag-of-words",
                 "--no-irrelevant", "--out", tmp_path / "n", "--ratings", ratings)  # fmt: skip
    code, _, warned = run(*arguments)
    assert (code, warned) == (
        2,
        "evenhand: --ratings and --ratings-toward go together: say which group a high rating "
        "means, such as --ratings-toward female.\n",
    )
    code, told, _ = run(*arguments, "--ratings-toward", "female")
    assert code == 0
    assert "people's ratings" in told
    ratings.write_text("word,mean\nqqqq,3\n")
    code, _, warned = run(*arguments, "--ratings-toward", "female")
    assert code == 4
    assert "has none of the" in warned


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--group", "gendre"], 2, "group='gendre' is not a column of the table. Did you mean"),
        (["--group", "gender", "--features", "hours"], 2, "Name either the column of texts"),
        (["--group", "gender", "--test-share", "2"], 2, "test_share=2.0 is not a share between"),
        (["--group", "part", "--norm-group", "x", "--norm-group", "train"], 2,
         "'x' is not a group of the training rows."),
        (["--group", "gender", "--vectors", "none.vec"], 2, "none.vec"),
        (["--group", "gender", "--split", "title"], 4, "split='title' must mark some rows 'train'"),
    ],
)  # fmt: skip
def test_bad_input(run, bios, tmp_path, arguments, code, words):
    found, _, warned = run("norms", "fit", bios, *ROLES, *arguments, "--out", tmp_path / "n")
    assert words in warned
    assert found == code
    assert not (tmp_path / "n").exists()


def test_more_bad_input(run, bios, tmp_path):
    one = tmp_path / "one.parquet"
    pl.read_parquet(bios).filter(pl.col("gender") == "female").write_parquet(one)
    fit = ("norms", "fit", one, *ROLES, "--group", "gender", "--out", tmp_path / "n")
    code, _, warned = run(*fit)
    assert (code, warned) == (
        4,
        "evenhand: The group column has one value alone, 'female'. A norm scorer tells groups "
        "apart: it needs rows of two or more.\n",
    )
    empty = tmp_path / "empty.parquet"
    pl.read_parquet(bios).with_columns(text=pl.lit(" ")).write_parquet(empty)
    code, _, warned = run(
        "norms", "fit", empty, *ROLES, "--group", "gender", "--out", tmp_path / "n"
    )
    assert (code, warned) == (
        4,
        "evenhand: No text has both a truth and a group, so there is nothing to learn.\n",
    )
    (tmp_path / "other").mkdir()
    code, _, warned = run("norms", "score", bios, "--norms", tmp_path / "other", *ROLES,
                          "--out", tmp_path / "o.parquet")  # fmt: skip
    assert code == 4
    assert "is not a folder of norms. Make one with: evenhand norms fit" in warned
    code, _, warned = run("norms", "score", bios, "--norms", tmp_path / "other",
                          "--out", tmp_path / "o.xlsx")  # fmt: skip
    assert code == 2
    assert "does not say by its ending what to write" in warned
    code, _, warned = run("norms", "fit", bios, "--features", "hours,title", "--truth", "title",
                          "--group", "gender", "--out", tmp_path / "n")  # fmt: skip
    assert code == 2
    assert "features='title' is also the truth or the group, which it would give away." in warned
    code, _, warned = run("norms", "fit", bios, "--features", "hours,name", "--truth", "title",
                          "--group", "gender", "--out", tmp_path / "n")  # fmt: skip
    assert (code, warned) == (
        4,
        "evenhand: features='name' holds String, not numbers. Convert it to numbers, or leave it "
        "out.\n",
    )


VECTORS = "nurse 1 0 2\nkindness 0 1 1\nchess 2 1 0\n"


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("cut.vec", VECTORS[:-3].encode(),
         "is truncated: its last line has 2 numbers instead of 3. Download or copy it again."),
        ("cut.vec.gz", gzip.compress(VECTORS.encode() * 200, mtime=0)[:-12],
         "is truncated: its compressed content breaks off. Download or copy it again."),
        ("promised.vec", b"9 3\n" + VECTORS.encode(),
         "is truncated: it promises 9 words and has 3. Download or copy it again."),
        ("cut.bin", b"2 3\nnurse " + np.ones(3, np.float32).tobytes() + b"\nchess \x00\x00",
         "is truncated: it promises 2 words and breaks off in word 2. Download or copy it again."),
        ("mixed.vec", VECTORS.replace("0 1 1", "0 1 1 1").encode(),
         "has 4 numbers in line 2 and 3 before. Every line must hold one word and the same number "
         "of numbers."),
        ("other.vec", b"hund 1 0 2\nund 0 1 1\nkatze 2 1 0\n",
         "has none of the 258 words of the texts. See whether its language and its case are "
         "those of the texts."),
    ],
    ids=["truncated", "truncated gzip", "fewer than promised", "truncated binary", "mixed width",
         "no word of the texts"],
)  # fmt: skip
def test_broken_vectors_leave_nothing_behind(run, bios, tmp_path, name, content, words):
    path = tmp_path / name
    path.write_bytes(content)
    code, told, warned = run("norms", "fit", bios, *ROLES, "--group", "gender",
                             "--vectors", path, "--out", tmp_path / "n")  # fmt: skip
    assert (code, told, warned) == (4, "", f"evenhand: vectors={str(path)!r} {words}\n")
    assert [p.name for p in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize(
    ("content", "toward", "code", "words"),
    [
        ("word,mean\nqqqq,3\nzzzz,1\n", "female", 4,
         "'{path}' has none of the 258 words of the norm scorer. See whether its language and "
         "its case are those of the texts."),
        ("word,mean\nkindness,5\n", "femal", 2,
         "Ratings lean towards 'femal', which is not a group of the norm scorer. Did you mean "
         "'female'? It has female, male."),
        ("word,mean\nkindness,high\n", "female", 4,
         "ratings='{path}' has the columns word, mean. It needs 'word' and a number called "
         "'mean', 'rating' or 'score'."),
        (None, "female", 4, "There is no file '{path}'."),
    ],
    ids=["no overlap", "another group", "no numbers", "no file"],
)  # fmt: skip
def test_broken_ratings_leave_nothing_behind(run, bios, tmp_path, content, toward, code, words):
    path = tmp_path / "ratings.csv"
    if content is not None:
        path.write_text(content)
    found, told, warned = run("norms", "fit", bios, *ROLES, "--group", "gender", "--bag-of-words",
                              "--no-irrelevant", "--ratings", path, "--ratings-toward", toward,
                              "--out", tmp_path / "n")  # fmt: skip
    assert (found, told, warned) == (code, "", f"evenhand: {words.format(path=path)}\n")
    assert not (tmp_path / "n").exists()


def test_norms_of_texts_need_a_text(run, bios, tmp_path):
    run("norms", "fit", bios, *ROLES, "--group", "gender", "--bag-of-words", "--no-irrelevant",
        "--out", tmp_path / "n")  # fmt: skip
    code, _, warned = run("norms", "score", bios, "--norms", tmp_path / "n",
                          "--out", tmp_path / "o.parquet")  # fmt: skip
    assert (code, warned) == (
        2,
        "evenhand: These norms were learned from texts. Name the column of them (--text).\n",
    )


def test_help_without_a_subcommand(run):
    code, told, _ = run("norms")
    assert code == 0
    assert "fit" in told
    assert "score" in told


def wikipedia() -> pl.DataFrame:
    """The nine occupations with 30 people of each gender, titles masked, half of them to train."""
    table = pl.read_csv(DATA / "biographies_wikipedia.csv")
    sizes = table.group_by("occupation", "gender").len()
    large = sizes.filter(pl.col("len") >= 30).group_by("occupation").len()
    kept = large.filter(pl.col("len") == 2)["occupation"].to_list()
    assert len(kept) == 9
    table = table.filter(pl.col("occupation").is_in(kept))
    titles, group = table["occupation"].to_list(), table["gender"].to_list()
    masked = mask_texts(table["text"].to_list(), titles=titles, scope="all").texts
    train = training_rows(titles, group, split=None, share=0.5, seed=0)
    return table.with_columns(
        pl.Series("bio", masked), pl.Series("half", np.where(train, "train", "test"))
    )


@pytest.mark.heavy
@pytest.mark.skipif(not DATA.is_dir(), reason="the shared data is not there")
@pytest.mark.parametrize("kind", ["vectors", "words"])
def test_real_biographies(run, capsys, tmp_path, kind):
    table = wikipedia()
    train, test = (table.filter(pl.col("half") == part) for part in ("train", "test"))
    glove = DATA / "glove_100d.vec.gz"
    model: Any = WordVectors(glove) if kind == "vectors" else BagOfWords(minimum=3)
    corpus = Corpus.from_texts(train["bio"].to_list())
    model.fit(corpus)
    classifier = LogisticClassifier(C=100 if kind == "vectors" else 1.0, max_iter=2_000)
    classifier.fit(model.features(corpus), train["occupation"].to_numpy())
    features = model.features(Corpus.from_texts(test["bio"].to_list()))
    scores = classifier.class_probabilities(features)
    scored = test.with_columns(
        [pl.Series(f"score:{name}", scores[:, k]) for k, name in enumerate(classifier.classes_)]
    )
    accuracy = float((classifier.predict(features) == test["occupation"].to_numpy()).mean())
    table.write_parquet(tmp_path / "bios.parquet")
    scored.write_parquet(tmp_path / "scored.parquet")
    columns = ("--text", "bio", "--truth", "occupation", "--name", "name")
    code, told, _ = run(
        "norms", "fit", tmp_path / "bios.parquet", *columns, "--group", "gender",
        *(("--vectors", glove) if kind == "vectors" else ("--bag-of-words",)),
        "--split", "half", "--ratings", DATA / "word_gender_ratings.csv",
        "--ratings-toward", "female", "--out", tmp_path / "norms",
    )  # fmt: skip
    assert code == 0, told
    card = json.loads((tmp_path / "norms" / "norms.json").read_text())["card"]
    out = tmp_path / "normed.parquet"
    score = ("norms", "score", tmp_path / "scored.parquet", "--norms", tmp_path / "norms")
    code, _, warned = run(*score, *columns, "--out", out)
    assert (code, warned) == (0, "")
    code, _, _ = run("audit", out, "--truth", "occupation",
                     "--group", "gender", "--json", tmp_path / "audit.json", "--quiet")  # fmt: skip
    assert code == 0
    rows = json.loads((tmp_path / "audit.json").read_text())["results"]
    bias = {r["group"]: r for r in rows if r["measure"] == "norm_bias"}
    assert set(bias) == {"female", "male"}
    assert all(row["n"] == 9 for row in bias.values())
    assert 0.6 < card["accuracy_weighted"]["value"] < 0.9
    assert card["auc"]["female"]["low"] > 0.65
    assert card["ratings"]["value"] > 0.1
    assert card["ratings_irrelevant"]["low"] > 0.03
    assert card["auc_irrelevant"]["female"]["low"] > 0.6
    assert all(0.1 < one["deviation"]["female"] < 0.5 for one in card["irrelevant"].values())
    assert 0.8 < card["irrelevant_use"]["more in all"] < 0.95
    firsts = {name.split()[0].lower() for name in table["name"]}
    named = [w for words in card["strongest"].values() for w, _ in words if w in firsts]
    assert len(named) <= 2
    with capsys.disabled():
        print(
            f"\n{kind}: classifier accuracy {accuracy:.3f}; G weighted accuracy "
            f"{card['accuracy_weighted']['value']:.3f} (paper 0.68); norms with people's ratings "
            f"{card['ratings']['value']:.2f} (paper 0.68); "
            + "; ".join(
                f"ρ {g} {r['value']:.2f} [{r['low']:.2f}, {r['high']:.2f}]" for g, r in bias.items()
            )
        )
