"""``falcon --server URL``: operations are performed by a server, over REST, and shown as those of this machine."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

from falcon_assets.errors import UsageError
from falcon_assets.operations.operation import Operation
<<<<<<< HEAD
from falcon_assets.surface.rest.endpoints import (
    AS_RESULT,
    NAMES,
    Endpoint,
    adapter_of,
    endpoint_of,
    loaded,
    parameter_of,
)

PREFIX = "/falcon/api/v1"
_JSON = "application/json"
_CONNECT, _READ = 10, 300
_SHOWN = 300


class RemoteError(FalconError):
    """The server refused, or does not answer."""


@dataclass(frozen=True)
class Server:
    """A server of falcon.

    Attributes:
        url: Without the path of REST.
        token: None: none is sent.
    """

    url: str
    token: str | None

    def perform(self, asked: Operation, *, as_json: bool = True) -> Any:
        """The result, as the operation gives it, or only its data; raises RemoteError, and QueryError as it."""
        endpoint = endpoint_of(type(asked))
        placed = {parameter_of(name): _in_path(getattr(asked, name)) for name in endpoint.placed}
        given = _given(endpoint, asked)
        how: dict[str, Any] = {"json": given} if endpoint.has_body else {"params": [*_query(given)]}
        accept = _JSON if as_json else f"{AS_RESULT}, {_JSON}"
        answer = self._send(endpoint.method, endpoint.path.format(**placed), accept, **how)
        if answer.headers.get("Content-Type", "").startswith("text/plain"):
            return answer.text
        if answer.headers.get("Content-Type") == AS_RESULT and adapter_of(type(asked)) is not None:
            try:
                return loaded(type(asked), answer.text)
            except ValidationError as error:
                raise RemoteError(f"{self.url} has another version of falcon: its answer is not understood") from error
        return _Data(answer.json(), "Falcon-Failed" in answer.headers)

    def definition(self, name: str, kind: str | None) -> str:
        """The text of a definition."""
        params = {"kind": kind} if kind else {}
        answer = self._send("GET", f"/entities/{_in_path(name)}", accept="application/yaml", params=params)
        return str(answer.text)

    def _send(self, method: str, path: str, accept: str, **how: Any) -> Any:
        try:
            answer = requests.request(
                method,
                f"{self.url}{PREFIX}{path}",
                headers={"Accept": accept},
                auth=self._signed,
                timeout=(_CONNECT, _READ),
                allow_redirects=False,
                **how,
            )
        except requests.RequestException as error:
            why = printable(str(error))[:_SHOWN]
            raise RemoteError(f"{self.url} cannot be reached: {why}") from None
        if answer.is_redirect:
            place = printable(answer.headers["Location"])[:_SHOWN]
            raise RemoteError(f"{self.url} is no falcon server, or is at another address: it refers to {place}")
        if answer.ok:
            return answer
        raise _refusal(answer, self.url)

    def _signed(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        """With the token; without one, too, as requests would take a password from .netrc otherwise."""
        if self.token:
            request.headers["Authorization"] = f"Bearer {self.token}"
        return request


@dataclass(frozen=True)
class _Data:
    """The data of a result that has no other form over the network."""

    data: Any
    failed: bool

    def as_data(self) -> Any:
        return self.data

    def __getattr__(self, name: str) -> Any:
        raise _NotShownError("this result is shown as JSON only where it comes from a server: add --json")


class _NotShownError(UsageError, AttributeError):
    """A display asks for what the data of a result does not have."""


def _refusal(answer: requests.Response, url: str) -> FalconError:
    try:
        said = answer.json()
        detail, kind = str(said["detail"]), str(said["type"])
    except (ValueError, KeyError, TypeError):
        return RemoteError(f"{url} answered with status {answer.status_code}, and not as falcon does")
    return QueryError(detail) if kind == "urn:falcon:query" else RemoteError(detail)


def _in_path(value: Any) -> str:
    text = ",".join(value) if isinstance(value, tuple) else str(_plain(value))
    return quote(text, safe=",:")


def _given(endpoint: Endpoint, asked: Operation) -> dict[str, Any]:
    """What is given beside the path, without what is as usual; files are read here, as the server has others."""
    found = {}
    for name in asked.model_fields_set - {*endpoint.placed, "actor"}:
        value = getattr(asked, name)
        if value == type(asked).model_fields[name].get_default(call_default_factory=True):
            continue
        if name not in endpoint.fields:
            raise UsageError(f"--{name.replace('_', '-')} names a file of this machine: leave it out with --server")
        found[name] = _plain(value)
    if asked.model_extra is None and "definitions" in endpoint.fields and NAMES in found:
        texts, names = [], []
        for one in found.pop(NAMES):
            files = [*_files(Path(one))]
            texts += [file.read_text(encoding="utf-8") for file in files]
            names += [] if files else [one]
        found |= {"definitions": "\n---\n".join(filter(None, [found.get("definitions"), *texts]))} if texts else {}
        found |= {NAMES: names} if names else {}
    return found


def _files(path: Path) -> Iterator[Path]:
    """The files of definitions that a word stands for; none: it is a name."""
    try:
        if path.is_dir() and os.sep in str(path):
            yield from (one for one in sorted(path.rglob("*")) if one.suffix in (".yaml", ".yml") and one.is_file())
        elif path.is_file():
            yield path
    except (OSError, ValueError):
        return


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return format_instant(value)
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple | list):
        return [_plain(one) for one in value]
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, Frequency):
        return str(value)
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def _query(given: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in given.items():
        if name == "filters":
            yield from (("filter", f"{field}={wanted}") for field, wanted in value)
        elif isinstance(value, dict):
            yield from ((name, f"{key}={one}") for key, one in value.items())
        else:
            for one in value if isinstance(value, list) else [value]:
                yield name, str(one).lower() if isinstance(one, bool) else str(one)
=======
from falcon_assets.surface.rest.client import Server
>>>>>>> cef6330d (Many colos behind one face: changes of entities go to the colos of their clusters, what is missed is made up for)


def performed_by(server: Server, asked: Operation, *, as_json: bool) -> Operation:
    """The operation, which the server performs when it is run; raises UsageError for what is only for this machine."""
    if not asked.remote:
        raise UsageError(f"falcon {asked.command} is about this machine: leave --server out")
    there = _performed_there(type(asked)).model_construct(asked.model_fields_set, **dict(asked))
    there.__dict__[_SERVER] = partial(server.perform, as_json=as_json)
    return there


_SERVER = "_server"


@cache
def _performed_there(operation: type[Operation]) -> type[Operation]:
    def run(self: Operation, installation: object) -> Any:
        given = {name: value for name, value in self.__dict__.items() if name != _SERVER}
        return self.__dict__[_SERVER](operation.model_construct(self.model_fields_set, **given))

    return type(operation.__name__, (operation,), {"run": run, "__module__": operation.__module__})
