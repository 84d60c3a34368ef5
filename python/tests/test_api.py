"""Tests of the clients against a server of the test's own, and of results."""

import json
import socket
import socketserver
import tempfile
import threading
import unittest
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast
from unittest.mock import patch

from sextant import Agent, APIError, Controller, frame, result, tables
from sextant.api import Choice, Client, Elephant, Flow, Steered

ROOT = Path(__file__).resolve().parents[2]

FLOW: Flow = {"source": "10.0.1.1:0", "destination": "10.0.2.1:443", "protocol": "tcp"}


class _Handler(BaseHTTPRequestHandler):
    asked: list[tuple[str, str, Any]] = []
    answers: dict[str, tuple[int, Any]] = {}

    def _serve(self) -> None:
        size = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(size)) if size else None
        self.asked.append((self.command, self.path, body))
        status, answer = self.answers[f"{self.command} {self.path.split('?')[0]}"]
        text = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_PUT = do_POST = do_DELETE = _serve

    def address_string(self) -> str:
        return "client"

    def log_message(self, *_: object) -> None:
        pass


class Clients(unittest.TestCase):
    """What is sent, and what is made of answers."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.socket = str(Path(folder.name) / "s")
        server = socketserver.UnixStreamServer(self.socket, _Handler)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        _Handler.asked, _Handler.answers = [], {}

    def test_elephants(self) -> None:
        placed = {"name": "a", "flow": FLOW, "path": ["x", "y"], "choices": [], "by": "flows"}
        _Handler.answers = {
            "PUT /v1/elephants": (200, {"items": [placed], "moved": []}),
            "DELETE /v1/elephants": (200, {"names": ["a"]}),
            "POST /v1/paths/ports": (200, placed),
        }
        controller = Controller(self.socket)
        self.assertEqual(controller.place("a", FLOW)["path"], ["x", "y"])
        controller.release("a")
        controller.ports(FLOW, ["x", "y"])
        item = {"name": "a", "flow": FLOW, "seconds": 60, "by": ""}
        self.assertEqual(
            _Handler.asked,
            [
                ("PUT", "/v1/elephants", {"items": [item]}),
                ("DELETE", "/v1/elephants", {"names": ["a"]}),
                ("POST", "/v1/paths/ports", {"flow": FLOW, "path": ["x", "y"]}),
            ],
        )

    def test_lists_come_by_pages(self) -> None:
        pages = [{"items": [{"name": "a"}], "continue": "a"}, {"items": [{"name": "b"}]}]
        agent = Agent(self.socket)
        with patch.object(agent, "call", side_effect=pages) as call:
            self.assertEqual([s["name"] for s in agent.services()], ["a", "b"])
        self.assertEqual(call.call_args.kwargs["query"], {"limit": "1000", "continue": "a"})

    def test_names_are_escaped_and_errors_raised(self) -> None:
        refused = {"error": {"code": "not_found", "message": "no such service"}}
        _Handler.answers = {"PUT /v1/services/a%2Fb/backends/c": (404, refused)}
        with self.assertRaises(APIError) as caught:
            Agent(self.socket).put_backend("a/b", "c", {"weight": 1})
        self.assertEqual((caught.exception.status, caught.exception.code), (404, "not_found"))

    def test_who_is_not_there_is_named(self) -> None:
        silent = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.addCleanup(silent.close)
        silent.bind(self.socket + "2")
        silent.listen()
        clients = (
            Agent(self.socket + "1"),
            Agent(self.socket + "2", timeout=0.05),
            Agent(address="127.0.0.1:1"),
        )
        for client, place in zip(clients, (self.socket + "1", self.socket + "2", "127.0.0.1:1")):
            with self.assertRaises(ConnectionError) as caught:
                client.call("GET", "/v1/status")
            self.assertIn(f"GET /v1/status at {place}: ", str(caught.exception))

    def test_one_place(self) -> None:
        self.assertRaises(ValueError, Agent, "/run/s", address="localhost:1")


class _Noted(Controller, Agent):
    """Notes what is asked for, and answers with next to nothing."""

    def __init__(self) -> None:
        Client.__init__(self, "none")
        self.asked: list[tuple[str, str, Any, list[str]]] = []

    def call(
        self, method: str, path: str, body: object = None, query: Mapping[str, str] | None = None
    ) -> Any:
        self.asked.append((method, path, body, list(query or ())))
        return {"items": [{}]}


class Described(unittest.TestCase):
    """Clients ask what the daemons' descriptions of their APIs have, and know all of an answer."""

    def described(self, folder: str) -> dict[str, Any]:
        return cast(dict[str, Any], json.loads((ROOT / folder / "openapi.json").read_text()))

    def test_types(self) -> None:
        schemas = self.described("controller/testdata")["components"]["schemas"]
        for kind in (Flow, Choice, Steered, Elephant):
            schema = schemas[kind.__name__]
            self.assertEqual(set(kind.__annotations__), set(schema["properties"]), kind)
            self.assertEqual(getattr(kind, "__required_keys__"), set(schema["required"]), kind)

    def check(self, folder: str, asked: list[tuple[str, str, Any, list[str]]]) -> None:
        description = self.described(folder)
        for method, path, body, query in asked:
            pattern = path
            if path.startswith("/v1/services/"):
                pattern = "/v1/services/{name}/backends/{backend}"
            operation = description["paths"][pattern][method.lower()]
            self.assertLessEqual(set(query), {p["name"] for p in operation["parameters"]})
            self.assertEqual(body is not None, "requestBody" in operation, path)
            if isinstance(body, dict):
                media = operation["requestBody"]["content"]["application/json"]["schema"]
                named = description["components"]["schemas"][media["$ref"].split("/")[-1]]
                self.assertLessEqual(set(body), set(named["properties"]), path)

    def test_controller(self) -> None:
        client = _Noted()
        Controller.status(client)
        client.links()
        client.ports(FLOW, ["a", "b"])
        client.recover(FLOW, 5)
        client.best(FLOW, 2, "flows")
        list(client.elephants())
        client.place("a", FLOW, 60, "flows")
        client.release("a")
        self.check("controller/testdata", client.asked)

    def test_agent(self) -> None:
        client = _Noted()
        Agent.status(client)
        client.services()
        client.backends("web")
        client.put_backend("web", "a", {"weight": 1})
        client.next_hops()
        self.check("agent/api/testdata", client.asked)


class Results(unittest.TestCase):
    """Folders of experiments."""

    def test_tables(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "fig10.csv").write_text("Links,Chosen ports\n1,0\n7,400\n")
            self.assertEqual(tables(folder)["fig10"][1], {"Links": "7", "Chosen ports": "400"})

    def test_result(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "result.json").write_text('{"experiment": "cflb-fig10"}')
            self.assertEqual(result(folder), {"experiment": "cflb-fig10"})

    @unittest.skipUnless(find_spec("pandas"), "pandas is not installed")
    def test_frame(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "fig10.csv").write_text("Links,Ports,Law\n1,0,-\n7,400,2.4\n")
            numbers = frame(folder, "fig10")
        self.assertEqual(numbers["Ports"].sum(), 400)
        self.assertEqual(list(numbers["Law"]), ["-", "2.4"])


if __name__ == "__main__":
    unittest.main()
