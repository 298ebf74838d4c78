"""The colours of charts: a light value for pictures, a CSS variable for the page.

A page follows the reader's light or dark setting, so its charts name variables; a picture on its
own cannot, so it keeps the light values. No group is ever pink or blue by its name: series take
their colour by place, and every series and verdict has a shape of its own as well.
"""

import re

# The light value stands in the specification and is replaced by the variable in the page.
VARIABLES = {
    "#15181e": "--ink",
    "#4b5261": "--ink-2",
    "#e3e6ea": "--grid",
    "#949ba8": "--axis",
    "#b5400b": "--c-outside",
    "#0b7557": "--c-within",
    "#5d6573": "--c-untold",
    "#2f5f8f": "--c-plain",
    "#17697a": "--s-1",
    "#a8550b": "--s-2",
    "#5b4a9c": "--s-3",
    "#4d6b12": "--s-4",
    "#7a4f2a": "--s-5",
    "#394150": "--s-6",
}
INK, QUIET, GRID, AXIS = "#15181e", "#4b5261", "#e3e6ea", "#949ba8"
OUTSIDE, WITHIN, UNTOLD, PLAIN = "#b5400b", "#0b7557", "#5d6573", "#2f5f8f"
SERIES = ("#17697a", "#a8550b", "#5b4a9c", "#4d6b12", "#7a4f2a", "#394150")
SERIES_SHAPES = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross")
SERIES_DASHES = ([1, 0], [6, 3], [2, 2], [8, 2, 2, 2], [4, 4], [1, 3])
VERDICTS = {
    "outside": (OUTSIDE, "triangle-down"),
    "cannot tell": (UNTOLD, "square"),
    "within": (WITHIN, "circle"),
    "not assessed": (PLAIN, "diamond"),
}
_HEX = re.compile('="(' + "|".join(VARIABLES) + ')"')


def with_variables(svg: str) -> str:
    """An SVG whose colours are the page's variables.

    Examples:
        >>> with_variables('<path fill="#b5400b"/>')
        '<path fill="var(--c-outside)"/>'
    """
    return _HEX.sub(lambda found: f'="var({VARIABLES[found[1]]})"', svg)
