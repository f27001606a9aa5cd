"""A typed client of the Tidemark API."""

from . import types
from .client import Tidemark
from .entries import Entries
from .events import DataChanged
from .problem import Problem

__all__ = ["DataChanged", "Entries", "Problem", "Tidemark", "types"]
