"""Machine code to other languages: C in the manner of AIR (Chaki, Ivers: air-powerpc)."""
