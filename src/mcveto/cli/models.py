"""`mcveto models`: the library functions that can stand for a binary's own, and what each assumes."""

from __future__ import annotations

import click

from mcveto.errors import UsageError


@click.command()
@click.argument("name", required=False)
def command(name: str | None) -> int:
    """List the library models with their assumptions, or show the text of one.

    A spec binds them: `models: [memcpy, strlen]` by name, or `models: {0x8049090: memcpy}` by address.
    """
    from mcveto.whilelang.formatter import procedure_lines
    from mcveto.whilelang.models.catalogue import models, procedure

    known = models()
    if name is not None:
        if name not in known:
            import difflib

            nearest = difflib.get_close_matches(name, known, n=1, cutoff=0.0)
            raise UsageError(f"there is no library model '{name[:40]}'", f"did you mean '{nearest[0]}'?")
        name = known[name].same_as or name
        if not known[name].ends:
            print("\n".join(procedure_lines(procedure(name, 32))))
    for item in known.values() if name is None else [known[name]]:
        if item.same_as is not None:
            print(f"{item.name}: the same as {item.same_as}")
            continue
        print(f"{item.name}: {'ends the run' if item.ends else 'returns'}")
        for text in item.assumes:
            print(f"    assumes: {text}")
    return 0
