"""Fine-tuned rows of the ledger on real biographies, with the training done on another machine.

Three steps, so that the machine with the GPU needs torch, transformers and scikit-learn alone:

    python tools/gpu_reproduction.py prepare DATA.csv FOLDER --weights MODEL   training sets
    python tools/gpu_reproduction.py train FOLDER --out OUT                    there: scores
    python tools/gpu_reproduction.py measure DATA.csv FOLDER SCORES… --out DIR here: tables

Training sets are made by the remedies of the ledger themselves, which are told to write down what
they would train on; afterwards they are told the scores, and measured as any other. Where little
may travel at a time, `prepare --parts 2` writes the weights in whole numbers of about six bits, of
the words that the texts have, and `train` reads the parts back.
"""

import argparse
import gzip
import json
import time
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

FOLDS = 5
LEAST = 100  # rows of a class
REMEDIES = (
    "baseline",
    "thresholds",
    "alpha_weights",
    "decoupled",
    "kamiran_calders",
    "oversample",
    "undersample",
    "augment",
    "oversample_augment",
    "undersample_augment",
    "reweigh_augment",
)
# Titles that tell the occupation; those of royalty tell the gender as well.
TITLES = {
    "actor": ("actress", "film actor", "film actress", "stage actor", "voice actor"),
    "politician": ("statesman", "senator", "congressman", "congresswoman", "member of parliament"),
    "royal": ("king", "queen", "prince", "princess", "duke", "duchess", "emperor", "empress"),
    "lawyer": ("attorney", "barrister", "solicitor", "jurist", "judge"),
    "author": ("writer", "novelist", "poet", "playwright"),
    "director": ("film director", "filmmaker", "theatre director", "film maker"),
    "officer": ("military officer", "army officer", "naval officer", "general", "admiral"),
    "artist": ("painter", "sculptor", "visual artist"),
    "scientist": ("physicist", "chemist", "biologist", "mathematician"),
    "business": ("businessman", "businesswoman", "entrepreneur", "business executive"),
    "professor": ("academic", "historian", "scholar"),
    "journalist": ("reporter", "columnist", "broadcaster"),
}
RATES = (5e-5, 1e-4, 2e-4)
TRAINING = {"epochs": 5, "batch_size": 64, "patience": 2, "longest": 256}
NAME = "fine-tuned"
ROUND = 4


class Recorder(BaseEstimator):  # type: ignore[misc]
    """A classifier that writes down what it is fitted on and knows nothing."""

    def __init__(self, jobs: list[dict[str, Any]], held: Any) -> None:
        self.jobs, self.held = jobs, held

    def __sklearn_clone__(self) -> "Recorder":
        return Recorder(self.jobs, self.held)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "Recorder":
        weights = np.ones(len(X)) if sample_weight is None else np.asarray(sample_weight)
        self.classes_ = np.unique(np.asarray(y)[weights > 0])
        self.jobs.append({"texts": list(X), "truth": list(y), "weights": weights})
        self._remember(len(self.jobs) - 1)
        return self

    def _remember(self, number: int) -> None:
        """Nothing here; the replayer looks its scores up."""

    def class_probabilities(self, X: Any) -> Any:
        return np.full((len(X), self.classes_.size), 1 / self.classes_.size)

    predict_proba = class_probabilities


class Replayer(Recorder):
    """The same after training elsewhere: each fit in its turn finds its scores."""

    def __init__(self, jobs: list[dict[str, Any]], held: Any, found: Any, place: Any) -> None:
        super().__init__(jobs, held)
        self.found, self.place = found, place

    def __sklearn_clone__(self) -> "Replayer":
        return Replayer(self.jobs, self.held, self.found, self.place)

    def _remember(self, number: int) -> None:
        self.scores = self.found(number)

    def class_probabilities(self, X: Any) -> Any:
        return np.array([self.scores[self.place[text]] for text in X], dtype=np.float64)

    predict_proba = class_probabilities


class Encoder:
    """In the place of the ledger's encoder: it makes recorders or replayers."""

    fine_tune = True

    def __init__(self, make: Any) -> None:
        self.make = make

    def classifier(self, *, held: Any, **_: Any) -> Any:
        return self.make(held)


