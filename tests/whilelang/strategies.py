"""Random terms, formulas, programs and modules."""

from __future__ import annotations

from functools import cache

from hypothesis import strategies as st

from mcveto.whilelang.syntax import (
    MEM,
    TRUE,
    Assert,
    Assign,
    Assume,
    Binary,
    Call,
    Command,
    Compare,
    Connective,
    Formula,
    If,
    Input,
    Limit,
    Module,
    Not,
    Num,
    Procedure,
    Read,
    Store,
    Term,
    Truth,
    Unary,
    Var,
    While,
    sequence,
)

VARIABLES = ("x", "y")
MACHINE_OPERATORS = ("+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>")
INTEGER_OPERATORS = ("+", "-", "*", "/", "%")


@cache
def terms(largest: int, operators: tuple[str, ...] = MACHINE_OPERATORS, depth: int = 2) -> st.SearchStrategy[Term]:
    leaf: st.SearchStrategy[Term] = st.one_of(
        st.builds(Num, st.integers(0, largest)),
        st.builds(Var, st.sampled_from(VARIABLES)),
        st.builds(Var, st.sampled_from(VARIABLES)),
        st.just(Limit()),
    )
    if depth == 0:
        return leaf
    inner = terms(largest, operators, depth - 1)
    unary = ("-", "~") if "&" in operators else ("-",)
    return st.one_of(
        leaf,
        st.builds(Binary, st.sampled_from(operators), inner, inner),
        st.builds(Unary, st.sampled_from(unary), inner),
        st.builds(lambda index: Read(MEM, index), inner),
    )


@cache
def formulas(
    largest: int, operators: tuple[str, ...] = MACHINE_OPERATORS, depth: int = 1
) -> st.SearchStrategy[Formula]:
    value = terms(largest, operators, 1 + depth)
    compare = st.builds(Compare, st.sampled_from(("=", "≠", "<", "≤", ">", "≥")), value, value)
    if depth == 0:
        return compare
    inner = formulas(largest, operators, depth - 1)
    return st.one_of(
        compare,
        compare,
        st.builds(Truth, st.booleans()),
        st.builds(Not, inner),
        st.builds(Connective, st.sampled_from(("∧", "∨", "→", "↔")), inner, inner),
    )


@cache
def commands(
    largest: int,
    operators: tuple[str, ...] = MACHINE_OPERATORS,
    *,
    depth: int = 2,
    loops: bool = True,
    inputs: bool = True,
    calls: bool = False,
) -> st.SearchStrategy[Command]:
    term, formula = terms(largest, operators), formulas(largest, operators)
    simple: list[st.SearchStrategy[Command]] = [
        st.builds(Assign, st.sampled_from(VARIABLES), term),
        st.builds(Assign, st.sampled_from(VARIABLES), term),
        st.builds(Store, term, term),
        st.builds(Assert, formula),
        st.builds(Assume, formula),
    ]
    if inputs:
        simple.append(st.builds(Input, st.sampled_from(VARIABLES)))
    if calls:
        simple.append(
            st.builds(
                lambda target, a: Call(target, "f", (a,)),
                st.sampled_from((None, *VARIABLES)),
                terms(largest, operators, 1),
            )
        )
    if depth == 0:
        return st.one_of(*simple)
    inner = commands(largest, operators, depth=depth - 1, loops=loops, inputs=inputs, calls=calls)
    compound: list[st.SearchStrategy[Command]] = [st.builds(If, formula, inner, st.one_of(st.none(), inner))]
    if loops:
        compound.append(st.builds(While, formula, inner, st.one_of(st.none(), st.just(TRUE), formula)))
    return st.lists(st.one_of(*simple, *compound), min_size=1, max_size=3).map(sequence)


@st.composite
def modules(
    draw: st.DrawFn,
    theory: str,
    largest: int,
    cells: int,
    *,
    loops: bool = True,
    inputs: bool = True,
    calls: bool = False,
) -> Module:
    operators = INTEGER_OPERATORS if theory == "Z" else MACHINE_OPERATORS
    program = draw(commands(largest, operators, loops=loops, inputs=inputs, calls=calls))
    pre = draw(st.one_of(st.just(TRUE), formulas(largest, operators)))
    post = draw(st.one_of(st.just(TRUE), formulas(largest, operators)))
    procedures: tuple[Procedure, ...] = ()
    if calls:
        body = draw(commands(largest, operators, depth=1, loops=False, inputs=inputs, calls=True))
        procedures = (Procedure("f", ("x",), "y", body),)
    return Module(program, pre, post, theory, cells, procedures)
