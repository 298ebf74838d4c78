"""Names beside points that do not lie on one another: a place is tried, or the name left out."""

from collections.abc import Mapping, Sequence
from typing import Any

LETTER, LINE = 6.9, 13.0
# Where a name may stand: how far from its point, and which end of it is there.
PLACES = (
    (9.0, 0.0, "left"),
    (-9.0, 0.0, "right"),
    (8.0, -7.0, "left"),
    (-8.0, -7.0, "right"),
    (8.0, 9.0, "left"),
    (-8.0, 9.0, "right"),
    (0.0, -14.0, "center"),
    (0.0, 15.0, "center"),
)
Box = tuple[float, float, float, float]


def placed(
    points: Sequence[Mapping[str, Any]],
    *,
    room: tuple[float, float],
    ends: Mapping[str, Sequence[float]],
    most: int,
) -> list[dict[str, Any]]:
    """The named points whose names fit, each with its offset and alignment.

    `room` is the width and height of the plot, `ends` where its axes begin and end. Names are
    tried in the order of the points, so the first ones are the surest to be shown.

    Examples:
        >>> points = [{"x": 0, "y": 1, "name": "a"}, {"x": 0, "y": 1, "name": "b"}]
        >>> points += [{"x": 1, "y": 0, "name": "c"}]
        >>> found = placed(points, room=(300, 200), ends={"x": (0, 1), "y": (0, 1)}, most=5)
        >>> [(p["name"], p["align"]) for p in found]
        [('a', 'left'), ('c', 'right')]
    """
    known = [point for point in points if point.get("x") is not None and point.get("y") is not None]
    width, height = room
    spots = [
        (_share(point["x"], ends["x"]) * width, (1 - _share(point["y"], ends["y"])) * height)
        for point in known
    ]
    taken: list[Box] = [(x - 5, y - 5, x + 5, y + 5) for x, y in spots]
    found: list[dict[str, Any]] = []
    for point, (x, y) in zip(known, spots):
        if not point.get("name") or len(found) == most:
            continue
        for dx, dy, align in PLACES:
            box = _box(x + dx, y + dy, align, str(point["name"]))
            inside = box[0] >= 0 and box[2] <= width + 8 and box[1] >= -4 and box[3] <= height
            if inside and not any(_overlap(box, other) for other in taken):
                taken.append(box)
                found.append({**point, "dx": dx, "dy": dy, "align": align})
                break
    return found


def _share(value: float, ends: Sequence[float]) -> float:
    return (float(value) - ends[0]) / (ends[1] - ends[0]) if ends[1] > ends[0] else 0.5


def _box(x: float, y: float, align: str, name: str) -> Box:
    wide = LETTER * len(name)
    left = {"left": x, "right": x - wide, "center": x - wide / 2}[align]
    return left, y - LINE / 2, left + wide, y + LINE / 2


def _overlap(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
