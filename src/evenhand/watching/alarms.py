"""Alarms as work: what is open, who has answered it and why, and who else is told."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from http.client import HTTPException
from pathlib import Path
from time import monotonic, sleep
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from evenhand.errors import UsageError
from evenhand.models.endpoint import bounded
from evenhand.speech import agree, count_words, listed, opening, plural, printable, without_secrets
from evenhand.watching.look import ANSWERED, OPEN, STILL_OUTSIDE
from evenhand.watching.periods import Period
from evenhand.watching.run import check_store, spoken_alarms
from evenhand.watching.sentences import owner_words
from evenhand.watching.store import Store, StoredAlarm

# Seconds for one try and for all of them together, and the pauses between tries.
ONE_TRY, ALL_TRIES, PAUSES = 5.0, 15.0, (0.0, 0.5, 2.0)
# Answers after which a try may succeed later.
_LATER = {408, 425, 429, 500, 502, 503, 504}


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarms:
    """The alarms of a store, and what became of telling others.

    `said` are the alarms as they look now, in plain values and in words.
    """

    store: str
    every: str
    held: tuple[StoredAlarm, ...]
    said: tuple[Mapping[str, Any], ...] = ()
    charter: Mapping[str, Any] | None = None
    told: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def open(self) -> list[StoredAlarm]:
        """Those that nobody has answered."""
        return [alarm for alarm in self.held if alarm.open]

    @property
    def still_outside(self) -> list[StoredAlarm]:
        """Those that were answered and whose gaps are still outside their limits."""
        both = zip(self.held, self.said)
        return [alarm for alarm, said in both if said["state"] == STILL_OUTSIDE]

    def plain(self) -> list[dict[str, Any]]:
        """Every alarm as plain values."""
        return [alarm_message(alarm, said) for alarm, said in zip(self.held, self.said)]

    def __str__(self) -> str:
        if not self.held:
            return "\n".join([f"No alarm was ever raised in {self.store}.", *self.notes])
        count = len(self.open)
        which = f"{plural(count, 'alarm')} of {len(self.held)} {agree(count, 'is', 'are')} open"
        lines = [f"{which if count else 'No alarm is open'} in {self.store}."]
        outside = len(self.still_outside)
        if outside:
            was, be = agree(outside, "was", "were"), agree(outside, "is", "are")
            many = f"{opening(count_words(outside))} {agree(outside, 'alarm', 'alarms')}"
            lines[0] += f" {many} that {was} answered {be} still outside."
        order = [OPEN, STILL_OUTSIDE, ANSWERED]
        pairs = zip(self.held, self.said)
        for alarm, said in sorted(pairs, key=lambda pair: order.index(pair[1]["state"])):
            raised = Period(every=self.every, number=alarm.raised).dated
            what = f"Alarm {alarm.id}, raised in {raised}"
            if not alarm.open:
                what += f" and answered by {alarm.who} (“{alarm.why}”)"
                what += ", still outside" if said["state"] == STILL_OUTSIDE else ""
            lines += ["", f"{what}: {said['headline']}"]
            if alarm.open:
                lines += [
                    f"  {text}"
                    for text in (said["detail"], said["next"], owner_words(self.charter))
                ]
        return "\n".join(printable(line) for line in [*lines, *self.notes])


def alarms(
    store: str | Path,
    *,
    acknowledge: int | None = None,
    by: str | None = None,
    why: str | None = None,
    webhook: str | None = None,
) -> Alarms:
    """The alarms of a store; one may be answered, and an address told of those it does not know.

    An answer lets the detectors of that comparison begin again at the onset, with fresh α. It
    changes no number: a gap that is still outside its limit stays so.

    Args:
        store: The folder of the store.
        acknowledge: The number of the alarm that is answered.
        by: Who answers it.
        why: What was found out, or done.
        webhook: An address that gets one JSON document for each alarm, never twice.
    """
    with Store.open(store) as opened:
        check_store(opened)
        if acknowledge is not None:
            if not by or not why:
                raise UsageError("Say who acknowledges the alarm (--by) and why (--why).")
            with opened.writing():
                opened.acknowledge(acknowledge, by=by, why=why)
        elif by or why:
            raise UsageError("Say which alarm is answered: --acknowledge NUMBER.")
        said, charter = spoken_alarms(opened)
        told, notes = _tell(opened, webhook, {each["id"]: each for each in said}) if webhook else (
            [], []
        )  # fmt: skip
        held = {alarm.id: alarm for alarm in opened.alarms()}
        return Alarms(
            store=str(store),
            every=str(opened.about.get("every", "week")),
            held=tuple(held[each["id"]] for each in said),
            said=tuple(said),
            charter=charter,
            told=tuple(told),
            notes=tuple(notes),
        )


def alarm_message(alarm: StoredAlarm, said: Mapping[str, Any]) -> dict[str, Any]:
    """An alarm as others are told of it: as it was raised, and in words as it looks now."""
    words = {name: said.get(name) for name in ("headline", "detail", "next")}
    return {
        "schema": "evenhand.alarm/1", "id": alarm.id, **alarm.document, **words, "at": alarm.at,
        "open": alarm.open, "by": alarm.who, "why": alarm.why, "state": said.get("state"),
    }  # fmt: skip


def _tell(
    store: Store, address: str, said: Mapping[int, Mapping[str, Any]]
) -> tuple[list[int], list[str]]:
    """Post every alarm that an address does not know; a failure is told and never raised."""
    if urlsplit(address).scheme not in ("http", "https"):
        raise UsageError(
            f"webhook={without_secrets(address)!r} is not an address. Give one that begins with "
            "https://."
        )
    name = sha256(address.encode()).hexdigest()
    end = monotonic() + ALL_TRIES
    told: list[int] = []
    failed: list[str] = []
    reason = ""
    for alarm in store.unposted(name):
        # Claimed before it is sent, so that two runs at once do not both send it.
        with store.writing():
            if alarm.id not in [one.id for one in store.unposted(name)]:
                continue
            store.posted(alarm.id, name)
        message = alarm_message(alarm, said.get(alarm.id, {}))
        reason = _post(address, message, key=f"{name[:16]}-{alarm.id}", end=end)
        if not reason:
            told.append(alarm.id)
            continue
        failed.append(str(alarm.id))
        if reason != _UNSURE:
            with store.writing():
                store.unpost(alarm.id, name)
    if not failed:
        return told, []
    where = without_secrets(address)
    return told, [f"{where} was not told of alarm {listed(failed)}: {reason}."]


_UNSURE = "it did not answer in time, and may have heard of it"


def _post(address: str, message: Mapping[str, Any], *, key: str, end: float) -> str:
    """Post a document; why it failed, or nothing."""
    body = json.dumps(message, ensure_ascii=False).encode()
    heads = {"Content-Type": "application/json", "Idempotency-Key": key}
    reason = "there was no time left"
    for pause in PAUSES:
        left = end - monotonic() - pause
        if left <= 0:
            break
        sleep(pause)
        try:
            request = Request(address, data=body, headers=heads, method="POST")
            seconds = min(ONE_TRY, left)
            bounded(lambda r=request, s=seconds: _send(r, s), seconds=seconds)  # type: ignore[misc]
            return ""
        except HTTPError as error:
            error.close()
            reason = f"it answered {error.code}"
            if error.code not in _LATER:
                break
        except TimeoutError:
            return _UNSURE
        except URLError as error:
            if isinstance(error.reason, TimeoutError):
                return _UNSURE
            reason = f"it cannot be reached ({without_secrets(str(error.reason))})"
        except HTTPException as error:
            reason = f"it broke off its answer ({type(error).__name__})"
        except (OSError, ValueError) as error:
            reason = f"it cannot be reached ({without_secrets(str(error))})"
    return reason


def _send(request: Request, seconds: float) -> bytes:
    with build_opener(_NoRedirect).open(request, timeout=seconds):
        return b""


class _NoRedirect(HTTPRedirectHandler):
    """A document goes to the address that was named and nowhere else."""

    def redirect_request(self, *_: Any) -> None:
        """Nowhere."""
        return
