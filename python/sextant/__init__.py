"""Sextant for Python programs: path selectors, clients of agents and controllers, results."""

from .api import Agent, APIError, Client, Controller
from .cflb import Choice, Codec, Fields, Hop, Packet
from .results import frame, result, tables

__all__ = [
    "APIError",
    "Agent",
    "Choice",
    "Client",
    "Codec",
    "Controller",
    "Fields",
    "Hop",
    "Packet",
    "frame",
    "result",
    "tables",
]