def read_rows(path: str) -> dict[str, list[str]]:
    """Texts with every title masked, occupation and gender, of the occupations that are large."""
    import polars as pl

    from evenhand.text.mask import mask_texts

    frame = pl.read_csv(path).unique("text", keep="first", maintain_order=True)
    large = frame.group_by("occupation").len().filter(pl.col("len") >= LEAST)["occupation"]
    frame = frame.filter(pl.col("occupation").is_in(large.implode()))
    titles = frame["occupation"].to_list()
    forms = {name: TITLES.get(name, ()) for name in set(titles)}
    masked = mask_texts(frame["text"].to_list(), titles=titles, forms=forms, scope="all")
    frame = frame.with_columns(text=pl.Series(masked.texts)).unique(
        "text", keep="first", maintain_order=True
    )
    return {name: frame[name].to_list() for name in ("text", "occupation", "gender", "name")}


def folds(rows: dict[str, list[str]]) -> Iterator[tuple[int, Any]]:
    """The texts of every fold as the ledger prepares them, test rows once each."""
    from evenhand.remedies.ledger.rows import People, join_rows
    from evenhand.remedies.ledger.texts import prepare_texts

    rng = np.random.default_rng(0)
    cells = defaultdict(list)
    for row, cell in enumerate(zip(rows["occupation"], rows["gender"], strict=True)):
        cells[cell].append(row)
    fold = np.zeros(len(rows["text"]), dtype=int)
    for cell in sorted(cells):
        order = rng.permutation(cells[cell])
        fold[order] = (np.arange(len(order)) + rng.integers(FOLDS)) % FOLDS

    def part(mask: Any) -> Any:
        at = np.flatnonzero(mask).tolist()
        return People(
            texts=[rows["text"][k] for k in at],
            truth=[rows["occupation"][k] for k in at],
            group=[rows["gender"][k] for k in at],
            names=[rows["name"][k] for k in at],
        )

    for number in range(FOLDS):
        made = join_rows(part(fold != number), part(fold == number), seed=number)
        yield number, prepare_texts(made, representations=("bow",), titles={}, seed=number)


def fold_task(texts: Any, make: Any, seed: int) -> Any:
    """One fold's training rows, with an encoder that writes down or looks up."""
    from evenhand.remedies.ledger.task import Task

    distinct: list[Any] = [None] * (1 + max(texts.own.max(), *(c.max() for c in texts.do.values())))
    return Task(
        texts=replace(
            texts,
            representations={NAME: Encoder(make)},
            features={NAME: np.array(distinct, dtype=object)},
        ),
        representation=NAME,
        rows=texts.rows.fit,
        seed=seed,
    )


def with_texts(task: Any, rows: dict[str, list[str]]) -> Any:
    """The task with the texts themselves as features: the swaps are made once more."""
    from evenhand.remedies.augment import counterfactual_texts

    people = task.texts.rows.people
    table = task.texts.features[NAME]
    table[task.texts.own] = people.texts
    for name, texts in counterfactual_texts(people.texts, group=people.group).items():
        table[task.texts.do[str(name)]] = texts
    assert all(isinstance(text, str) for text in table)
    return task


def asked(task: Any) -> list[str]:
    """Every text that a fold's models have to score: of test and validation rows."""
    rows = task.texts.rows
    held = task.features(rows.validation).tolist()
    test = [task.features(rows.test), *(task.features(rows.test, do=g) for g in task.texts.do)]
    return list(dict.fromkeys([*held, *(text for each in test for text in each.tolist())]))


