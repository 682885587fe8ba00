"""Time zones as Java understands them, by their IANA names."""

from __future__ import annotations

import re

from falcon_assets.model.wall_clock import zones

SHORT_ZONES = {
    "ACT": "Australia/Darwin", "AET": "Australia/Sydney", "AGT": "America/Argentina/Buenos_Aires",
    "ART": "Africa/Cairo", "AST": "America/Anchorage", "BET": "America/Sao_Paulo", "BST": "Asia/Dhaka",
    "CAT": "Africa/Harare", "CNT": "America/St_Johns", "CST": "America/Chicago", "CTT": "Asia/Shanghai",
    "EAT": "Africa/Addis_Ababa", "ECT": "Europe/Paris", "IET": "America/Indiana/Indianapolis",
    "IST": "Asia/Kolkata", "JST": "Asia/Tokyo", "MIT": "Pacific/Apia", "NET": "Asia/Yerevan",
    "NST": "Pacific/Auckland", "PLT": "Asia/Karachi", "PNT": "America/Phoenix", "PRT": "America/Puerto_Rico",
    "PST": "America/Los_Angeles", "SST": "Pacific/Guadalcanal", "VST": "Asia/Ho_Chi_Minh",
}  # fmt: skip
"""Three-letter names of Java (source: ``java.time.ZoneId.SHORT_IDS``)."""
PART_HOURS = {
    "+04:30": "Asia/Kabul", "+05:30": "Asia/Kolkata", "+05:45": "Asia/Kathmandu", "+06:30": "Asia/Yangon",
    "+09:30": "Australia/Darwin", "-09:30": "Pacific/Marquesas",
}  # fmt: skip
"""Offset with part of an hour -> a zone that has had it all the year since 1986."""
_OFFSET = re.compile(r"GMT([+-])([0-9]{1,2})(?::?([0-9]{2}))?")
_WHOLE_HOURS = range(-12, 15)
"""The range of ``Etc/GMT...``."""
_ONLY_JAVA = re.compile(r"SystemV/.*|US/Pacific-New")
"""Zones that only Java knew."""


def iana_zone(text: str) -> tuple[str, str | None]:
    """Returns the zone that Java used for a text, and a remark for the user; None: there is no difference.

    Java knows IANA names, some of three letters, and ``GMT+h``, ``GMT+hh:mm`` and ``GMT+hhmm``, and uses GMT for all
    others (source: ``java.util.TimeZone.getTimeZone``).
    """
    if text in zones() or not text:
        return text, None
    if text in SHORT_ZONES:
        return SHORT_ZONES[text], "as Java understood it"
    if _ONLY_JAVA.fullmatch(text):
        return text, "only Java knew this zone: write the IANA zone that is meant"
    offset = _OFFSET.fullmatch(text)
    hours, minutes = (int(offset[2]), int(offset[3] or 0)) if offset else (24, 0)
    if offset is None or hours > 23 or minutes > 59:
        return "UTC", "Java did not know this zone, and took GMT"
    if minutes == 0 and int(f"{offset[1]}{hours}") in _WHOLE_HOURS:
        found = f"Etc/GMT{'-' if offset[1] == '+' else '+'}{hours}" if hours else "UTC"
    else:
        found = PART_HOURS.get(f"{offset[1]}{hours:02}:{minutes:02}", "")
    if not found:
        return text, "no IANA zone lies so far from UTC all the year: write one"
    return found, "as Java understood it"
