"""Write the vectors that Go, C and Python share: python3 -m tests.make_vectors > FILE."""

import json
import random
from ipaddress import ip_address

from sextant import Codec, Fields, Hop, Packet

_RADICES = {16: (2, 3, 5, 16), 20: (2, 16, 6, 7), 32: (2, 3, 4, 8, 16), 36: (8, 10, 23), 52: (2, 16, 200)}


def _packet(rng: random.Random, v6: bool) -> Packet:
    width = 128 if v6 else 32
    texts = [str(ip_address(rng.getrandbits(width).to_bytes(width // 8, "big"))) for _ in range(2)]
    ports = rng.random() < 0.9
    packet = Packet.of(
        *texts,
        protocol=rng.choice((6, 17)) if ports else rng.choice((1, 50, 58, 132)),
        source_port=rng.getrandbits(16) if ports else None,
        destination_port=rng.getrandbits(16) if ports else None,
        flow_label=rng.choice((0, rng.getrandbits(20), rng.getrandbits(20))) if v6 else 0,
        hop_limit=rng.randrange(1, 256),
    )
    return packet


def _case(rng: random.Random, codec: Codec, v6: bool) -> dict[str, object]:
    packet = _packet(rng, v6)
    router, count = rng.getrandbits(32), rng.randrange(1, codec.radix + 1)
    up = [rng.random() < 0.85 for _ in range(count)]
    case: dict[str, object] = {}
    label4 = not v6 and "flow-label" in codec.fields
    if packet.source_port is not None and not label4 and rng.random() < 0.7:
        first = rng.randrange(codec.length, 256)
        used = rng.randrange(1, codec.length + 1)
        path = [Hop(first - i, rng.randrange(codec.radix)) for i in rng.sample(range(codec.length), used)]
        variant = rng.randrange(codec.variants(path))
        value = codec.encode(packet, path, variant)
        case |= {"path": [[h.hop_limit, h.index] for h in path], "variant": variant, "value": value}
        packet = codec.write(packet, value)
        packet = Packet(
            packet.source, packet.destination, packet.protocol, packet.source_port,
            packet.destination_port, packet.flow_label, rng.choice(path).hop_limit,
        )
    digit, choice, hashed = codec.digit(packet, router)
    index, how = codec.next_hop(packet, router, up)
    return case | {
        "source": str(packet.source), "destination": str(packet.destination),
        "protocol": packet.protocol, "ports": packet.source_port is not None,
        "source_port": packet.source_port or 0, "destination_port": packet.destination_port or 0,
        "flow_label": packet.flow_label, "hop_limit": packet.hop_limit,
        "router": router, "up": up, "digit": digit, "decoded": choice.value, "hash": hashed,
        "next_hop": index, "choice": how.value,
    }  # fmt: skip


def main() -> None:
    """Print the vectors as JSON, one case a line."""
    rng = random.Random(2013)
    networks: list[tuple[dict[str, object], list[dict[str, object]]]] = []
    for fields in Fields:
        for radix in _RADICES[fields.bits]:
            for cipher in ("feistel", "rc5", "skip32") if fields.bits == 32 else ("feistel",):
                modulo = rng.random() < 0.2
                key = rng.randbytes(16)
                longest = Codec(fields, radix, key).length
                length = 0 if radix & (radix - 1) else rng.choice((0, longest - 1))
                codec = Codec(fields, radix, key, cipher, length, modulo)
                label = "flow-label" in fields
                cases = [_case(rng, codec, label and i % 8 != 0 or i % 2 == 1) for i in range(24)]
                head: dict[str, object] = {"fields": fields.value, "radix": radix, "length": codec.length,
                        "cipher": cipher, "key": key.hex(), "modulo": modulo}  # fmt: skip
                networks.append((head, cases))
    print('{"networks": [')
    for i, (network, cases) in enumerate(networks):
        print(f'{json.dumps(network)[:-1]}, "cases": [')
        print(",\n".join(json.dumps(case) for case in cases))
        print("]}" + ("," if i + 1 < len(networks) else ""))
    print("]}")


if __name__ == "__main__":
    main()
