"""One-versus-rest fits, counting words and task-irrelevant scorers, each against its own unit.

    python benchmarks/run.py linear
    python benchmarks/linear.py --rows 40000          smaller and quicker
    python benchmarks/linear.py --only count

The fit against scikit-learn's at the same objective, counting against CountVectorizer, and the
scorers without each class's words against the one norm scorer that they begin from.
"""

import argparse
import json
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from scipy import sparse

ROWS, CLASSES, VOCABULARY, LENGTH = 255_000, 28, 85_000, 65
# Texts to count and biographies for norm scorers: enough for a steady ratio.
COUNTED, SCORED = 100_000, 20_000


class Clock:
    """Seconds on the wall and of this process's processors between entering and leaving."""

    def __enter__(self) -> "Clock":
        self.began = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *_: object) -> None:
        self.wall = time.perf_counter() - self.began[0]
        self.cpu = time.process_time() - self.began[1]


def simulated_counts(rows: int, *, seed: int = 0) -> tuple[sparse.csr_matrix, np.ndarray]:
    """Word counts of biographies: Zipf words, and a few of each class's own 400 words."""
    generator = np.random.default_rng(seed)
    size = 1 / np.arange(1, CLASSES + 1) ** 0.8
    labels = generator.choice(CLASSES, size=rows, p=size / size.sum())
    zipf = 1 / (np.arange(1, VOCABULARY + 1) + 2.7) ** 1.05
    ladder = np.cumsum(zipf / zipf.sum())
    ladder[-1] = 1.0
    words = np.searchsorted(ladder, generator.random((rows, LENGTH))).astype(np.int32)
    own = np.stack([generator.choice(7_900, size=400, replace=False) for _ in range(CLASSES)]) + 100
    chosen = own[labels[:, None], (400 * generator.random((rows, LENGTH)) ** 2).astype(int)]
    words = np.where(generator.random((rows, LENGTH)) < 0.035, chosen, words)
    arrays = (np.ones(words.size, np.float32), words.ravel(), np.arange(0, words.size + 1, LENGTH))
    counts = sparse.csr_matrix(arrays, shape=(rows, VOCABULARY))
    counts.sum_duplicates()
    return counts, labels


def objective(counts, labels, weights, intercepts) -> np.ndarray:
    """Σ log-loss + |w|²/2 of each one-versus-rest problem, in float64."""
    logits = counts.astype(np.float64) @ weights.T.astype(np.float64) + intercepts
    signs = np.where(labels[:, None] == np.arange(CLASSES), 1.0, -1.0)
    loss = np.logaddexp(0, -signs * logits).sum(axis=0)
    return loss + (weights.astype(np.float64) ** 2).sum(axis=1) / 2


def fit_scikit(counts, labels, *, jobs: int):
    from sklearn.linear_model import LogisticRegression
    from sklearn.multiclass import OneVsRestClassifier
    from threadpoolctl import threadpool_limits

    model = LogisticRegression(solver="lbfgs", C=1.0, max_iter=1000)
    # One thread: on vectors this short the threads of BLAS only slow scikit-learn down.
    with threadpool_limits(1), Clock() as clock:
        fitted = OneVsRestClassifier(model, n_jobs=jobs).fit(counts, labels)
    weights = np.stack([one.coef_[0] for one in fitted.estimators_])
    intercepts = np.array([one.intercept_[0] for one in fitted.estimators_])
    return clock, objective(counts, labels, weights, intercepts)


def fit_evenhand(counts, labels, *, threads: int):
    from evenhand.models.linear import LogisticClassifier

    model = LogisticClassifier(threads=threads)
    with Clock() as clock:
        model.fit(counts, labels)
    return clock, objective(counts, labels, model.coef_, model.intercept_)


def count_words(rows: int, *, repeats: int = 3, seed: int = 0) -> dict[str, float]:
    """CountVectorizer and Corpus on the same texts in turn, after checking equal counts."""
    from sklearn.feature_extraction.text import CountVectorizer

    from evenhand.models.corpus import Corpus

    counts, _ = simulated_counts(rows, seed=seed)
    generator = np.random.default_rng(seed)
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
    words = ["".join(generator.choice(letters, size=2 + n % 10)) for n in range(VOCABULARY)]
    texts = []
    for first, last in zip(counts.indptr[:-1], counts.indptr[1:], strict=True):
        row = zip(counts.indices[first:last], counts.data[first:last], strict=True)
        texts.append(" ".join(words[word] for word, n in row for _ in range(int(n))))
    theirs_s, ours_s = [], []
    for _ in range(repeats):
        with Clock() as clock:
            vectorizer = CountVectorizer()
            theirs = vectorizer.fit_transform(texts)
        theirs_s.append(clock.wall)
        with Clock() as clock:
            corpus = Corpus.from_texts(texts)
            ours = corpus.counts
        ours_s.append(clock.wall)
    assert list(corpus.words) == vectorizer.get_feature_names_out().tolist()
    assert (ours != theirs).nnz == 0
    return {"rows": rows, "ours": min(ours_s), "theirs": min(theirs_s)}


