"""Derivations as text, HTML and LaTeX; closed leaves are marked *, refuted ones ✗, open ones ?."""

from __future__ import annotations

import html

from mcveto.whilelang.formatter import LATEX
from mcveto.whilelang.sequents import Node

_RULES_LATEX = {
    "→R": r"\rightarrow R",
    "∧R": r"\wedge R",
    "⊤R": r"\top R",
    "⊥L": r"\bot L",
    "ℤ": r"\mathbb{Z}",
    "ℤ_M": r"\mathbb{Z}_M",
    "[:=]=": "[:=]_{=}",
    "[*]=": "[*]_{=}",
    "[*]1": "[*]_{1}",
    "[*]2": "[*]_{2}",
}

_LEAVES_LATEX = {True: r"\AxiomC{$*$}", False: r"\AxiomC{$\times$}", None: r"\AxiomC{?}"}


def status(node: Node) -> str:
    """What a leaf says: * closed, ✗ refuted, ? open."""
    return {True: "*", False: "✗", None: "?"}[node.closed]


def text_lines(root: Node) -> list[str]:
    """The tree from the conclusion up, every premise indented below what it proves."""
    lines: list[str] = []
    stack: list[tuple[Node, int]] = [(root, 0)]
    while stack:
        node, depth = stack.pop()
        mark = "" if node.children else f"  {status(node)}"
        note = f"  ({node.note})" if node.note else ""
        lines.append(f"{'  ' * min(depth, 30)}{node.rule:<8} {node.show().text()}{mark}{note}")
        # A single premise stays on the same level: only branching indents.
        deeper = depth + 1 if len(node.children) > 1 else depth
        stack.extend((child, deeper) for child in reversed(node.children))
    return lines


def html_page(root: Node, title: str, headline: str, extra: list[str]) -> str:
    """A page of nested, foldable steps; no script, nothing fetched."""
    out = [
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>",
        f"<title>{html.escape(title)}</title>",
        "<style>body{font:15px/1.5 sans-serif;margin:2em}code{font-family:monospace}",
        "details,.leaf{margin-left:1.2em;border-left:1px solid #bbb;padding-left:.6em}",
        ".rule{color:#555;font-variant:small-caps}.closed{color:#060}.open{color:#b00}</style></head><body>",
        f"<h1>{html.escape(title)}</h1><p><strong>{html.escape(headline)}</strong></p>",
    ]
    out += [f"<p>{html.escape(line)}</p>" for line in extra]
    stack: list[Node | str] = [root]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            out.append(item)
            continue
        sequent = html.escape(item.show().text())
        rule = f"<span class='rule'>{html.escape(item.rule)}</span>"
        if not item.children:
            kind = "closed" if item.closed else "open"
            note = f" <em>{html.escape(item.note)}</em>" if item.note else ""
            out.append(f"<div class='leaf {kind}'>{rule} <code>{sequent}</code> {status(item)}{note}</div>")
            continue
        out.append(f"<details open><summary>{rule} <code>{sequent}</code></summary>")
        stack.append("</details>")
        stack.extend(reversed(item.children))
    out.append("</body></html>")
    return "\n".join(out) + "\n"


def latex_document(root: Node, title: str) -> str:
    """A document for bussproofs; rules with more than five premises do not occur."""
    body: list[str] = []
    stack: list[tuple[Node, bool]] = [(root, False)]
    while stack:
        node, done = stack.pop()
        if not done:
            stack.append((node, True))
            stack.extend((child, False) for child in reversed(node.children))
            continue
        sequent = node.show().text(LATEX)
        rule = _RULES_LATEX.get(node.rule, node.rule.replace("_", r"\_"))
        if node.rule.startswith("bound"):
            rule = rf"\mathrm{{{node.rule.replace(' ', '~')}}}"
        if not node.children:
            body.append(_LEAVES_LATEX[node.closed])
        body.append(rf"\RightLabel{{$\scriptstyle {rule}$}}")
        inference = {0: "Unary", 1: "Unary", 2: "Binary", 3: "Trinary", 4: "Quaternary"}[len(node.children)]
        body.append(rf"\{inference}InfC{{${sequent}$}}")
    return "\n".join(
        [
            r"\documentclass[border=5pt]{standalone}",
            r"\usepackage{amsmath,amssymb,bussproofs}",
            rf"% {title}",
            r"\begin{document}",
            *body,
            r"\DisplayProof",
            r"\end{document}",
            "",
        ]
    )
