"""The store: a folder with one SQLite file that only grows, and holds nobody's row.

Readers never wait for a writer (write-ahead log), two writers take turns, and what a run adds is
there whole or not at all, also when it is killed. What is replaced stays as a revision.
"""

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime
from hashlib import sha256
from pathlib import Path
from shutil import disk_usage
from typing import Any

from evenhand.decisions.tallies.sets import Tallies
from evenhand.errors import DataError, UsageError
from evenhand.watching.periods import Period

FILE, KEY = "watch.sqlite", "pseudonyms.key"
SCHEMA = "evenhand.store/1"
FAMILY = "evenhand.store/"
# Seconds that a writer waits for another to finish.
PATIENCE = 30.0
# Bytes of a disk below which an error of the disk is that it is full.
_ROOM = 1 << 20
_TABLES = """
CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE settings (id INTEGER PRIMARY KEY, document TEXT NOT NULL, at TEXT NOT NULL);
CREATE TABLE periods (
  id INTEGER PRIMARY KEY AUTOINCREMENT, number INTEGER NOT NULL, first TEXT NOT NULL,
  last TEXT NOT NULL, rows INTEGER NOT NULL, fingerprint TEXT NOT NULL, mark TEXT NOT NULL,
  source TEXT NOT NULL, at TEXT NOT NULL);
CREATE INDEX periods_by_number ON periods (number, id);
CREATE TABLE tallies (
  period INTEGER PRIMARY KEY REFERENCES periods (id), content BLOB NOT NULL);
CREATE TABLE series (
  period INTEGER NOT NULL REFERENCES periods (id), name TEXT NOT NULL, content BLOB NOT NULL,
  PRIMARY KEY (period, name));
CREATE TABLE revisions (
  id INTEGER PRIMARY KEY AUTOINCREMENT, old INTEGER NOT NULL REFERENCES periods (id),
  new INTEGER NOT NULL REFERENCES periods (id), why TEXT NOT NULL, at TEXT NOT NULL);
CREATE TABLE judgements (
  id INTEGER PRIMARY KEY AUTOINCREMENT, period INTEGER NOT NULL REFERENCES periods (id),
  question TEXT NOT NULL, verdict TEXT NOT NULL, document TEXT NOT NULL, at TEXT NOT NULL,
  UNIQUE (period, question));
CREATE TABLE alarms (
  id INTEGER PRIMARY KEY AUTOINCREMENT, stream TEXT NOT NULL, detector TEXT NOT NULL,
  start INTEGER NOT NULL, raised INTEGER NOT NULL, onset INTEGER NOT NULL,
  document TEXT NOT NULL, at TEXT NOT NULL, UNIQUE (stream, detector, start));
CREATE TABLE acknowledgements (
  id INTEGER PRIMARY KEY AUTOINCREMENT, alarm INTEGER NOT NULL UNIQUE REFERENCES alarms (id),
  who TEXT NOT NULL, why TEXT NOT NULL, at TEXT NOT NULL);
CREATE TABLE lines (name TEXT PRIMARY KEY, content BLOB NOT NULL);
CREATE TABLE posts (
  alarm INTEGER NOT NULL REFERENCES alarms (id), address TEXT NOT NULL, at TEXT NOT NULL,
  PRIMARY KEY (alarm, address));
"""
# Stores of this version and the one before hold a checksum of their rows; tally sets have theirs.
SEALED, _WRITTEN_OUT, _SEAL = 3, 2, "seal"
_SEALED_TABLES = ("about", "settings", "periods", "series", "revisions", "judgements", "alarms",
                  "acknowledgements", "lines", "posts")  # fmt: skip
