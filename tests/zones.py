"""Time zones with something special each: half hours, changes at midnight, changes of half an hour, a day left out."""

from __future__ import annotations

ZONES = [
    "UTC",
    "America/New_York",
    "Europe/Berlin",
    "America/Sao_Paulo",
    "America/Nuuk",
    "America/St_Johns",
    "Australia/Lord_Howe",
    "Asia/Kolkata",
    "Africa/Casablanca",
    "Asia/Beirut",
    "Pacific/Apia",
]
