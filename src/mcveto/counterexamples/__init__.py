"""All counterexamples of a pushdown model: every minimum-recursion loop-free trace into an error state.

After Basu, Saha, Lin and Smolka, "Generation of All Counter-Examples for Push-Down Systems".

- model, model_parser, model_printer: pushdown and finite-state models with events, as text
- product → reachable (post* with distances) → enumeration: the way that scales
- erase → recursion: what a procedure does to the automaton, and which recursion is unnecessary
- rule_graph → b_graph → paper_enumeration: the paper's own construction, the reference for the above
- trace, grouping, rendering: what a reader sees
"""