_ONLY_GROWS = ("periods", "tallies", "revisions", "judgements", "alarms", "acknowledgements")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredPeriod:
    """A period as it is in the store; `mark` says by which model, threshold and charter."""

    id: int
    period: Period
    first: date
    last: date
    rows: int
    fingerprint: str
    mark: str
    source: str
    judged: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class NewPeriod:
    """A period that somebody gives to the store."""

    period: Period
    first: date
    last: date
    tallies: Tallies
    mark: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredAlarm:
    """An alarm, and who answered it; `start` is the first period of the sequence it is of."""

    id: int
    stream: str
    detector: str
    start: int
    raised: int
    onset: int
    document: dict[str, Any]
    at: str
    who: str | None = None
    why: str | None = None
    answered: str | None = None

    @property
    def open(self) -> bool:
        """Whether nobody has answered it."""
        return self.who is None


class Store:
    """A store that is open: read it, or write within `writing`.

    Examples:
        >>> import tempfile
        >>> folder = tempfile.mkdtemp()
        >>> with Store.open(folder, create=True) as store:
        ...     with store.writing():
        ...         store.set_about(every="week", tz=None, roles={"decision": "d"})
        ...     store.about["every"], store.periods()
        ('week', [])
    """

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path, self._connection = path, connection

    @classmethod
    @contextmanager
    def open(cls, path: str | Path, *, create: bool = False) -> Iterator["Store"]:
        """The store in a folder; a new one only where `create` says so."""
        folder = Path(path)
        with _in_our_words(folder):
            _check_place(folder, create=create)
            # Transactions are begun by hand: Python's own would begin them too late.
            connection = sqlite3.connect(folder / FILE, timeout=PATIENCE, isolation_level=None)
            with closing(connection):
                store = cls(folder, connection)
                store._begin(create=create)
                yield store

    def _begin(self, *, create: bool) -> None:
        try:
            self._connection.execute("PRAGMA foreign_keys = ON")
            # A commit is on the disk before the command says that it is.
            self._connection.execute("PRAGMA synchronous = FULL")
            self._prepare(create=create)
            self._check_seal()
        except UnicodeDecodeError as error:  # of what SQLite says of damaged names
            raise DataError(
                f"'{self.path}' is damaged: {error.reason}. Restore it from a copy."
            ) from error

    def _prepare(self, *, create: bool) -> None:
        if self._is_blank():
            if not create:
                raise _not_a_store(self.path)
            self._connection.execute("PRAGMA journal_mode = WAL")
            with self.writing():
                # Another writer may have made them while this one waited.
                if self._is_blank():
                    self._make_tables()
        schema = self._schema()
        if schema == SCHEMA:
            return
        if isinstance(schema, str) and schema.startswith(FAMILY):
            raise DataError(
                f"'{self.path}' is a store of schema {schema}, and this version reads {SCHEMA}. "
                "Update Evenhand."
            )
        raise _not_a_store(self.path)

    def _is_blank(self) -> bool:
        """Whether nothing is in the file: it is new, or a first run ended before it wrote."""
        if self._connection.execute("PRAGMA user_version").fetchone()[0] != 0:
            return False
        if self._connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            raise _not_a_store(self.path)
        return True

    def _schema(self) -> Any:
        """What the file says that it is, before anything else in it is believed."""
        row = self._connection.execute("SELECT value FROM about WHERE name = 'schema'").fetchone()
        try:
            return json.loads(row[0]) if row else None
        except (ValueError, TypeError):
            return None

    def _make_tables(self) -> None:
        for statement in _TABLES.split(";"):
            if statement.strip():
                self._connection.execute(statement)
        for table in _ONLY_GROWS:
            for change in ("UPDATE", "DELETE"):
                self._connection.execute(
                    f"CREATE TRIGGER {table}_{change} BEFORE {change} ON {table} "
                    f"BEGIN SELECT RAISE (ABORT, '{table} only grows'); END"
                )
        self._connection.execute("INSERT INTO about VALUES ('schema', ?)", [json.dumps(SCHEMA)])
        self._connection.execute(f"PRAGMA user_version = {SEALED}")

    @contextmanager
    def writing(self) -> Iterator[None]:
        """What is written within is there whole or not at all; others wait for their turn."""
        with _in_our_words(self.path):
            self._connection.execute("BEGIN IMMEDIATE")
            before = self._connection.total_changes
            try:
                yield
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise
            if self._connection.total_changes != before:
                self._write_seal()
            self._connection.execute("COMMIT")

    def _write_seal(self) -> None:
        """A checksum of all rows, written with them: what was changed since is seen at the door."""
        seal = [_SEAL, json.dumps(self._digest(SEALED))]
        self._connection.execute("INSERT OR REPLACE INTO about VALUES (?, ?)", seal)
        self._connection.execute(f"PRAGMA user_version = {SEALED}")

    def _check_seal(self) -> None:
        # One look at the rows, however many writers there are in the meantime.
        self._connection.execute("BEGIN")
        try:
            version = self._connection.execute("PRAGMA user_version").fetchone()[0]
            if version >= _WRITTEN_OUT:
                query = "SELECT value FROM about WHERE name = ?"
                seal = self._connection.execute(query, [_SEAL]).fetchone()
                if seal is None or seal[0] != json.dumps(self._digest(version)):
                    raise DataError(
                        f"'{self.path}' is damaged: it is not as it was written. Restore it from a "
                        "copy."
                    )
        finally:
            self._connection.execute("COMMIT")

    def _digest(self, version: int) -> str:
        digest = sha256()
        before, self._connection.text_factory = self._connection.text_factory, bytes
        try:
            for table in _SEALED_TABLES:
                found = self._connection.execute(f"SELECT * FROM {table} ORDER BY rowid")
                rows = [row for row in found if row[0] != _SEAL.encode()]
                if version == _WRITTEN_OUT:
                    for row in rows:
                        digest.update(repr((table, row)).encode())
                    continue
                # Texts and contents as they are: writing them out takes longer than all the rest.
                values = [value for row in rows for value in row]
                shape = [len(v) if isinstance(v, bytes) else [v] for v in values]
                digest.update(repr((table, shape)).encode())
                digest.update(b"".join(v for v in values if isinstance(v, bytes)))
        finally:
            self._connection.text_factory = before
        return digest.hexdigest()

    @property
    def about(self) -> dict[str, Any]:
        """What the store is of: schema, length of its periods, zone and roles."""
        query = "SELECT name, value FROM about WHERE name <> ?"
        rows = self._connection.execute(query, [_SEAL]).fetchall()
        return {name: json.loads(value) for name, value in rows}

    def set_about(self, *, every: str, tz: str | None, roles: Mapping[str, Any]) -> None:
        """Say what the store is of, or refuse what it is not of, with what differs."""
        held = self.about
        told: dict[str, Any] = {"every": every, "tz": tz, "roles": json.loads(_text(roles))}
        if "roles" not in held:
            rows = [(name, _text(value)) for name, value in told.items()]
            self._connection.executemany("INSERT INTO about VALUES (?, ?)", rows)
            return
        for name in ("every", "tz"):
            if held[name] != told[name]:
                raise differs(self.path, name, held[name], told[name])
        for role in dict.fromkeys((*held["roles"], *told["roles"])):
            mine, theirs = held["roles"].get(role), told["roles"].get(role)
            if role == "classes" or (role == "time" and None in (mine, theirs)):
                continue  # Tally sets have no time of their own.
            numbers = all(isinstance(each, int | float | dict) for each in (mine, theirs))
            if mine != theirs and role != "positive_is" and not (role == "threshold" and numbers):
                raise differs(self.path, role, mine, theirs)
        if told["roles"].get("classes") and not held["roles"].get("classes"):
            # Said once, it holds for later runs; counts are the same with and without it.
            now_known = _text({**held["roles"], "classes": True})
            self._connection.execute("UPDATE about SET value = ? WHERE name = 'roles'", [now_known])

    def settle(self, facts: Mapping[str, Any]) -> None:
        """Keep what holds for all periods once it is known, within `writing`."""
        rows = [(name, _text(value)) for name, value in facts.items()]
        self._connection.executemany("INSERT OR IGNORE INTO about VALUES (?, ?)", rows)

    @property
    def settings(self) -> dict[str, Any]:
        """What the last run was asked: limits, measures, maturity, horizon, level."""
        query = "SELECT document FROM settings ORDER BY id DESC LIMIT 1"
        row = self._connection.execute(query).fetchone()
        return json.loads(row[0]) if row else {}

    def set_settings(self, document: Mapping[str, Any]) -> None:
        """Keep what a run was asked, where it was not asked the same before."""
        text = _text(document)
        if _text(self.settings) != text:
            self._connection.execute(
                "INSERT INTO settings (document, at) VALUES (?, ?)", [text, now()]
            )

    def periods(self) -> list[StoredPeriod]:
        """Every period as it is now, in the order of time."""
        rows = self._connection.execute(
            "SELECT p.id, p.number, p.first, p.last, p.rows, p.fingerprint, p.mark, p.source, "
            "EXISTS (SELECT 1 FROM judgements j WHERE j.period = p.id) FROM periods p "
            "WHERE p.id = (SELECT max(id) FROM periods WHERE number = p.number) ORDER BY p.number"
        ).fetchall()
        every = str(self.about.get("every"))
        return [
            StoredPeriod(
                id=row[0], period=Period(every=every, number=row[1]),
                first=date.fromisoformat(row[2]), last=date.fromisoformat(row[3]), rows=row[4],
                fingerprint=row[5], mark=row[6], source=row[7], judged=bool(row[8]),
            )
            for row in rows
        ]  # fmt: skip

    def add(self, new: Sequence[NewPeriod], *, replace: bool = False) -> list[Period]:
        """Add periods, within `writing`; which of them changed the store.

        The same period again changes nothing. One that was not judged is replaced, a judged one
        only where `replace` says so; what it was stays as a revision.
        """
        held = {stored.period.number: stored for stored in self.periods()}
        changed = []
        for each in new:
            mark = each.tallies.fingerprint()
            before = held.get(each.period.number)
            if before is not None:
                if before.fingerprint == mark and before.mark == each.mark:
                    continue
                if before.judged and not replace and before.fingerprint == mark:
                    raise DataError(
                        f"{each.period.name} was judged as decided by another model or charter. "
                        "Give only the periods since it changed; if the old ones were decided "
                        "so, too, add --replace, which keeps them as revisions."
                    )
                if before.judged and not replace:
                    raise DataError(
                        f"{each.period.name} was judged with {before.rows:,} rows, and these "
                        f"{each.tallies.rows:,} rows are not the same. Data given for a period "
                        "are the whole of it; if it was corrected, add --replace, which keeps "
                        "the old one as a revision."
                    )
                if not replace and (each.first > before.first or each.last < before.last):
                    raise DataError(
                        f"{each.period.name} was given from {before.first} to {before.last} and "
                        f"now from {each.first} to {each.last}. Data given for a period are the "
                        "whole of it: give all its rows together, or add --replace."
                    )
            self._insert(each, mark, before, replaced=replace)
            changed.append(each.period)
        return changed

    def _insert(
        self, new: NewPeriod, fingerprint: str, before: StoredPeriod | None, *, replaced: bool
    ) -> None:
        cursor = self._connection.execute(
            "INSERT INTO periods (number, first, last, rows, fingerprint, mark, source, at) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            [
                new.period.number, new.first.isoformat(), new.last.isoformat(), new.tallies.rows,
                fingerprint, new.mark, new.tallies.source, now(),
            ],
        )  # fmt: skip
        content = new.tallies.to_bytes()
        self._connection.execute("INSERT INTO tallies VALUES (?, ?)", [cursor.lastrowid, content])
        if before is not None:
            why = "replaced" if before.judged and replaced else "not judged before"
            self._connection.execute(
                "INSERT INTO revisions (old, new, why, at) VALUES (?, ?, ?, ?)",
                [before.id, cursor.lastrowid, why, now()],
            )

    def tallies(self, stored: StoredPeriod) -> Tallies:
        """The tally set of a period."""
        row = self._connection.execute(
            "SELECT content FROM tallies WHERE period = ?", [stored.id]
        ).fetchone()
        if row is None:
            raise DataError(f"'{self.path}' is damaged: {stored.period.name} has no tallies.")
        return Tallies.from_bytes(row[0], source=f"{stored.period.name} in {self.path}")

    def series(self, name: str) -> dict[int, bytes]:
        """What was read from tally sets once and for all, by the period's id."""
        query = "SELECT period, content FROM series WHERE name = ?"
        return dict(self._connection.execute(query, [name]).fetchall())

    def keep_series(self, name: str, contents: Mapping[int, bytes]) -> None:
        """Keep what was read from tally sets, within `writing`."""
        rows = [(period, name, content) for period, content in contents.items()]
        self._connection.executemany("INSERT OR REPLACE INTO series VALUES (?, ?, ?)", rows)

    def line(self, name: str) -> bytes | None:
        """A line that was drawn before."""
        row = self._connection.execute("SELECT content FROM lines WHERE name = ?", [name])
        found = row.fetchone()
        return found[0] if found else None

    def keep_lines(self, lines: Mapping[str, bytes]) -> None:
        """Keep lines, within `writing`."""
        self._connection.executemany("INSERT OR IGNORE INTO lines VALUES (?, ?)", lines.items())

    def revisions(self) -> int:
        """How many periods were replaced after they had been judged."""
        row = self._connection.execute("SELECT count(*) FROM revisions WHERE why = 'replaced'")
        return int(row.fetchone()[0])

    def looked(self, question: str) -> set[int]:
        """The periods, by their ids, whose looks were judged and asked the same."""
        rows = self._connection.execute(
            "SELECT period FROM judgements WHERE question = ?", [question]
        )
        return {row[0] for row in rows.fetchall()}

    def judge(
        self, stored: StoredPeriod, question: str, verdict: str, document: Mapping[str, Any]
    ) -> None:
        """Keep what a look found, once for each question, within `writing`."""
        self._connection.execute(
            "INSERT OR IGNORE INTO judgements (period, question, verdict, document, at) "
            "VALUES (?, ?, ?, ?, ?)",
            [stored.id, question, verdict, _text(document), now()],
        )

    def alarms(self) -> list[StoredAlarm]:
        """Every alarm, the oldest first."""
        rows = self._connection.execute(
            "SELECT a.*, k.who, k.why, k.at FROM alarms a "
            "LEFT JOIN acknowledgements k ON k.alarm = a.id ORDER BY a.id"
        ).fetchall()
        return [
            StoredAlarm(
                id=row[0], stream=row[1], detector=row[2], start=row[3], raised=row[4],
                onset=row[5], document=json.loads(row[6]), at=row[7], who=row[8], why=row[9],
                answered=row[10],
            )
            for row in rows
        ]  # fmt: skip

    def raise_alarm(
        self, *, stream: str, detector: str, start: int, raised: int, onset: int,
        document: Mapping[str, Any],
    ) -> None:  # fmt: skip
        """Keep an alarm, once for each sequence and detector, within `writing`."""
        self._connection.execute(
            "INSERT OR IGNORE INTO alarms (stream, detector, start, raised, onset, document, at) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            [stream, detector, start, raised, onset, _text(document), now()],
        )

    def acknowledge(self, alarm: int, *, by: str, why: str) -> None:
        """Answer an alarm, within `writing`: by whom, and why."""
        held = {one.id: one for one in self.alarms()}
        if alarm not in held:
            there = ", ".join(str(one.id) for one in held.values() if one.open) or "none"
            raise UsageError(f"There is no alarm {alarm} in '{self.path}'. Open are: {there}.")
        answered = held[alarm]
        if not answered.open:
            raise UsageError(
                f"Alarm {alarm} was answered by {answered.who}: {answered.why!r}. "
                "What was said stays as it is."
            )
        if not by.strip() or not why.strip():
            raise UsageError("Say who acknowledges the alarm (--by) and why (--why).")
        self._connection.execute(
            "INSERT INTO acknowledgements (alarm, who, why, at) VALUES (?, ?, ?, ?)",
            [alarm, by, why, now()],
        )

    def unposted(self, address: str) -> list[StoredAlarm]:
        """Alarms that this address has not been told of."""
        rows = self._connection.execute("SELECT alarm FROM posts WHERE address = ?", [address])
        told = {row[0] for row in rows.fetchall()}
        return [alarm for alarm in self.alarms() if alarm.id not in told]

    def posted(self, alarm: int, address: str) -> None:
        """Remember that an address was told of an alarm, within `writing`."""
        self._connection.execute(
            "INSERT OR IGNORE INTO posts VALUES (?, ?, ?)", [alarm, address, now()]
        )

    def unpost(self, alarm: int, address: str) -> None:
        """Forget that an address was told of an alarm, since it was not, within `writing`."""
        self._connection.execute(
            "DELETE FROM posts WHERE alarm = ? AND address = ?", [alarm, address]
        )

    def export(self, folder: str | Path, *, kind: str = "tables of stores") -> list[str]:
        """Every table as Parquet, one file each; of tallies every cell, with its period's id."""
        import polars as pl

        from evenhand.decisions.tallies.archive import cells_frame
        from evenhand.files.folders import new_folder

        made = []
        with new_folder(folder, kind=kind) as place:
            for table in ("periods", "judgements", "alarms", "acknowledgements", "revisions"):
                cursor = self._connection.execute(f"SELECT * FROM {table}")
                names = [column[0] for column in cursor.description]
                frame = pl.DataFrame(
                    cursor.fetchall(), schema=names, orient="row", infer_schema_length=None
                )
                made.append(f"{table}.parquet")
                frame.write_parquet(place / made[-1])
            held = ((stored.id, self.tallies(stored)) for stored in self.periods())
            made.append("tallies.parquet")
            cells_frame(held).write_parquet(place / made[-1])
        return made


