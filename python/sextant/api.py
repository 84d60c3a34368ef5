"""Clients of the APIs of agents and controllers: JSON over HTTP, on a Unix socket or over TLS."""

import http.client
import json
import socket
import ssl
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NotRequired, TypedDict, cast
from urllib.parse import quote, urlencode

AGENT_SOCKET = "/run/sextant/agent.sock"
CONTROLLER_SOCKET = "/run/sextant/controller.sock"


class APIError(Exception):
    """A request that a daemon refused. Code is a word for programs, such as "notFound"."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code = status, code


class Flow(TypedDict):
    """A flow: ADDRESS:PORT of both ends, and "tcp" or "udp"."""

    source: str
    destination: str
    protocol: str


class Choice(TypedDict):
    """What a router on a path does."""

    router: str
    hopLimit: int
    index: int
    nextHops: int
    how: str


class Steered(TypedDict):
    """A flow with what its packets carry on a path."""

    flow: Flow
    path: list[str]
    choices: list[Choice]
    flowLabel: NotRequired[int]
    problem: NotRequired[str]


class Elephant(Steered):
    """A flow that the controller gave a path."""

    name: str
    by: str
    load: int
    seconds: float
    moved: NotRequired[bool]


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class Client:
    """Calls a daemon: on its Unix socket, or at HOST:PORT over TLS with a token."""

    def __init__(
        self,
        path: str = "",
        *,
        address: str = "",
        token: str = "",
        ca: str | None = None,
        timeout: float = 5.0,
    ) -> None:
        """Connect when it is used. CA is a PEM file that signs the certificate at the address."""
        if bool(path) == bool(address):
            raise ValueError("name a socket, or an address, and not both")
        self._path, self._address, self._token = path, address, token
        self._timeout = timeout
        self._tls = ssl.create_default_context(cafile=ca) if address else None

    def _connection(self) -> http.client.HTTPConnection:
        if self._tls is None:
            return _UnixConnection(self._path, self._timeout)
        return http.client.HTTPSConnection(
            self._address, timeout=self._timeout, context=self._tls
        )

    def call(
        self, method: str, path: str, body: object = None, query: Mapping[str, str] | None = None
    ) -> Any:
        """Send a request, and return the answer's JSON, or its text if it is none.

        A daemon that cannot be reached raises ConnectionError, one that refuses APIError.
        """
        headers = {"Authorization": f"Bearer {self._token}"} if self._token else {}
        payload = None
        if body is not None:
            payload = json.dumps(body)
            headers["Content-Type"] = "application/json"
        connection = self._connection()
        try:
            target = path + ("?" + urlencode(query) if query else "")
            connection.request(method, target, payload, headers)
            answer = connection.getresponse()
            text = answer.read().decode()
        except (OSError, http.client.HTTPException) as error:
            raise ConnectionError(
                f"{method} {path} at {self._path or self._address}: {error or repr(error)}; "
                "see that the daemon runs and serves its API there"
            ) from error
        finally:
            connection.close()
        if answer.status >= 300:
            raise self._error(answer.status, text)
        if "json" in answer.headers.get_content_type():
            return json.loads(text)
        return text

    @staticmethod
    def _error(status: int, text: str) -> APIError:
        try:
            error = json.loads(text)["error"]
            return APIError(status, error["code"], error["message"])
        except (ValueError, KeyError, TypeError):
            return APIError(status, "", text.strip() or http.client.responses.get(status, ""))

    def items(self, path: str, query: Mapping[str, str] | None = None) -> list[dict[str, Any]]:
        """Return the items of a list."""
        return cast(list[dict[str, Any]], self.call("GET", path, query=query)["items"])


class Agent(Client):
    """The agent of a node: GET /v1/openapi.json of it describes all that call can ask."""

    def __init__(self, path: str = "", **rest: Any) -> None:
        super().__init__(path or ("" if rest.get("address") else AGENT_SOCKET), **rest)

    def status(self) -> dict[str, Any]:
        """Return what the agent is and runs."""
        return cast(dict[str, Any], self.call("GET", "/v1/status"))

    def services(self) -> list[dict[str, Any]]:
        """Return services with their counters, in the order of their names."""
        query = {"limit": "1000"}
        items: list[dict[str, Any]] = []
        while True:
            page = self.call("GET", "/v1/services", query=query)
            items += page["items"]
            if not page.get("continue"):
                return items
            query["continue"] = page["continue"]

    def backends(self, service: str = "") -> list[dict[str, Any]]:
        """Return backends with their counters, all or those of a service."""
        return self.items("/v1/backends", {"service": service} if service else None)

    def put_backend(self, service: str, name: str, spec: Mapping[str, Any]) -> dict[str, Any]:
        """Create or change a backend; the answer lists what changed."""
        where = f"/v1/services/{quote(service, safe='')}/backends/{quote(name, safe='')}"
        return cast(dict[str, Any], self.call("PUT", where, dict(spec)))

    def next_hops(self) -> list[dict[str, Any]]:
        """Return a router's equal-cost next hops by index, role cflb."""
        return self.items("/v1/next-hops")


class Controller(Client):
    """A controller: weights of links, and paths of networks whose sources choose them."""

    def __init__(self, path: str = "", **rest: Any) -> None:
        super().__init__(path or ("" if rest.get("address") else CONTROLLER_SOCKET), **rest)

    def status(self) -> dict[str, Any]:
        """Return what the controller is and does."""
        return cast(dict[str, Any], self.call("GET", "/v1/status"))

    def links(self) -> list[dict[str, Any]]:
        """Return links with their weights."""
        return self.items("/v1/links")

    def ports(self, flow: Flow, path: Sequence[str]) -> Steered:
        """Return the port or the flow label with which a flow takes a path of routers."""
        asked = {"flow": flow, "path": list(path)}
        return cast(Steered, self.call("POST", "/v1/paths/ports", asked))

    def recover(self, flow: Flow, flow_label: int | None = None) -> Steered:
        """Return the path that a flow takes."""
        asked: dict[str, Any] = {"flow": flow}
        if flow_label is not None:
            asked["flowLabel"] = flow_label
        return cast(Steered, self.call("POST", "/v1/paths/recover", asked))

    def best(self, flow: Flow, count: int = 1, by: str = "") -> list[Steered]:
        """Return the best paths for a flow, for as many subflows."""
        asked = {"flow": flow, "count": count, "by": by}
        return cast(list[Steered], self.call("POST", "/v1/paths/best", asked)["items"])

    def elephants(self) -> Iterator[Elephant]:
        """Yield the flows that have paths."""
        yield from cast(list[Elephant], self.items("/v1/elephants"))

    def place(self, name: str, flow: Flow, seconds: float = 60, by: str = "") -> Elephant:
        """Give a flow a path, or more time for the one that it has."""
        item = {"name": name, "flow": flow, "seconds": seconds, "by": by}
        answer = self.call("PUT", "/v1/elephants", {"items": [item]})
        return cast(Elephant, answer["items"][0])

    def release(self, *names: str) -> None:
        """Say that flows have ended."""
        self.call("DELETE", "/v1/elephants", {"names": list(names)})