def prepare(data: str, folder: str, weights: str, parts: int) -> None:
    """Write down every training set, and the folder of weights in sixteen bits or in parts."""
    from evenhand.remedies.ledger.registry import REMEDIES as KNOWN

    rows = read_rows(data)
    place: dict[str, int] = {}

    def numbers(texts: Sequence[str]) -> Any:
        return np.array([place.setdefault(text, len(place)) for text in texts], dtype=np.int32)

    arrays: dict[str, Any] = {}
    described: list[dict[str, Any]] = []
    for fold, texts in folds(rows):
        for remedy in REMEDIES:
            jobs: list[dict[str, Any]] = []
            task = with_texts(
                fold_task(texts, lambda held, jobs=jobs: Recorder(jobs, held), fold), rows
            )
            held = task.texts.rows.validation
            if remedy != "thresholds":  # cuts on the scores of the baseline
                KNOWN[remedy].fit(task)
            for call, job in enumerate(jobs):
                name = f"{fold}-{remedy}-{call}"
                classes = sorted(set(job["truth"]))
                known = np.flatnonzero(np.isin(task.truth_of(held), classes))
                arrays |= {
                    f"{name}:rows": numbers(job["texts"]),
                    f"{name}:truth": np.array([classes.index(t) for t in job["truth"]], np.int16),
                    f"{name}:weights": job["weights"].astype(np.float32),
                    f"{name}:held": numbers(task.features(held[known]).tolist()),
                    f"{name}:held_truth": np.array(
                        [classes.index(t) for t in task.truth_of(held[known])], np.int16
                    ),
                    f"{name}:ask": numbers(asked(task)),
                }
                described.append({"name": name, "fold": fold, "remedy": remedy, "classes": classes})
    out = Path(folder)
    out.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(out / "jobs.npz", **arrays)
    (out / "jobs.json").write_text(json.dumps(described))
    with gzip.open(out / "texts.json.gz", "wt", encoding="utf-8") as file:
        json.dump(list(place), file)
    if parts:
        pack(Path(weights), out, list(place), parts)
    else:
        halve(Path(weights), out / "weights")
    size = sum(file.stat().st_size for file in out.rglob("*") if file.is_file())
    print(
        f"{len(described)} training sets of {len(rows['text'])} biographies, "
        f"{len(place)} texts, {size / 2**20:.1f} MiB in {out}"
    )


def halve(source: Path, target: Path) -> None:
    """A transformers folder with its weights in sixteen bits."""
    import transformers

    model = transformers.AutoModel.from_pretrained(source, local_files_only=True)
    model.half().save_pretrained(target)
    transformers.AutoTokenizer.from_pretrained(source, local_files_only=True).save_pretrained(
        target
    )


LEVELS = 20  # whole numbers in one standard deviation of a row of weights


def pack(source: Path, out: Path, texts: Sequence[str], parts: int) -> None:
    """The folder's weights as whole numbers with one scale a row, spread over files."""
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(source, local_files_only=True)
    model = transformers.AutoModel.from_pretrained(source, local_files_only=True)
    read = tokenizer(list(texts), truncation=True, max_length=TRAINING["longest"])["input_ids"]
    seen = np.unique(np.concatenate([[*tokenizer.all_special_ids], *map(np.array, read)]))
    words = model.get_input_embeddings().weight
    target = out / "packed"
    target.mkdir(exist_ok=True)
    model.config.save_pretrained(target)
    tokenizer.save_pretrained(target)
    pieces: list[dict[str, Any]] = [{} for _ in range(parts)]
    sizes = [0] * parts
    for name, tensor in model.state_dict().items():
        held = {"shape": np.array(tensor.shape)}
        values = tensor.float().numpy()
        if values.ndim < 2:
            held["values"] = values.astype(np.float16)
        else:
            if tensor.shape == words.shape:
                held["rows"] = seen
                values = values[seen]
            scale = values.std(axis=1, keepdims=True).astype(np.float16).astype(np.float32) / LEVELS
            scale[scale == 0] = 1
            numbers = np.clip(np.rint(values / scale), -127, 127).astype(np.int8)
            coder = zlib.compressobj(9, zlib.DEFLATED, 15, 9, zlib.Z_HUFFMAN_ONLY)
            coded = coder.compress(numbers.tobytes()) + coder.flush()
            far = np.flatnonzero(np.abs(values / scale) > 127)
            held |= {
                "coded": np.frombuffer(coded, np.uint8),
                "scale": scale,
                "far": far.astype(np.int32),
            }
            held["far_values"] = values.ravel()[far].astype(np.float16)
        at = sizes.index(min(sizes))
        sizes[at] += sum(each.nbytes for each in held.values())
        pieces[at] |= {f"{name}:{key}": each for key, each in held.items()}
    for at, piece in enumerate(pieces):
        np.savez(target / f"part-{at}.npz", **piece)


