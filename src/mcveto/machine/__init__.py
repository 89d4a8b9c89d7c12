"""How it runs: decoding, the semantics overlay, one P-code interpreter and its value domains."""
