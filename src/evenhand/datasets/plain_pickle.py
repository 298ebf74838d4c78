"""Pickles of plain values only: nothing in the file can make this process run code."""

import io
import pickle
from pathlib import Path
from typing import Any, NoReturn

from evenhand.errors import DataError

_PLAIN = {"dict": dict, "list": list, "tuple": tuple, "set": set, "frozenset": frozenset}


class _Refused(Exception):
    """A class that is no plain container."""


class _PlainUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if module in ("builtins", "__builtin__") and name in _PLAIN:
            return _PLAIN[name]
        raise _Refused(f"{module}.{name}")

    def persistent_load(self, pid: Any) -> NoReturn:
        raise _Refused("a reference outside the file")


def read_plain_pickle(path: str | Path) -> Any:
    """The value in a pickle, if it holds only containers, texts, numbers, truth values and None.

    Examples:
        >>> import pickle, tempfile
        >>> with tempfile.NamedTemporaryFile(suffix=".pkl") as file:
        ...     file.write(pickle.dumps([{"title": "poet"}])) and file.flush()
        ...     read_plain_pickle(file.name)
        [{'title': 'poet'}]
    """
    path = Path(path)
    if not path.is_file():
        raise DataError(f"{str(path)!r} does not exist. Give the path of the pickle.")
    try:
        # latin-1 keeps the bytes of pickles that Python 2 wrote
        return _PlainUnpickler(io.BytesIO(path.read_bytes()), encoding="latin-1").load()
    except _Refused as problem:
        raise DataError(
            f"{str(path)!r} contains {problem}, which could run code. Only lists, dicts, tuples, "
            "texts and numbers are read: write the file again with these."
        ) from problem
    except Exception as problem:  # a damaged pickle raises almost anything
        raise DataError(f"{str(path)!r} is not a readable pickle.") from problem