def unpack(home: Path) -> None:
    """The folder of weights from its parts."""
    import torch
    import transformers

    packed = home / "packed"
    held: dict[str, Any] = {}
    for path in sorted(packed.glob("part-*.npz")):
        held |= dict(np.load(path))
    state = {}
    for name in [key.removesuffix(":shape") for key in held if key.endswith(":shape")]:
        shape = tuple(held[f"{name}:shape"])
        if f"{name}:values" in held:
            values = held[f"{name}:values"].astype(np.float32)
        else:
            numbers = np.frombuffer(zlib.decompress(held[f"{name}:coded"].tobytes()), np.int8)
            values = numbers.reshape(-1, shape[1]) * held[f"{name}:scale"]
            values.ravel()[held[f"{name}:far"]] = held[f"{name}:far_values"]
            if f"{name}:rows" in held:
                whole = np.zeros(shape, np.float32)
                whole[held[f"{name}:rows"]] = values
                values = whole
        state[name] = torch.from_numpy(np.array(values, np.float32).reshape(shape))
    model = transformers.AutoModel.from_config(transformers.AutoConfig.from_pretrained(packed))
    model.load_state_dict(state)
    model.save_pretrained(home / "weights")
    transformers.AutoTokenizer.from_pretrained(packed).save_pretrained(home / "weights")


def train(
    folder: str,
    out: str,
    seeds: Sequence[int],
    minutes: float,
    rate: float | None,
    done: Sequence[str],
    part: str | None,
    epochs: int,
    remedies: Sequence[str],
) -> None:
    """Fine-tune every training set and write the scores; stop in time, and say what is left.

    What earlier files of scores hold is not trained again. Remedies come in the order in which
    they are named, all of them without a name.
    """
    import torch

    from evenhand.models.fine_tuning import FineTunedClassifier

    began = time.perf_counter()
    home, target = Path(folder), Path(out)
    target.mkdir(parents=True, exist_ok=True)
    jobs = json.loads((home / "jobs.json").read_text())
    if remedies:
        jobs = [job for name in remedies for job in jobs if job["remedy"] == name]
    if not (home / "weights").is_dir():
        unpack(home)
    settings = TRAINING | {"epochs": epochs}
    arrays = np.load(home / "jobs.npz")
    with gzip.open(home / "texts.json.gz", "rt", encoding="utf-8") as file:
        texts = json.load(file)

    def fit(name: str, seed: int, rate: float) -> tuple[Any, float]:
        start = time.perf_counter()
        held = [texts[k] for k in arrays[f"{name}:held"]], arrays[f"{name}:held_truth"].tolist()
        model = FineTunedClassifier(
            home / "weights", training=settings | {"learning_rate": rate}, held=held, seed=seed
        )
        weights = arrays[f"{name}:weights"].astype(np.float64)
        model.fit(
            [texts[k] for k in arrays[f"{name}:rows"]],
            arrays[f"{name}:truth"],
            sample_weight=None if np.all(weights == weights[0]) else weights,
        )
        return model, time.perf_counter() - start

    def left() -> float:
        return 60 * minutes - (time.perf_counter() - began)

    tried: dict[str, float] = {}
    if rate is None:
        # By the held-out rows of one fold's baseline; every remedy then has the same.
        for each in RATES:
            model, seconds = fit("0-baseline-0", 0, each)
            tried[f"{each:g}"] = max(entry["held_accuracy"] for entry in model.history_)
            print(f"rate {each:g}: {tried[f'{each:g}']:.4f} held out, {seconds:.1f} s", flush=True)
        rate = float(max(tried, key=lambda name: tried[name]))
    found: dict[str, Any] = {}
    facts: list[dict[str, Any]] = []
    known = {name for path in done for name in np.load(path).files}
    part = part or str(min(seeds))
    cuda = torch.cuda.is_available()

    def write_facts() -> None:
        document = {
            "rate": rate,
            "tried": tried,
            "training": settings,
            "jobs": facts,
            "seconds": time.perf_counter() - began,
            "device": torch.cuda.get_device_name(0) if cuda else "CPU",
            "torch": torch.__version__,
            "memory_gib": torch.cuda.max_memory_allocated() / 2**30 if cuda else 0.0,
            "unfinished": len(jobs) * len(seeds) - len(facts) - len(known),
        }
        (target / f"facts-{part}.json").write_text(json.dumps(document, indent=1))

    for seed in seeds:
        for job in jobs:
            name = job["name"]
            if left() < 20 or f"{seed}-{name}" in known:
                continue
            model, seconds = fit(name, 10 * seed + job["fold"], rate)
            ask = [texts[k] for k in arrays[f"{name}:ask"]]
            found[f"{seed}-{name}"] = model.class_probabilities(ask).astype(np.float32)
            held = max(entry["held_accuracy"] for entry in model.history_)
            facts.append({"seed": seed, "job": name, "seconds": seconds, "held_accuracy": held,
                          "epochs": len(model.history_)})  # fmt: skip
            print(f"seed {seed} {name}: {held:.4f} held out, {seconds:.1f} s", flush=True)
            # After every fit: what is killed at its limit keeps what it had.
            np.savez_compressed(target / "unfinished.npz", **found)
            (target / "unfinished.npz").replace(target / f"scores-{part}.npz")
            write_facts()
    print(
        f"{len(facts)} of {len(jobs) * len(seeds)} fits in {time.perf_counter() - began:.0f} s, "
        f"rate {rate:g}"
    )


