"""Counts, numbers and lists as sentences say them, and text that is safe to show."""

import re
from collections.abc import Sequence

# Control characters, and marks that turn the direction of writing.
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
_QUERY = re.compile(r"(\b[a-z][a-z0-9+.-]*://[^\s?#'\"]*\?)[^\s#'\"]*", re.IGNORECASE)
_COUNTS = ("no", "one", "two", "three", "four", "five", "six",
           "seven", "eight", "nine", "ten", "eleven", "twelve")  # fmt: skip
_USER = re.compile(r"(\b[a-z][a-z0-9+.-]*://)[^\s/?#'\"]*@", re.IGNORECASE)


_MOST_PLACES = 4


def printable(text: str) -> str:
    """Text without the characters that would steer a terminal or a page.

    Examples:
        >>> printable("red\\x1b[31m line\\nbreak")
        'red [31m line break'
    """
    return _UNPRINTABLE.sub(" ", text)


def with_article(number: str) -> str:
    """A number in figures with the article that is spoken before it.

    Examples:
        >>> with_article("85%"), with_article("5.6%"), with_article("11%"), with_article("8 times")
        ('an 85%', 'a 5.6%', 'an 11%', 'an 8 times')
    """
    spoken = re.match(r"8|1[18](?!\d)", number)
    return f"{'an' if spoken else 'a'} {number}"


def as_cell(text: str) -> str:
    """A label as a spreadsheet is to show it: never run as a formula; numbers stay as they are.

    Examples:
        >>> as_cell("=1+1"), as_cell("-0.5"), as_cell("north")
        ("'=1+1", '-0.5', 'north')
    """
    if not text.startswith(_FORMULA) or _NUMBER.fullmatch(text):
        return text
    return f"'{text}"


def without_secrets(text: str) -> str:
    """Text whose addresses show neither a user with a password nor what follows a question mark.

    Examples:
        >>> without_secrets("score --model https://me:pass@host/predict?token=abc --text bio")
        'score --model https://…@host/predict?… --text bio'
    """
    return _QUERY.sub(r"\1…", _USER.sub(r"\1…@", text))


def plural(count: float, one: str, many: str | None = None) -> str:
    """A count with its noun.

    Examples:
        >>> plural(1, "case"), plural(1200, "case"), plural(2, "class", "classes")
        ('1 case', '1,200 cases', '2 classes')
    """
    shown = f"{count:,.0f}"
    return f"{shown} {one if shown == '1' else many or one + 's'}"


def agree(count: float, one: str, many: str) -> str:
    """The word that goes with a count: a verb, a pronoun, a noun.

    Examples:
        >>> agree(1, "lies", "lie"), agree(3, "lies", "lie")
        ('lies', 'lie')
    """
    return one if f"{count:,.0f}" == "1" else many


def listed(names: Sequence[str], *, most: int | None = None) -> str:
    """Names one after another; beyond `most` the others are counted.

    Examples:
        >>> listed(["f"]), listed(["f", "m"]), listed(["f", "m", "x"])
        ('f', 'f and m', 'f, m and x')
        >>> listed(["f", "m", "x", "y"], most=2)
        'f, m and 2 more'
    """
    shown = list(names if most is None else names[:most])
    if len(shown) < len(names):
        return f"{', '.join(shown)} and {len(names) - len(shown):,} more"
    return " and ".join([", ".join(shown[:-1]), shown[-1]]) if len(shown) > 1 else "".join(shown)


def opening(words: str) -> str:
    """Words as a sentence begins; what has capitals of its own stays so.

    Examples:
        >>> opening("gap RMS"), opening("iPhone users"), opening("")
        ('Gap RMS', 'iPhone users', '')
    """
    own = any(letter.isupper() for letter in words.partition(" ")[0])
    return words if own else words[:1].upper() + words[1:]


def number(value: float | None) -> str:
    """A value as tables and sentences print it: three decimals, a real minus sign.

    Examples:
        >>> number(-0.12345), number(0.0), number(None)
        ('−0.123', '0.000', '–')
    """
    if value is None:
        return "–"
    text = f"{value:.3f}"
    if text == "-0.000":
        text = "0.000"
    return text.replace("-", "−")


def signed(value: float | None, digits: int = 3) -> str:
    """A difference, with its sign; without one where it rounds to 0.

    Examples:
        >>> signed(0.05), signed(-0.05), signed(0.0), signed(-0.357, 2)
        ('+0.050', '−0.050', '0.000', '−0.36')
    """
    if value is None:
        return "–"
    text = f"{value:+.{digits}f}"
    return text[1:] if float(text) == 0 else text.replace("-", "−")


def times(value: float) -> str:
    """A cost ratio as sentences print it.

    Examples:
        >>> times(2.345), times(0.8), times(23.46), times(1234.5)
        ('2.35', '0.80', '23.5', '1,234')
    """
    if value < 10:
        return f"{value:.2f}"
    return f"{value:.1f}" if value < 100 else f"{value:,.0f}"


