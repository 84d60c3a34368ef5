"""Steer flows over chosen paths of a network whose routers run Sextant's CFLB."""

from .cflb import Choice, Codec, Fields, Hop, Packet

__all__ = ["Choice", "Codec", "Fields", "Hop", "Packet"]