def fit_classes(rows: int, *, threads: int = 2, jobs: int = 2) -> dict[str, float]:
    """One fit of all classes by either, Evenhand's first so that its peak memory is its own."""
    counts, labels = simulated_counts(rows)
    ours, reached = fit_evenhand(counts, labels, threads=threads)
    status = Path("/proc/self/status").read_text()
    peak = int(re.search("VmHWM:[^0-9]*([0-9]+)", status)[1]) / 2**20
    theirs, target = fit_scikit(counts, labels, jobs=jobs)
    excess = float(((reached - target) / target).max())
    return {"rows": rows, "ours": ours.wall, "theirs": theirs.wall, "excess": excess, "peak": peak}


def fit_scorers(rows: int) -> dict[str, float]:
    """One norm scorer on vectors of the texts, and what the scorers of all classes add to it."""
    from evenhand.models.norms.fit import fit_norm_scorer
    from evenhand.simulate.biographies import biographies

    table = biographies(rows, seed=0).frame
    columns = {"group": "gender", "truth": "title", "names": "name"}
    arguments = {role: table[column].to_list() for role, column in columns.items()}
    seconds = {}
    for irrelevant in (False, True):
        with Clock() as clock:
            scorer = fit_norm_scorer(table["text"].to_list(), irrelevant=irrelevant, **arguments)
        seconds[irrelevant] = clock.wall
    return {
        "rows": rows,
        "scorers": len(scorer.by_class),
        "one": seconds[False],
        "all": seconds[True] - seconds[False],
    }


PARTS = {"fit": fit_classes, "count": count_words, "scorers": fit_scorers}


def alone(part: str, rows: int) -> dict[str, float]:
    """One part in a process of its own, so that memory and caches are its own."""
    command = [sys.executable, "-W", "ignore", __file__, "--only", part, "--rows", str(rows)]
    done = subprocess.run([*command, "--json"], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    return dict(json.loads(done.stdout.splitlines()[-1]))


def run(rows: int = ROWS) -> list[str]:
    """The lines of the results page."""
    fit = alone("fit", rows)
    count = alone("count", min(rows, COUNTED))
    scorers = alone("scorers", min(rows, SCORED))
    return [
        f"Biographies of {LENGTH} words, {VOCABULARY:,} words in all, {CLASSES} classes; each "
        "fitted once, counting best of three:",
        "",
        "| work | rows | theirs s | ours s | ratio | asked for |",
        "|---|---|---|---|---|---|",
        f"| one-versus-rest fit, against scikit-learn's (lbfgs, two processes) | "
        f"{fit['rows']:,} | {fit['theirs']:.1f} | {fit['ours']:.1f} | "
        f"{fit['theirs'] / fit['ours']:.1f} | ≥ 3 |",
        f"| tokenising and counting, against CountVectorizer | {count['rows']:,} | "
        f"{count['theirs']:.1f} | {count['ours']:.1f} | {count['theirs'] / count['ours']:.1f} | "
        "≥ 2 |",
        "",
        f"Relative to scikit-learn's, the fit's objective is {fit['excess']:+.1e} in the class "
        f"that comes off worst (asked for: at most 1e-4); its peak memory {fit['peak']:.1f} GB "
        "(asked for: 4).",
        "",
        f"Norm scorers on vectors of {scorers['rows']:,} simulated biographies: one "
        f"{scorers['one']:.1f} s, the {scorers['scorers']} without their class's words "
        f"{scorers['all']:.1f} s more, {scorers['all'] / scorers['one']:.1f} times one (asked "
        "for: under 15).",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--only", choices=list(PARTS))
    parser.add_argument("--json", action="store_true", help="the numbers of --only, as JSON")
    arguments = parser.parse_args()
    if arguments.only:
        found = PARTS[arguments.only](arguments.rows)
        told = (f"{name} {value:,.4g}" for name, value in found.items())
        print(json.dumps(found) if arguments.json else ", ".join(told))
    else:
        print("\n".join(run(arguments.rows)))


if __name__ == "__main__":
    main()
