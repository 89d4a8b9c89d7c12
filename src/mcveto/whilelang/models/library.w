# Library functions over the machine's memory: Mem(a) is the byte at address a, numbers are as wide as an address,
# input() is a number of 16 bits nobody knows. load_word and store_word are one access of an address's width.
# heap_start, heap_bytes and heap_table are constants: where the heap is, how large, and where its table is. Word 0 of
# the table is how much of the heap is in use; word 1 + k belongs to the block that starts at heap_start + 16 * k: 0 if
# there is none or it was freed, else its size + 1.

proc load_word(a) returns r {
  r := Mem(a) + (Mem(a + 1) << 8) + (Mem(a + 2) << 16) + (Mem(a + 3) << 24);
}

proc store_word(a, v) {
  Mem(a) := v & 255;
  Mem(a + 1) := v >> 8 & 255;
  Mem(a + 2) := v >> 16 & 255;
  Mem(a + 3) := v >> 24 & 255;
}

proc memcpy(dst, src, n) returns r {
  r := dst;
  i := 0;
  while (i < n) { Mem(dst + i) := Mem(src + i); i := i + 1 }
}

proc memmove(dst, src, n) returns r {
  r := dst;
  if (dst <= src) {
    i := 0;
    while (i < n) { Mem(dst + i) := Mem(src + i); i := i + 1 }
  } else {
    i := n;
    while (i != 0) { i := i - 1; Mem(dst + i) := Mem(src + i) }
  }
}

proc memset(dst, c, n) returns r {
  r := dst;
  c := c & 255;
  i := 0;
  while (i < n) { Mem(dst + i) := c; i := i + 1 }
}

proc memcmp(s, t, n) returns r {
  i := 0;
  while (i < n) {
    a := Mem(s + i);
    b := Mem(t + i);
    if (a != b) { r := a - b; i := n } else { i := i + 1 }
  }
}

proc strlen(s) returns r {
  c := Mem(s);
  while (c != 0) { r := r + 1; c := Mem(s + r) }
}

proc strcpy(dst, src) returns r {
  r := dst;
  i := 0;
  c := 1;
  while (c != 0) { c := Mem(src + i); Mem(dst + i) := c; i := i + 1 }
}

proc strncpy(dst, src, n) returns r {
  r := dst;
  i := 0;
  c := 1;
  while (i < n) {
    if (c != 0) { c := Mem(src + i) }
    Mem(dst + i) := c;
    i := i + 1
  }
}

proc strcat(dst, src) returns r {
  n := strlen(dst);
  s := strcpy(dst + n, src);
  r := dst;
}

proc strcmp(s, t) returns r {
  a := Mem(s);
  b := Mem(t);
  i := 0;
  while (a = b && a != 0) { i := i + 1; a := Mem(s + i); b := Mem(t + i) }
  r := a - b;
}

proc strncmp(s, t, n) returns r {
  i := 0;
  while (i < n) {
    a := Mem(s + i);
    b := Mem(t + i);
    r := a - b;
    if (a != b || a = 0) { i := n } else { i := i + 1 }
  }
}

proc strchr(s, c) returns r {
  c := c & 255;
  go := 1;
  while (go != 0) {
    v := Mem(s);
    if (v = c) { r := s; go := 0 }
    if (v = 0) { go := 0 }
    s := s + 1
  }
}

proc atoi(s) returns r {
  c := Mem(s);
  while (c = 32 || 9 <= c && c <= 13) { s := s + 1; c := Mem(s) }
  if (c = 45) { negative := 1 }
  if (c = 43 || c = 45) { s := s + 1; c := Mem(s) }
  while (48 <= c && c <= 57) { r := r * 10 + (c - 48); s := s + 1; c := Mem(s) }
  if (negative = 1) { r := -r }
}

proc malloc(n) returns r {
  used := load_word(heap_table);
  size := n + 16 & ~15;
  if (n < heap_bytes && size <= heap_bytes - used) {
    r := heap_start + used;
    store_word(heap_table, used + size);
    store_word(heap_table + (used / 16 + 1) * word_bytes, n + 1)
  }
}

proc block_size(p) returns r {
  offset := p - heap_start;
  assert(offset < heap_bytes && (offset & 15) = 0);
  r := load_word(heap_table + (offset / 16 + 1) * word_bytes);
  assert(r != 0);
  r := r - 1;
}

proc free(p) {
  if (p != 0) {
    n := block_size(p);
    store_word(heap_table + ((p - heap_start) / 16 + 1) * word_bytes, 0)
  }
}

proc calloc(n, size) returns r {
  total := n * size;
  if (n = 0) { r := malloc(0) } else {
    if (total / n = size) {
      r := malloc(total);
      if (r != 0) { x := memset(r, 0, total) }
    }
  }
}

proc realloc(p, n) returns r {
  if (p = 0) { r := malloc(n) } else {
    old := block_size(p);
    if (n = 0) { free(p) } else {
      r := malloc(n);
      if (r != 0) {
        if (old > n) { old := n }
        x := memcpy(r, p, old);
        free(p)
      }
    }
  }
}

proc getchar() returns r {
  v := input();
  r := v & 255;
  if (v >= 65280) { r := -1 }
}

proc read(fd, buffer, n) returns r {
  v := input();
  if (v < n) { r := v } else { r := n }
  i := 0;
  while (i < r) { v := input(); Mem(buffer + i) := v & 255; i := i + 1 }
}

proc putchar(c) returns r {
  r := c & 255;
}

proc write(fd, buffer, n) returns r {
  i := 0;
  while (i < n) { c := Mem(buffer + i); i := i + 1 }
  r := n;
}

proc printf(format) returns r {
  c := Mem(format);
  while (c != 0) { format := format + 1; c := Mem(format) }
  r := input();
}