def now() -> str:
    """The time of writing."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False, allow_nan=False)


def _check_place(folder: Path, *, create: bool) -> None:
    if (folder / FILE).is_file():
        return
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"'{folder}' is a file. A store is a folder: name another place.")
    if not create:
        raise UsageError(
            f"There is no store in '{folder}'. Make one by watching something, such as: evenhand "
            f"watch {folder} decisions.parquet --time decided_at --every week --decision removed "
            "--group gender"
        )
    if folder.is_dir() and any(folder.iterdir()):
        raise UsageError(f"'{folder}' holds other files. A store needs a folder of its own.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"'{folder}' cannot be made: {error.strerror or error}.") from error


def _not_a_store(path: Path) -> DataError:
    return DataError(f"'{path / FILE}' is not a store of schema {SCHEMA}. Name another folder.")


def differs(path: Path, what: str, held: Any, given: Any) -> DataError:
    """That what is given is not what the store was made with."""
    shown = ["none" if each is None else repr(each) for each in (held, given)]
    return DataError(
        f"'{path}' was made with {what}={shown[0]}, and this is {what}={shown[1]}. One store "
        "watches one thing: give it the same, or make another store."
    )


def _is_full(path: Path) -> bool:
    """Whether the disk has no room for what SQLite writes beside its file."""
    try:
        return disk_usage(path).free < _ROOM
    except OSError:
        return False


@contextmanager
def _in_our_words(path: Path) -> Iterator[None]:
    """What SQLite says of a file, in our words."""
    try:
        yield
    except sqlite3.OperationalError as error:
        said = str(error)
        if "locked" in said or "busy" in said:
            raise UsageError(
                f"Another run is writing to '{path}' and has not finished. Try again later."
            ) from error
        if "full" in said or ("disk I/O" in said and _is_full(path)):
            raise UsageError(
                f"'{path}' cannot be written: the disk is full. Nothing of this run was kept."
            ) from error
        if "disk I/O" in said:
            raise UsageError(
                f"'{path}' cannot be read or written: the disk answers with an error. What was "
                "kept before is still there."
            ) from error
        if "readonly" in said or "unable to open" in said:
            raise UsageError(f"'{path}' cannot be written: permission denied.") from error
        raise DataError(f"'{path}' is damaged: {said}. Restore it from a copy.") from error
    except sqlite3.DatabaseError as error:
        raise DataError(f"'{path}' is damaged: {error}. Restore it from a copy.") from error