def measure(data: str, folder: str, scores: Sequence[str], out: str) -> None:
    """Tables of every remedy over the five folds: pooled test rows, each decided once a seed."""
    from evenhand.remedies.ledger.measures import outcome
    from evenhand.remedies.ledger.registry import REMEDIES as KNOWN

    home = Path(folder)
    arrays = np.load(home / "jobs.npz")
    stored: dict[str, Any] = {}
    facts: list[dict[str, Any]] = []
    for path in scores:
        stored |= dict(np.load(path))
        beside = Path(path).with_name(Path(path).stem.replace("scores", "facts") + ".json")
        facts.append(json.loads(beside.read_text()))
    seeds = sorted({int(name.split("-")[0]) for name in stored})
    with gzip.open(home / "texts.json.gz", "rt", encoding="utf-8") as file:
        texts = json.load(file)
    pooled: dict[tuple[str, int], list[dict[str, Any]]] = defaultdict(list)
    rows = read_rows(data)
    for fold, prepared in folds(rows):
        for remedy in REMEDIES:
            for seed in seeds:
                source = "baseline" if remedy == "thresholds" else remedy
                if f"{seed}-{fold}-{source}-0" not in stored:
                    continue
                place = {
                    texts[k]: at for at, k in enumerate(arrays[f"{fold}-{source}-0:ask"].tolist())
                }
                calls: list[dict[str, Any]] = []

                def look(number: int, seed: int = seed, fold: int = fold, s: str = source) -> Any:
                    return stored[f"{seed}-{fold}-{s}-{number}"]

                def make(held: Any, calls: Any = calls, look: Any = look, at: Any = place) -> Any:
                    return Replayer(calls, held, look, at)

                task = with_texts(fold_task(prepared, make, fold), rows)
                pooled[remedy, seed].append(columns(task, outcome(task, KNOWN[remedy].fit(task))))
    write_tables(pooled, seeds, facts, Path(out), rows)


def columns(task: Any, found: Any) -> dict[str, Any]:
    """What the lenses read, of one fold's test rows."""
    texts = task.texts
    rows = texts.rows
    names = np.array(rows.classes, dtype=object)
    table = {
        "truth": names[rows.truth[rows.test]].tolist(),
        "gender": np.array(rows.groups, dtype=object)[rows.group[rows.test]].tolist(),
        "decision": names[found.decided].tolist(),
        "score:truth": found.own.tolist(),
    }
    table |= {f"decision@{g}": names[codes].tolist() for g, codes in found.do.items()}
    for mark, held in (("norm", texts.norms.first), ("norm_irrelevant", texts.norms.irrelevant)):
        table |= {f"{mark}@{g}": [v if np.isfinite(v) else None for v in column.tolist()]
                  for g, column in held.items()}  # fmt: skip
    return table


MEASURED = (
    ("accuracy", "statistical"),
    ("true_positive_rate_gap_rms", "statistical"),
    ("false_positive_rate_gap_rms", "statistical"),
    ("counterfactual_true_positive_rate_gap_rms", "counterfactual"),
    ("counterfactual_false_positive_rate_gap_rms", "counterfactual"),
    ("flip_rate", "counterfactual"),
    ("norm_bias", "norms"),
    ("norm_bias_irrelevant", "norms"),
)


