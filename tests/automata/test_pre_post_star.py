from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from mcveto.automata.lightest_configurations import lightest
from mcveto.automata.pautomaton import PAutomaton, configuration_set
from mcveto.automata.pds import PDS, Rule
from mcveto.automata.post_star import post_star, weighted_post_star
from mcveto.automata.pre_star import pre_star, weighted_pre_star
from mcveto.automata.regular_sets import is_empty, restrict
from mcveto.automata.semirings import MIN_PLUS
from mcveto.automata.witness import path_from_sources, path_to_targets

from .oracles import Config, reachable, replay, stacks
from .strategies import CONTROLS, SYMBOLS, automata, configurations, systems

ALL = [(control, stack) for control in CONTROLS for stack in stacks(SYMBOLS, 3)]
some_configs = st.lists(configurations(3), min_size=1, max_size=3)
DEPTH = 6


def one(_: Rule[str, str]) -> int:
    return 1


def cost(rule: Rule[str, str]) -> int:
    """An uneven weight: 0, 1 or 2."""
    return len(rule.pushed)


@given(systems, some_configs)
@settings(max_examples=250, deadline=None)
def test_post_star_against_enumeration(pds: PDS[str, str], sources: list[Config]) -> None:
    """Complete: what enumeration reaches is found, at no greater distance. Sound: what is found has a witness
    path, replayed here, of exactly that length."""
    result = weighted_post_star(pds, configuration_set(sources), MIN_PLUS, one)
    plain = post_star(pds, configuration_set(sources))
    reached = reachable(pds, sources, DEPTH)
    for config in dict.fromkeys([*ALL, *reached]):
        distance = result.configurations.weight(config)
        assert (config in plain) == (distance is not None)
        rules = path_from_sources(result, MIN_PLUS, config)
        if distance is None:
            assert config not in reached and rules is None
        else:
            assert rules is not None and len(rules) == distance <= reached.get(config, distance)
            assert any(_leads(source, rules, pds, config) for source in sources)


@given(systems, some_configs)
@settings(max_examples=250, deadline=None)
def test_pre_star_against_enumeration(pds: PDS[str, str], targets: list[Config]) -> None:
    result = weighted_pre_star(pds, configuration_set(targets), MIN_PLUS, one)
    plain = pre_star(pds, configuration_set(targets))
    for config in ALL:
        distance = result.configurations.weight(config)
        assert (config in plain) == (distance is not None)
        rules = path_to_targets(result, MIN_PLUS, config)
        reached = reachable(pds, [config], DEPTH)
        nearest = min((reached[target] for target in targets if target in reached), default=None)
        if distance is None:
            assert nearest is None and rules is None
        else:
            assert rules is not None and len(rules) == distance
            assert nearest is None or distance <= nearest
            assert replay(config, rules, pds) in targets


def _leads(source: Config, rules: list[Rule[str, str]], pds: PDS[str, str], config: Config) -> bool:
    try:
        return replay(source, rules, pds) == config
    except AssertionError:
        return False


@given(systems, automata(2), some_configs)
@settings(max_examples=150, deadline=None)
def test_pre_and_post_agree(pds: PDS[str, str], some: PAutomaton[str, str, bool], other: list[Config]) -> None:
    """c ∈ pre*(C) iff post*({c}) meets C, for a regular C whose automaton may enter its entry states; the
    weighted distances agree too."""
    backward = weighted_pre_star(pds, some, MIN_PLUS, cost)
    for config in other:
        forward = weighted_post_star(pds, configuration_set([config]), MIN_PLUS, cost)
        meeting = restrict(forward.configurations, some)
        nearest = lightest(meeting, MIN_PLUS, 1)
        assert backward.configurations.weight(config) == (nearest[0].weight if nearest else None)
        assert is_empty(meeting) == (not nearest)
        rules = path_to_targets(backward, MIN_PLUS, config)
        if rules is not None:
            assert sum(map(cost, rules)) == backward.configurations.weight(config)
            assert replay(config, rules, pds) in some


