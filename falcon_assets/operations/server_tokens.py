"""Tokens for servers: what commands prove with who asks."""

from __future__ import annotations

import json

from falcon_assets.base.new_files import write_file
from falcon_assets.errors import SettingsError
from falcon_assets.settings import given_token, tokens_file


def server_token(url: str) -> str | None:
    """Returns FALCON_TOKEN, or the token that is kept for the server at ``url``; None: there is none.

    Raises SettingsError.
    """
    token = given_token()
    if not (token.isascii() and token.isprintable()) or " " in token:
        raise SettingsError(f"FALCON_TOKEN, for {url}, has characters that no token has")
    return token or kept_token(url)


def kept_token(url: str) -> str | None:
    """Returns the token that ``falcon login`` keeps for the server at ``url``, None: it has none; raises SettingsError.

    For requests to an address that nobody names with the command: FALCON_TOKEN may be for another server.
    """
    return _kept_tokens().get(url) or None


def keep_token(url: str, token: str) -> None:
    """Keeps the token for a server, readable for this user only; an empty one is forgotten. Raises SettingsError."""
    tokens, file = _kept_tokens() | {url: token}, tokens_file()
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise SettingsError(f"{file.parent} cannot be made: {error.strerror}") from error
    kept = {name: one for name, one in sorted(tokens.items()) if one}
    write_file(file, json.dumps(kept, indent=2) + "\n", 0o600)


def _kept_tokens() -> dict[str, str]:
    file = tokens_file()
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no JSON"
        raise SettingsError(f"{file} cannot be read: {why}") from error
    return {str(url): str(token) for url, token in found.items()} if isinstance(found, dict) else {}
