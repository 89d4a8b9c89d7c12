def pretty(t):
    return f"<{t.op} {t.width} {t.data}>"
