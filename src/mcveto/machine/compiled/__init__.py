"""Fast concrete execution: hot code translated to Python source, one function per group of blocks."""

from .machine import CompiledMachine

__all__ = ["CompiledMachine"]
