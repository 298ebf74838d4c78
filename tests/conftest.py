"""What all tests share: the reference implementation, Spark started once, and counts of faults."""

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from evenhand.cli.main import main

# Tests are imported by path, so the plain reference implementation has to be findable by name.
sys.path.insert(0, str(Path(__file__).parent / "reference"))

settings.register_profile(
    "evenhand",
    deadline=None,
    derandomize=True,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("evenhand")

Run = Callable[..., tuple[int, str, str]]
# Fixtures that every test makes for itself.
CHEAP = frozenset({"run", "tmp_path", "monkeypatch", "capsys", "capfd", "recwarn", "request"})
_NONE = SimpleNamespace(params={})


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """A call of evenhand in a folder of its own: its exit code, what it printed, its complaints."""
    monkeypatch.chdir(tmp_path)

    def command(*arguments: object) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as end:
            main([str(part) for part in arguments])
        said = capsys.readouterr()
        return int(end.value.code or 0), said.out, said.err

    return command


@pytest.fixture(scope="session")
def make_bert() -> Callable[..., Path]:
    """Writes a BERT of one layer with random weights that knows these words, as users save theirs.

    Made of parts that transformers 4.44 and 5 both have.
    """
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    def make(folder: Path, words: list[str], *, width: int = 16, longest: int = 32) -> Path:
        known = {w: i for i, w in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", *words])}
        made = Tokenizer(models.WordPiece(known, unk_token="[UNK]"))
        made.normalizer = normalizers.BertNormalizer()
        made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        made.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
        marks = {"unk_token": "[UNK]", "pad_token": "[PAD]", "cls_token": "[CLS]"}
        tokenizer = transformers.PreTrainedTokenizerFast(
            tokenizer_object=made, sep_token="[SEP]", clean_up_tokenization_spaces=False, **marks
        )
        torch.manual_seed(0)
        config = transformers.BertConfig(
            vocab_size=len(known),
            hidden_size=width,
            num_hidden_layers=1,
            num_attention_heads=2,
            intermediate_size=2 * width,
            max_position_embeddings=longest,
        )
        transformers.BertModel(config).save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        return folder

    return make


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """One local Spark session for the whole run: starting it costs most of what it does."""
    sql = pytest.importorskip("pyspark.sql")
    builder = sql.SparkSession.builder.master("local[2]").appName("evenhand-tests")
    builder = builder.config("spark.ui.enabled", "false")
    session = builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Kinds of faults are noted; what Spark leaves to the garbage collector is not ours to fix.

    All that runs on Spark goes to one worker, so that one starts; what shares a costly fixture too.
    """
    for item in items:
        kind = item.get_closest_marker("kind")
        if kind is not None:
            # A property of the report: that is all which comes back from another process.
            item.user_properties.append(("kind", kind.args[0]))
        if item.get_closest_marker("heavy") is not None:
            item.add_marker(pytest.mark.xdist_group(_worker_group(item)))
        if "spark" in item.name:
            item.add_marker(pytest.mark.filterwarnings("ignore::ResourceWarning"))
            item.add_marker(
                pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
            )


def _worker_group(item: pytest.Item) -> str:
    """The tests that one worker runs: those on Spark, those of a file that share a fixture."""
    fixtures = {*getattr(item, "fixturenames", ())} - {*getattr(item, "callspec", _NONE).params}
    if "spark" in item.name or "spark" in fixtures:
        return "spark"
    return str(item.path) if fixtures - CHEAP else item.nodeid


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """How many cases of each kind tests/faults ran, by the `kind` of their marker."""
    ends = ("passed", "failed", "skipped")
    reports = [(end, one) for end in ends for one in terminalreporter.stats.get(end, [])]
    counts: dict[str, Counter[str]] = {}
    for end, report in reports:
        for name, value in getattr(report, "user_properties", ()):
            if name == "kind":
                counts.setdefault(value, Counter())[end] += 1
    if counts:
        terminalreporter.section("faults by kind")
        for kind, found in sorted(counts.items()):
            told = ", ".join(f"{found[end]} {end}" for end in ends if found[end])
            terminalreporter.write_line(f"{kind:<28}{told}")
