"""How long one example takes says how busy the machine is, not whether the code is right: tests have time limits as a
whole, and growth is tested by counts and ratios. So Hypothesis must neither count seconds nor complain that drawing was
slow; of what fails it prints how to repeat it, since every run draws anew."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile(
    "mcveto",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    print_blob=True,
)
settings.load_profile("mcveto")
