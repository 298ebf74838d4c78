"""Forms of titles from a file, for the commands that mask them."""

import tomllib
from pathlib import Path

from evenhand.errors import DataError, UsageError


def read_title_forms(path: str) -> dict[str, tuple[str, ...]]:
    """Titles and their forms from a TOML file: nurse = ["registered nurse", "rn"]."""
    try:
        table = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UsageError(f"There is no file '{path}'.") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise DataError(f"'{path}' cannot be read as TOML: {error}.") from error
    for title, forms in table.items():
        if not isinstance(forms, list) or not all(isinstance(form, str) for form in forms):
            raise DataError(
                f"'{path}' has {title} = {forms!r}. Write a list of forms, "
                'such as nurse = ["registered nurse", "rn"].'
            )
    return {title: tuple(forms) for title, forms in table.items()}
