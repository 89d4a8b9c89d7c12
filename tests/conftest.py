"""How long one example takes says how busy the machine is, not whether the code is right: tests have time limits as a
whole, and growth is tested by counts and ratios."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("mcveto", deadline=None)
settings.load_profile("mcveto")