def cells(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """Every measure on pooled test rows, with its interval; norms of women, as the paper's."""
    from evenhand.decisions.table import Decisions
    from evenhand.lenses.counterfactual import lens as counterfactual
    from evenhand.lenses.norms import lens as norms
    from evenhand.lenses.rows import Options
    from evenhand.lenses.statistical import lens as statistical
    from evenhand.papers.runs import stars
    from evenhand.papers.sheets import Cell
    from evenhand.stats.rates import rate

    table = {name: [v for part in parts for v in part[name]] for name in parts[0]}
    decisions = Decisions(
        table, truth="truth", decision="decision", group="gender", reference={"gender": "male"}
    )
    decisions.check()
    lenses = {"statistical": statistical, "counterfactual": counterfactual, "norms": norms}
    options = Options(settings={"not_class": False, "bootstrap": False})
    found = {name: lens.measure(decisions, options).rows for name, lens in lenses.items()}
    right = sum(a == b for a, b in zip(table["truth"], table["decision"], strict=True))
    whole = rate(right, len(table["truth"]))
    out = {"accuracy": Cell(value=whole.value, low=whole.low, high=whole.high)}
    for name, lens in MEASURED[1:]:
        where: dict[str, Any] = {"measure": name, "stratum": None}
        if lens == "norms":
            where |= {"group": "female", "norm": "female"}
        row = found[lens].where(**where)
        if len(row) and np.isfinite(row["value"][0]):
            value, low, high, p = (float(row[key][0]) for key in ("value", "low", "high", "p"))
            mark = stars(p) if lens == "norms" else ""
            out[name] = Cell(value=value, low=low, high=high, stars=mark)
    return out


def write_tables(pooled: Any, seeds: Any, facts: Any, out: Path, rows: Any) -> None:
    """One JSON of all cells, and the table in Markdown."""
    from evenhand.papers.runs import mean_cell
    from evenhand.papers.sheets import Cell

    out.mkdir(parents=True, exist_ok=True)
    document: dict[str, Any] = {"rows": len(rows["text"]), "seeds": seeds, "facts": facts}
    document["classes"] = Counter(rows["occupation"])
    lines = [
        "| remedy | accuracy | SG TPR | SG FPR | CG TPR | CG FPR | flips | ρ | ρ irrelevant "
        "| s a fit |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    times: dict[str, list[float]] = defaultdict(list)
    for each in facts:
        for job in each["jobs"]:
            times[job["job"].split("-")[1]].append(job["seconds"])
    document["remedies"] = {}
    for remedy in REMEDIES:
        whole = [seed for seed in seeds if len(pooled[remedy, seed]) == FOLDS]
        if not whole:
            continue
        by_seed = [cells(pooled[remedy, seed]) for seed in whole]
        held: dict[str, Any] = {"seeds": whole, "seconds": times.get(remedy, [])}
        texts = [remedy]
        for name, _ in MEASURED:
            cell = mean_cell([each.get(name, Cell(reason="undefined")) for each in by_seed])
            if cell.value is not None:
                held[name] = {key: round(getattr(cell, key), 5) for key in ("value", "low", "high")}
                held[name] |= {"sd": None if cell.spread is None else round(cell.spread, 5)}
            digits = ROUND if "false_positive" in name else 3
            texts.append(cell.text(digits))
        texts.append(f"{np.mean(times[remedy]):.1f}" if times.get(remedy) else "–")
        document["remedies"][remedy] = held
        lines.append("| " + " | ".join(texts) + " |")
    (out / "fine-tuned.json").write_text(json.dumps(document, indent=1))
    (out / "fine-tuned.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    steps = parser.add_subparsers(dest="step", required=True)
    first = steps.add_parser("prepare")
    first.add_argument("data")
    first.add_argument("folder")
    first.add_argument("--weights", required=True)
    first.add_argument("--parts", type=int, default=0)
    second = steps.add_parser("train")
    second.add_argument("folder")
    second.add_argument("--out", required=True)
    second.add_argument("--seed", type=int, action="append", dest="seeds")
    second.add_argument("--minutes", type=float, default=9.0)
    second.add_argument("--rate", type=float)
    second.add_argument("--done", action="append", default=[])
    second.add_argument("--part")
    second.add_argument("--epochs", type=int, default=TRAINING["epochs"])
    second.add_argument("--remedy", action="append", default=[], dest="remedies")
    third = steps.add_parser("measure")
    third.add_argument("data")
    third.add_argument("folder")
    third.add_argument("scores", nargs="+")
    third.add_argument("--out", required=True)
    given = vars(parser.parse_args())
    step = given.pop("step")
    if step == "train":
        given["seeds"] = given["seeds"] or [0]
    {"prepare": prepare, "train": train, "measure": measure}[step](**given)


if __name__ == "__main__":
    main()
