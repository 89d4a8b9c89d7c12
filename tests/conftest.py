"""How long one example takes says how busy the machine is, not whether the code is right: tests have time limits as a
whole, and growth is tested by counts and ratios. So Hypothesis must neither count seconds nor complain that drawing was
slow; of what fails it prints how to repeat it, since every run draws anew.

Terms live as long as their process, so that one which has run thousands of tests searches for cycles among millions of
objects: seconds that count as time of the solver, or of the limit of a test. What a few tests have left is therefore
set aside.
"""

from __future__ import annotations

import gc
from itertools import count

import pytest
from hypothesis import HealthCheck, settings

TESTS_AT_ONCE = 10
_tests = count(1)

settings.register_profile(
    "mcveto",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    print_blob=True,
)
settings.load_profile("mcveto")


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown() -> None:
    if not next(_tests) % TESTS_AT_ONCE:
        gc.collect()
        gc.freeze()


def pytest_unconfigure() -> None:
    gc.unfreeze()
