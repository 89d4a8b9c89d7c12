"""What is done about a target that seems to be reached, in which order; and what can be done again from where."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcveto.engines.simulation.asking import Doubt
from mcveto.engines.simulation.checkpoints import (
    FAR_BACK,
    MOST_CHECKPOINTS,
    STRETCH,
    Checkpoint,
    Checkpoints,
    Refined,
    Slot,
)
from mcveto.engines.simulation.doubts import FEW_HITS, MOST_DOUBTFUL, Doubts
from mcveto.engines.simulation.frontier import Frontier
from mcveto.engines.simulation.searches import SHARE_OF_ALL_GLANCES, SHARE_OF_GLANCE, Searches
from mcveto.engines.state import PathState
from mcveto.verdict import Verdict

FOUND = Verdict("violated")


class World:
    """All that doubts ask, and a record of what they ask, in this order."""

    def __init__(self, forgotten: int | None = None, around: int | None = None, since: int | None = None) -> None:
        self.log: list[str] = []
        self.found_by = ""
        self.now, self.kept = 100_000, [self.point(0), self.point(90_000), self.point(99_000)]
        self.replays: list[object] = []
        items: dict[Any, int] = {}
        item = ("memory", 64, 4, None)
        apart = SimpleNamespace(
            items=items,
            of={None: [(0, item)]},
            values=lambda _: ((0, 0),),
            add=lambda new: items.setdefault(new, 0),
            guards=SimpleNamespace(free=lambda _: None),
            forgotten=lambda *_: None if forgotten is None or item in items else (item, forgotten),
        )
        asked: set[int] = set()
        doubts = {7: around, 8: since}

        def doubt(function: int) -> Doubt | None:
            serial = doubts[function]
            return None if serial is None or function in asked else Doubt({function}, serial)

        asking = SimpleNamespace(functions=asked, around=lambda _: doubt(7), since_change=lambda *_: doubt(8))
        searches = SimpleNamespace(
            glance=lambda *_: self.looks("glance"),
            at=lambda *_: self.looks("search"),
            longer=lambda *_: self.looks("longer search"),
            forget=lambda: None,
        )
        summaries = SimpleNamespace(
            drop=lambda _: self.log.append("drop summaries"), kept_apart=lambda _: self.log.append("keep apart")
        )
        checkpoints = Checkpoints(lambda: self.now)
        for point in self.kept:
            checkpoints.keep(point)
        frontier = SimpleNamespace(edges=[], replays=self.replays)
        loops = SimpleNamespace(behind=lambda *_: [], left=list)
        parts: Any = (apart, None, None, asking, searches, summaries, checkpoints, frontier, loops)
        self.doubts = Doubts(*parts)
        self.doubts.begin(cast(PathState, None))

    def point(self, serial: int) -> Checkpoint:
        return cast(Checkpoint, SimpleNamespace(serial=serial, instructions=serial))

    def looks(self, how: str) -> Verdict | None:
        self.log.append(how)
        return FOUND if how == self.found_by else None

    def about(self, pc: int = 1, has_changed: bool = True) -> Verdict | int | None:
        """The violation, or since when all is done again."""
        state = cast(PathState, SimpleNamespace(pc=pc, calls=None))
        try:
            return self.doubts.about(state, (pc, None, ((0, int(has_changed)),)), 0.0)
        except Refined as refined:
            return refined.serial


NEAR, FAR = 99_500, 50_000


@pytest.mark.parametrize("serial", [NEAR, FAR])
def test_what_was_forgotten_is_kept_apart(serial: int) -> None:
    world = World(forgotten=serial)
    assert world.about() == serial
    assert world.log == (["keep apart"] if serial == NEAR else ["glance", "keep apart"])


@pytest.mark.parametrize("which", ["around", "since"])
@pytest.mark.parametrize("serial", [NEAR, FAR])
@pytest.mark.parametrize("forgotten", [None, FAR])
def test_functions_nearby_are_asked_about(which: str, serial: int, forgotten: int | None) -> None:
    """Before what was forgotten far back is kept apart. A glance comes first where that, too, is far back."""
    world = World(forgotten=forgotten, **{which: serial})
    assert world.about() == serial
    assert world.log == (["drop summaries"] if serial == NEAR else ["glance", "drop summaries"])
    world.log.clear()
    if forgotten is None:
        assert world.about() is None and world.log == ["search"]
    else:
        assert world.about() == forgotten and world.log == ["glance", "keep apart"]


@pytest.mark.parametrize("known", [{"forgotten": FAR}, {"around": FAR}, {"since": FAR}])
def test_an_input_that_is_found_at_a_glance_saves_doing_it_again(known: dict[str, int]) -> None:
    world = World(**known)
    world.found_by = "glance"
    assert world.about() is FOUND and world.log == ["glance"]


def test_no_function_is_asked_about_because_of_a_flag_that_is_as_at_the_beginning() -> None:
    world = World(since=NEAR)
    assert world.about(has_changed=False) is None and world.log == ["search"]


def test_the_same_thing_is_not_kept_apart_for_ever() -> None:
    world = World(forgotten=NEAR)
    for _ in range(FEW_HITS):
        assert world.about() == NEAR
        world.doubts._apart.items.clear()
    assert world.about() is None and world.log[-1] == "search"


@pytest.mark.parametrize("has_summaries", [False, True])
def test_what_stays_in_doubt_is_begun_anew_and_at_last_left_open(has_summaries: bool) -> None:
    world = World()
    world.replays += ["a summary"] * has_summaries
    doubts = world.doubts
    for begun in range(1 + has_summaries):
        assert not doubts.asks_all and doubts.trusts_summaries == (not begun)
        for pc in range(MOST_DOUBTFUL):
            assert world.about(pc, has_changed=False) is None
            assert world.about(pc, has_changed=False) is None  # it is known
        assert world.log.count("search") == MOST_DOUBTFUL
        assert world.about(MOST_DOUBTFUL, has_changed=False) == 0 and not doubts.open and "longer search" in world.log
        world.log.clear()
    assert doubts.asks_all
    assert [world.about(pc) for pc in range(2 * MOST_DOUBTFUL)] == [None] * 2 * MOST_DOUBTFUL
    assert not doubts.open and doubts.at_end(0.0) is None


def test_what_stays_in_doubt_at_the_end_is_searched_for_once_more() -> None:
    world = World()
    assert world.doubts.at_end(0.0) is None and world.about() is None
    with pytest.raises(Refined):
        world.doubts.at_end(0.0)
    assert world.about() is None  # found by nobody: it is still in doubt


def test_a_longer_search_finds_it() -> None:
    world = World()
    assert world.about() is None
    world.found_by = "longer search"
    assert world.doubts.at_end(0.0) is FOUND


@given(st.lists(st.integers(0, 3 * STRETCH), max_size=60), st.integers(0, 60 * STRETCH))
def test_checkpoints(stretches: list[int], serial: int) -> None:
    """The cost is that of going back, and what is gone back to was there before the variable."""
    now = 0
    points = Checkpoints(lambda: now)
    made: list[int] = []
    for stretch in [0, *stretches]:
        now += stretch
        is_due = not made or now - made[-1] >= STRETCH
        assert points.is_due() == is_due
        if is_due:
            points.keep(cast(Checkpoint, SimpleNamespace(serial=now, instructions=now)))
            made.append(now)
    assert len(points._kept) <= MOST_CHECKPOINTS + 1 and points._kept[0].serial == 0
    cost = points.cost(serial)
    assert points.is_far_back(serial) == (cost >= FAR_BACK)
    last = points.back(serial)
    assert last.instructions == now - cost and (last.serial < serial or last.serial == 0)
    assert not points.is_due() and points.back(serial) is last
    # No better one is forgotten of the last few.
    assert all(point >= serial or point <= last.serial for point in made[-3:])


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3), st.booleans()), max_size=40))
def test_what_waits_comes_in_the_order_of_the_code(steps: list[tuple[int, int, bool]]) -> None:
    """Those that were added first, of several at the same place; and nothing that was taken away."""
    frontier, waiting = Frontier(), []
    for number, (place, part, is_taken) in enumerate(steps):
        key, state = (number,), cast(PathState, SimpleNamespace(key=(place, part)))
        frontier.add(key, Slot(state, frozenset()))
        waiting.append(((place, part), key))
        if is_taken:
            frontier.slots.pop(waiting.pop(len(waiting) // 2)[1])
    for _, key in sorted(waiting):
        assert frontier.first_waiting() == key
        frontier.slots.pop(key)
    frontier.add((-1,), Slot(cast(PathState, SimpleNamespace(key=(0,))), frozenset()))
    frontier.drop_all()
    assert not frontier.slots


def test_glances_take_a_part_of_all_time_together(monkeypatch: pytest.MonkeyPatch) -> None:
    now, given = 0.0, []

    def search(self: Searches, state: object, node: object, edges: object, seconds: float, most: int) -> None:
        nonlocal now
        given.append(seconds)
        now += seconds + 1  # the last step takes longer than is left

    monkeypatch.setattr("mcveto.engines.simulation.searches.time", SimpleNamespace(monotonic=lambda: now))
    monkeypatch.setattr(Searches, "_search", search)
    searches = Searches.__new__(Searches)
    searches._glances, searches._glanced, searches._deadline = 0, 0.0, 100.0
    searches.begin(cast(PathState, None))
    for _ in range(30):
        assert searches.glance(cast(PathState, None), (0, None, ()), list, 1000, 100.0) is None
    assert given[0] == pytest.approx(100 * SHARE_OF_GLANCE) and len(given) > 1
    assert sum(given) + len(given) <= 100 * SHARE_OF_ALL_GLANCES + 1