def decimals(low: float | None, high: float | None, *values: float | None) -> int:
    """How many decimals of a percentage its interval supports; none where all would be zeros.

    Examples:
        >>> decimals(0.162, 0.189, 0.176), decimals(0.136, 0.249, 0.189), decimals(0.09, 0.15, 0.12)
        (1, 0, 0)
        >>> decimals(0.0004, 0.0005), decimals(None, None, 0.0123)
        (3, 1)
    """
    count = 1
    if low is not None and high is not None:
        half = 50 * (high - low)
        count = 0 if half >= 4 else 1 if half >= 0.1 else 2 if half >= 0.01 else 3
    shown = [f"{100 * abs(v):.{count}f}" for v in (low, high, *values) if v is not None]
    whole = all(text.endswith("." + "0" * count) for text in shown)
    return 0 if count and whole and not all(float(text) == 0 for text in shown) else count


def percent(share: float, *, places: int = 1) -> str:
    """A share as a percentage.

    Examples:
        >>> percent(0.3614), percent(0.93, places=0)
        ('36.1%', '93%')
    """
    return f"{100 * share:.{places}f}%"


def chance(probability: float) -> str:
    """A probability as a percentage of two digits; near 1 as many as tell it from certainty.

    Examples:
        >>> chance(0.0563), chance(0.2131), chance(0.0041), chance(0.9964), chance(0.5)
        ('5.6%', '21%', '0.41%', '99.6%', '50%')
    """
    value = 100 * probability
    if value >= 99:
        return f"{value:.{1 if value < 99.95 else 3}f}%"
    places = 0 if value >= 9.95 else 1 if value >= 0.995 else 2
    return f"{value:.{places}f}%"


def points(gap: float, *, places: int = 1) -> str:
    """The size of a difference between two percentages.

    Examples:
        >>> points(0.176), points(-0.12, places=0), points(0.01, places=0)
        ('17.6 points', '12 points', '1 point')
    """
    text = f"{100 * abs(gap):.{places}f}"
    return f"{text} {'point' if text == '1' else 'points'}"


def few(value: float, *, beside: tuple[float, float] | None = None) -> str:
    """A number of times in as many digits as a person keeps in mind.

    `beside` are the ends of its interval: where they would read the same, all get more digits.

    Examples:
        >>> few(16.7), few(3.7), few(4.0), few(0.81), few(0.123), few(1234.5)
        ('17', '3.7', '4.0', '0.8', '0.12', '1,234')
        >>> [few(each, beside=(1.468, 1.493)) for each in (1.48, 1.468, 1.493)]
        ['1.48', '1.47', '1.49']
    """
    places = _few_places(value)
    if beside is not None:
        while places < _MOST_PLACES and len({f"{end:.{places}f}" for end in beside}) < len(
            {*beside}
        ):
            places += 1
    return f"{value:,.{places}f}"


def _few_places(value: float) -> int:
    return 0 if value >= 9.95 else 1 if value >= 0.295 else 2


def agreed_number(value: float) -> str:
    """A number that people agreed on: as short as it is.

    Examples:
        >>> agreed_number(6.0), agreed_number(8 / 3), agreed_number(0.8), agreed_number(1.25)
        ('6', '2.7', '0.8', '1.25')
    """
    for places in range(3):
        if abs(value - round(value, places)) < 1e-9:
            return f"{value:,.{places}f}"
    return few(value)


def agreed_ratio(value: float) -> str:
    """A ratio that people agreed on, or what it is the other way round: near 1 decimals count.

    Examples:
        >>> agreed_ratio(0.8), agreed_ratio(1.25), agreed_ratio(1 / 0.95), agreed_ratio(0.995)
        ('0.8', '1.25', '1.05', '0.995')
    """
    places = next(p for p in (0, 1, 2, 3) if p == 3 or abs(value - round(value, p)) < 1e-9)
    if places == 3 and abs(value - 1) >= 0.05:
        places = 2
    return f"{value:,.{places}f}"


def count_words(count: int) -> str:
    """A small count as a word.

    Examples:
        >>> count_words(2), count_words(12), count_words(31)
        ('two', 'twelve', '31')
    """
    return _COUNTS[count] if count < len(_COUNTS) else f"{count:,}"


def times_as(ratio: float) -> str | None:
    """How many times as often, where that is easier to keep in mind than points; else None.

    Examples:
        >>> times_as(1.91), times_as(2.0), times_as(2.3), times_as(3.4), times_as(14.2)
        ('nearly twice', 'twice', 'more than twice', 'more than three times', 'about 14 times')
        >>> times_as(0.5), times_as(0.4), times_as(0.33), times_as(0.27), times_as(0.1)
        ('half', 'less than half', 'a third', 'about a quarter', 'less than a quarter')
        >>> times_as(1.4), times_as(0.8)
        (None, None)
    """
    for share, how in ((1 / 4, "a quarter"), (1 / 3, "a third"), (1 / 2, "half")):
        if ratio < 0.9 * share:
            return f"less than {how}"
        if ratio <= 1.1 * share:
            return how if abs(ratio / share - 1) <= 0.05 else f"about {how}"
    if ratio < 1.8:
        return None
    if ratio >= 10:
        return f"about {ratio:,.0f} times"
    near = round(ratio)
    how = (
        ""
        if abs(ratio - near) <= 0.05
        else "nearly "
        if near - 0.2 <= ratio < near
        else "more than "
    )
    whole = near if how != "more than " else int(ratio)
    return f"{how}{'twice' if whole == 2 else f'{count_words(whole)} times'}"
