"""Tests of the codec: vectors shared with Go and C, the paper's example, refusals."""

import json
import unittest
from pathlib import Path
from typing import Any

from sextant import Choice, Codec, Fields, Hop, Packet
from sextant.ciphers import RC5, Cipher, Feistel, Skip32

DATA = Path(__file__).resolve().parents[2] / "packet" / "cflb" / "testdata"


def _packet(case: dict[str, Any]) -> Packet:
    ports = (case["source_port"], case["destination_port"]) if case["ports"] else (None, None)
    return Packet.of(
        case["source"],
        case["destination"],
        protocol=case["protocol"],
        source_port=ports[0],
        destination_port=ports[1],
        flow_label=case["flow_label"],
        hop_limit=case["hop_limit"],
    )


class Vectors(unittest.TestCase):
    """The cases that all implementations share."""

    def test_networks(self) -> None:
        cases = 0
        for network in json.loads((DATA / "vectors.json").read_text())["networks"]:
            codec = Codec(
                network["fields"],
                network["radix"],
                bytes.fromhex(network["key"]),
                network["cipher"],
                network["length"],
                network["modulo"],
            )
            for case in network["cases"]:
                cases += 1
                packet = _packet(case)
                if "path" in case:
                    path = [Hop(*hop) for hop in case["path"]]
                    self.assertEqual(codec.encode(packet, path, case["variant"]), case["value"])
                digit, choice, chosen = codec.digit(packet, case["router"])
                self.assertEqual(
                    (digit, choice.value, chosen), (case["digit"], case["decoded"], case["hash"])
                )
                index, how = codec.next_hop(packet, case["router"], case["up"])
                self.assertEqual((index, how.value), (case["next_hop"], case["choice"]))
        self.assertGreater(cases, 500)

    def test_ciphers(self) -> None:
        for row in json.loads((DATA / "ciphers.json").read_text()):
            key, plain = bytes.fromhex(row["key"]), int(row["plain"], 16)
            cipher: Cipher
            if row["cipher"] == "rc5":
                cipher = RC5(key, row["rounds"])
            else:
                cipher = Skip32(key)
            self.assertEqual(cipher.encrypt(plain), int(row["cipherText"], 16), row["source"])
            self.assertEqual(cipher.decrypt(int(row["cipherText"], 16)), plain, row["source"])

    def test_feistel_permutes_any_size(self) -> None:
        for size in (1, 2, 3, 100, 1024, 5000):
            cipher = Feistel(size, bytes(range(16)))
            images = [cipher.encrypt(x) for x in range(size)]
            self.assertEqual(sorted(images), list(range(size)))
            self.assertEqual([cipher.decrypt(x) for x in images], list(range(size)))


class Paths(unittest.TestCase):
    """Steering, as a user does it."""

    def setUp(self) -> None:
        self.codec = Codec(Fields.PORTS, 4, bytes(16))
        self.packet = Packet.of("10.0.0.1", "10.0.0.2")
        self.path = [Hop(64, 3), Hop(63, 0), Hop(62, 1)]

    def test_a_steered_flow_takes_its_path(self) -> None:
        steered = next(self.codec.selectors(self.packet, self.path, first=99))
        for hop in self.path:
            at = Packet(
                steered.source, steered.destination, 6, steered.source_port,
                steered.destination_port, hop_limit=hop.hop_limit,
            )  # fmt: skip
            self.assertEqual(
                self.codec.next_hop(at, 17, [True] * 4), (hop.index, Choice.CONTROLLED)
            )

    def test_all_selectors_differ(self) -> None:
        codec = Codec("source-port", 4, bytes(16))
        ports = [found.source_port for found in codec.selectors(self.packet, self.path)]
        self.assertEqual(len(ports), codec.variants(self.path) - (0 in ports))
        self.assertEqual(len(set(ports)), len(ports))
        self.assertNotIn(0, ports)

    def test_refusals(self) -> None:
        refused = [
            lambda: Codec("ports", 1, bytes(16)),
            lambda: Codec("ports", 4, bytes(15)),
            lambda: Codec("ports", 4, bytes(16), length=17),
            lambda: Codec("source-port", 4, bytes(16), cipher="rc5"),
            lambda: Codec("ports", 4, bytes(16), cipher="none"),
            lambda: Codec("port", 4, bytes(16)),
            lambda: self.codec.encode(self.packet, [Hop(64, 4)]),
            lambda: self.codec.encode(self.packet, [Hop(64, 1), Hop(48, 2)]),
            lambda: self.codec.encode(self.packet, self.path, self.codec.variants(self.path)),
            lambda: Codec("flow-label", 4, bytes(16)).encode(self.packet, self.path),
        ]
        for call in refused:
            self.assertRaises(ValueError, call)


if __name__ == "__main__":
    unittest.main()
