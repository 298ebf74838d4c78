"""Files: what may be written where, writing whole or not at all, documents held to their shape."""

from evenhand.files.places import check_writable as check_writable
from evenhand.files.writing import write_text as write_text
