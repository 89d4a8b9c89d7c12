"""Figures 1 to 4 of Basu, Saha, Lin and Smolka, to the letter."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcveto.counterexamples.enumeration import Enumeration
from mcveto.counterexamples.erase import Erase
from mcveto.counterexamples.model import NOTHING
from mcveto.counterexamples.model_parser import read_model
from mcveto.counterexamples.paper_enumeration import PaperEnumeration
from mcveto.counterexamples.product import Product
from mcveto.counterexamples.reachable import Reachable
from mcveto.counterexamples.recursion import MinimumRecursion
from mcveto.property.library import find_typestate

MODELS = Path(__file__).parents[2] / "examples" / "models"

# W2 and W1 of Fig. 4(c), projected to stacks as at the end of section 4.
WITNESSES = [
    "m0, s0 m1, s1 m1, s0 s3 m1, s2 s3 m1, s4 s3 m1, s3 m1, s4 m1",
    "m0, s0 m1, s1 m1, s0 s3 m1, s5 s3 m1, s6 s3 m1, s4 s3 m1, s3 m1, s4 m1",
]


def product_of(model: str, automaton: str) -> Product:
    path = MODELS / f"{automaton}.fsm"
    return Product(read_model(str(MODELS / f"{model}.pds")), find_typestate(str(path) if path.exists() else automaton))


def stacks(product: Product) -> list[str]:
    enumeration = Enumeration(Reachable(product), MinimumRecursion(Erase(product)))
    found = [", ".join(" ".join(stack) for _, stack in witness.key) for witness in enumeration]
    assert enumeration.is_exhaustive
    return found


def heads(product: Product) -> dict[str, int]:
    """The heads by the names the paper gives them."""
    universe = {product.controls[control].configuration.state: control for control in product.universe()}
    return {
        f"{state} {symbol}": product.head(control, number)
        for state, control in universe.items()
        for number, symbol in enumerate(product.model.symbols)
    }


def test_the_two_witnesses() -> None:
    product = product_of("fig2", "fig2")
    assert stacks(product) == WITNESSES
    enumeration = Enumeration(Reachable(product), MinimumRecursion(Erase(product)))
    for witness in enumeration:
        assert [state for state, _ in witness.key] == ["q0"] * len(witness) + ["q1"]
        assert [step for step in range(len(witness)) if witness.is_interesting(step)] == [len(witness) - 1]


def test_the_two_witnesses_by_the_b_graph() -> None:
    product = product_of("fig2", "fig2")
    found = PaperEnumeration(product, MinimumRecursion(Erase(product))).witnesses()
    assert [", ".join(" ".join(stack) for _, stack in witness.key) for witness in found] == WITNESSES


def test_product_automaton() -> None:
    """Fig. 3(a)."""
    product = product_of("fig2", "fig2")
    names = [product.controls[control].configuration.state for control in product.universe()]
    found = set()
    for name, head in heads(product).items():
        for target, first, second in product.rules(head):
            pushed = [product.model.symbols[symbol] for symbol in (first, second) if symbol != NOTHING]
            found.add(f"{name} > {product.controls[target].configuration.state} {' '.join(pushed)}".strip())
    rules = "m0 > s0 m1, m1 > m1, s0 > s1, s0 > s2, s1 > s0 s3, s3 > s4, s2 > s4, s4 >"
    rules += ", s0 > s5, s5 > s6, s6 > s5, s6 > s4"
    expected = {"q0 s3 > q1 s4"}
    for rule in rules.split(", "):
        left, right = rule.split(">")
        expected |= {f"{q} {left.strip()} > {q} {right.strip()}".strip() for q in names}
    assert found == expected


def test_erase_relation() -> None:
    """Fig. 3(b), whose list names (q1, s0, q1) twice."""
    product = product_of("fig2", "fig2")
    erase = Erase(product)
    found = {
        f"{name} {product.controls[end].configuration.state}"
        for name, head in heads(product).items()
        for end in erase.of(head)
    }
    expected = "q0 s0 q0, q0 s0 q1, q1 s0 q1, q0 s2 q0, q1 s2 q1, q0 s1 q0, q0 s1 q1, q1 s1 q1, q0 s3 q0, "
    expected += "q0 s3 q1, q1 s3 q1, q0 s4 q0, q1 s4 q1, q0 s5 q0, q0 s6 q0, q1 s5 q1, q1 s6 q1"
    assert found == set(expected.split(", "))


def test_b_graph() -> None:
    """Fig. 4(b): below each point of P lies s3* m1."""
    product = product_of("fig2", "fig2")
    graph = PaperEnumeration(product, MinimumRecursion(Erase(product))).graph
    names = {head: name for name, head in heads(product).items()}
    found = {names[node]: graph.text(node) for node in graph.nodes if node in names}
    points = [f"q0 s{number}" for number in range(7)]
    assert found == {"q0 m0": "ε", "q0 m1": "ε", "q1 s4": "s3* m1", **dict.fromkeys(points, "s3* m1")}


def test_refinement_of_the_running_example() -> None:
    """The end of section 4: e1 without an e2 before it never happens."""
    assert stacks(product_of("fig2", "fig2-refined")) == []


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("fig1-policy1", ["1, 2, 3, end", "1, 2, 4, end"]),
        ("fig1-policy2", []),
        ("privileged-io", []),
        ("fig1-policy3", ["1, 2, 4, end"]),
    ],
)
def test_policies_of_figure_1(policy: str, expected: list[str]) -> None:
    assert sorted(stacks(product_of("fig1", policy))) == expected


def test_tar() -> None:
    """Section 6: all violations read a class file; once that is allowed, there are none."""
    product = product_of("tar", "unlisted-files")
    found = stacks(product)
    assert found
    for trace in found:
        assert trace.split(", ")[-2].split()[0] == "load_read"
    # Deeper recursion leads to the same violation by the same points: two directories suffice.
    assert any("put_again" in trace for trace in found)
    assert stacks(product_of("tar", "tar-refined")) == []


def test_ftp_daemon() -> None:
    """Section 6: numerous violations, all through branches that the abstraction opened."""
    found = stacks(product_of("ftpd", "open-before-setresuid"))
    assert len(found) == 10
    for trace in found:
        assert {"cached", "is_auth"} & set(trace.split(", "))
    assert stacks(product_of("ftpd-refined", "open-before-setresuid")) == []