class Relations:
    """Relations over {0,1} under union and composition: idempotent, bounded, and not commutative."""

    zero: frozenset[tuple[int, int]] = frozenset()
    one: frozenset[tuple[int, int]] = frozenset({(0, 0), (1, 1)})

    def combine(
        self, left: frozenset[tuple[int, int]], right: frozenset[tuple[int, int]]
    ) -> frozenset[tuple[int, int]]:
        return left | right

    def extend(self, left: frozenset[tuple[int, int]], right: frozenset[tuple[int, int]]) -> frozenset[tuple[int, int]]:
        return frozenset((a, d) for a, b in left for c, d in right if b == c)


RELATIONS = Relations()
bits = st.integers(0, 1)
effects = st.frozensets(st.tuples(bits, bits), max_size=3)


@given(systems, st.lists(effects, min_size=7, max_size=7), some_configs)
@settings(max_examples=200, deadline=None)
def test_weights_that_do_not_commute(
    pds: PDS[str, str], effect: list[frozenset[tuple[int, int]]], ends: list[Config]
) -> None:
    """A relation as weight is the same as a bit in the control location, where plain reachability answers."""
    of_rule = dict(zip(pds.rules, effect, strict=False))
    unfolded = PDS(
        Rule((rule.control, a), rule.symbol, (rule.target, b), rule.pushed)
        for rule in pds.rules
        for a, b in sorted(of_rule[rule])
    )
    post = weighted_post_star(pds, configuration_set(ends), RELATIONS, of_rule.__getitem__)
    pre = weighted_pre_star(pds, configuration_set(ends), RELATIONS, of_rule.__getitem__)
    with_bit = [configuration_set([((control, bit), stack) for control, stack in ends]) for bit in (0, 1)]
    reached = [post_star(unfolded, some) for some in with_bit]
    reaching = [pre_star(unfolded, some) for some in with_bit]
    for control, stack in ALL:
        assert post.configurations.weight((control, stack)) == {
            (a, b) for a in (0, 1) for b in (0, 1) if ((control, b), stack) in reached[a]
        }
        assert pre.configurations.weight((control, stack)) == {
            (a, b) for a in (0, 1) for b in (0, 1) if ((control, a), stack) in reaching[b]
        }


def test_a_deep_stack_is_built_and_taken_down() -> None:
    """⟨p,a⟩ grows to any height and ⟨q,…⟩ takes it down; only multiples of 3 leave by r."""
    down = [Rule("d0", "c", "d1", ()), Rule("d1", "c", "d2", ()), Rule("d2", "c", "d0", ())]
    pds = PDS([Rule("p", "a", "p", ("a", "c")), Rule("p", "a", "d0", ()), *down, Rule("d0", "b", "r", ("b",))])
    result = weighted_pre_star(pds, configuration_set([("r", ("b",))]), MIN_PLUS, one)
    start = ("p", ("a", "c", "b"))
    rules = path_to_targets(result, MIN_PLUS, start)
    assert rules is not None and len(rules) == 2 + 1 + 3 + 1
    assert replay(start, rules, pds) == ("r", ("b",))


def test_the_lower_symbol_of_a_push_may_be_read_later_than_the_upper() -> None:
    """⟨r,c⟩ is found to reach the target only after the transition that pops b was settled."""
    pds = PDS(
        [
            Rule("p", "a", "q", ("b", "c")),
            Rule("q", "b", "r", ()),
            Rule("r", "c", "s", ("d",)),
            Rule("s", "d", "t", ("e",)),
        ]
    )
    targets = configuration_set([("t", ("e",))])
    assert ("p", ("a",)) in pre_star(pds, targets)
    result = weighted_pre_star(pds, targets, MIN_PLUS, one)
    rules = path_to_targets(result, MIN_PLUS, ("p", ("a",)))
    assert rules is not None and replay(("p", ("a",)), rules, pds) == ("t", ("e",)) and len(rules) == 4
