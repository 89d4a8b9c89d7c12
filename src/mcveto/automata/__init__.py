"""Nested words, nested word automata, pushdown systems and regular sets of configurations.

- nested_words → nwa → nwa_acceptance, nwa_intersection, nwa_emptiness: the abstract graph as a language
- nwa_to_pds → pds → pre_star, post_star → witness: the same graph as a pushdown system
- pautomaton, regular_sets, lightest_configurations: sets of configurations
- frontier: edges that leave what was executed
- incremental_reachability → dynamic_distances: shortest paths while the graph changes

Every iteration is over insertion-ordered containers and every tie is broken by a running number, so results
depend on the order of calls only, never on hash values.
"""
