"""One-versus-rest on simulated biographies: Evenhand against scikit-learn at the same objective.

    python benchmarks/linear.py --rows 40000
    python benchmarks/linear.py --rows 255000

Also counts words against CountVectorizer. Ratios only: the machine is shared.
"""

import argparse
import resource
import time

import numpy as np
from scipy import sparse

CLASSES, VOCABULARY, LENGTH = 28, 85_000, 65


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


def count_words(rows: int, *, seed: int = 0) -> float:
    """Times CountVectorizer against Corpus on the same texts, after checking equal counts."""
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
    began = time.perf_counter()
    vectorizer = CountVectorizer()
    theirs = vectorizer.fit_transform(texts)
    middle = time.perf_counter()
    corpus = Corpus.from_texts(texts)
    ours = corpus.counts
    ended = time.perf_counter()
    assert list(corpus.words) == vectorizer.get_feature_names_out().tolist()
    assert (ours != theirs).nnz == 0
    return (middle - began) / (ended - middle)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=40_000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--jobs", type=int, default=1, help="processes of scikit-learn")
    parser.add_argument("--only", choices=["fit", "count"])
    arguments = parser.parse_args()
    if arguments.only != "fit":
        print(f"counting words: {count_words(min(arguments.rows, 100_000)):.1f}x CountVectorizer")
    if arguments.only == "count":
        return
    counts, labels = simulated_counts(arguments.rows)
    print(f"{counts.shape[0]} rows, {counts.nnz} counts")
    ours, reached = fit_evenhand(counts, labels, threads=arguments.threads)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"evenhand {ours.wall:.1f} s, {ours.cpu:.1f} s of processor, peak {peak:.2f} GB", flush=True
    )
    theirs, target = fit_scikit(counts, labels, jobs=arguments.jobs)
    excess = (reached - target) / target
    ratios = f"{theirs.wall / ours.wall:.1f}x, {theirs.cpu / ours.cpu:.1f}x of processor time"
    print(f"scikit-learn {theirs.wall:.1f} s, {theirs.cpu:.1f} s of processor: {ratios}")
    print(f"objective against scikit-learn's: worst {excess.max():+.1e}, mean {excess.mean():+.1e}")


if __name__ == "__main__":
    main()
