"""One HTML file with everything in it: script, style and data. It opens offline and talks to nobody.

The content security policy allows exactly the script and the style in the file, by their hashes. The data is a block
of JSON that no browser executes; characters that could end the block are escaped, and the script reads it as text.
"""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files
from typing import Any

from mcveto.errors import UsageError
from mcveto.report.json_file import encodable

_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
MISSING = "the pages' front end is not built"
HOW = "run `make web` (it needs node and npm), then try again; --json and --report-data work without it"


def require_front_end() -> None:
    """Refuses to go on without the script and style that `make web` builds."""
    _front_end()


def _front_end() -> tuple[str, str]:
    folder = files("mcveto.viewer") / "assets"
    try:
        return (folder / "viewer.js").read_text(encoding="utf-8"), (folder / "viewer.css").read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        raise UsageError(MISSING, HOW) from None


def html_text(pages: dict[str, Any]) -> str:
    script, style = _front_end()
    for content, end in ((script, "</script"), (style, "</style")):
        if end in content.lower() or "<!--" in content:
            raise UsageError(f"the pages' front end contains {end}", "run `make web` again")
    name = pages["subject"]["name"]
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy(script, style)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>{_text(f"{pages['verdict']['kind']}: {name} - mcveto")}</title>
<style>{style}</style>
</head>
<body>
<noscript>These pages need JavaScript, which is all in this file.</noscript>
<div id="app"></div>
<script type="application/json" id="pages">{json_text(pages)}</script>
<script>{script}</script>
</body>
</html>
"""


def policy(script: str, style: str) -> str:
    return (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(content: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"


def json_text(pages: dict[str, Any]) -> str:
    """The data as JSON that can stand inside a script element."""
    import msgspec

    text = msgspec.json.encode(encodable(pages)).decode()
    return "".join(_ESCAPES.get(character, character) for character in text)


def _text(text: str) -> str:
    from html import escape

    return escape("".join(character if character.isprintable() else "?" for character in text))
