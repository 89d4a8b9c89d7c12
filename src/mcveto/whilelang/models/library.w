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
  going := 1;
  while (going = 1) {
    c := Mem(s);
    s := s + 1;
    going := 0;
    if (begun = 0 && (c = 32 || 9 <= c && c <= 13 || c = 43 || c = 45)) { going := 1 }
    if (begun = 0 && c = 45) { negative := 1 }
    if (48 <= c && c <= 57) { r := r * 10 + (c - 48); going := 1 }
    if (c = 43 || c = 45 || 48 <= c && c <= 57) { begun := 1 }
  }
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

proc read_text(s) {
  c := Mem(s);
  while (c != 0) { s := s + 1; c := Mem(s) }
}

# What printing does to memory: the format is read, and what %s points to (up to its precision). Arguments are words;
# what is not certain to be one makes the following ones uncertain (known := 0), and a %s that is uncertain is
# unsupported.
proc consume(format, a, b, c, d) {
  known := 1;
  k := 0;
  f := Mem(format);
  while (f != 0) {
    if (f = 37) {
      format := format + 1;
      f := Mem(format);
      long := 0;
      precise := 0;
      most := 0;
      while (32 <= f && f <= 57 && f != 37 && f != 42 || f = 104 || f = 108 || f = 122) {
        if (precise = 1 && 48 <= f && f <= 57) { most := most * 10 + (f - 48) }
        if (f = 46) { precise := 1 }
        if (f = 108) { long := long + 1 }
        format := format + 1;
        f := Mem(format)
      }
      if (f != 37) {
        if (f = 115) {
          if (known = 0 || long != 0 || k > 3) { x := unsupported() }
          v := a;
          if (k = 1) { v := b }
          if (k = 2) { v := c }
          if (k = 3) { v := d }
          if (precise = 1) { x := strnlen(v, most) } else { read_text(v) }
        } else {
          if (f = 110 || f = 42 || f = 0) { x := unsupported() }
          if (f != 99 && f != 100 && f != 105 && f != 117 && f != 120 && f != 88 && f != 111 && f != 112) { known := 0 }
          if (long > 1) { known := 0 }
        }
        k := k + 1
      }
    }
    format := format + 1;
    f := Mem(format)
  }
}

proc unsupported() returns r {
  zero := 0;
  r := 1 / zero;
}

proc printf(format, a, b, c, d) returns r {
  consume(format, a, b, c, d);
  r := input();
}

proc fprintf(stream, format, a, b, c, d) returns r {
  consume(format, a, b, c, d);
  r := input();
}

# Text into a buffer of `room` bytes, as snprintf does it: what does not fit is only counted.
proc format_text(dst, room, format, a, b, c, d) returns r {
  k := 0;
  f := Mem(format);
  while (f != 0) {
    if (f != 37) {
      if (r + 1 < room) { Mem(dst + r) := f }
      r := r + 1
    } else {
      format := format + 1;
      f := Mem(format);
      if (f = 37) {
        if (r + 1 < room) { Mem(dst + r) := f }
        r := r + 1
      } else {
        left := 0;
        fill := 32;
        width := 0;
        precise := 0;
        most := -1;
        mask := 4294967295;
        while (f = 45 || f = 48) {
          if (f = 45) { left := 1 } else { fill := 48 }
          format := format + 1;
          f := Mem(format)
        }
        while (48 <= f && f <= 57) { width := width * 10 + (f - 48); format := format + 1; f := Mem(format) }
        if (f = 46) {
          precise := 1;
          most := 0;
          format := format + 1;
          f := Mem(format);
          while (48 <= f && f <= 57) { most := most * 10 + (f - 48); format := format + 1; f := Mem(format) }
        }
        long := 0;
        if (f = 108) { long := 1; mask := -1; format := format + 1; f := Mem(format) }
        if (k > 3) { x := unsupported() }
        v := a;
        if (k = 1) { v := b }
        if (k = 2) { v := c }
        if (k = 3) { v := d }
        k := k + 1;
        if (f = 115 || f = 99) {
          if (long = 1 || fill = 48) { x := unsupported() }
          n := 1;
          if (f = 115 && width != 0) { n := strnlen(v, most) }
        } else {
          if (precise = 1) { x := unsupported() }
          minus := 0;
          base := 10;
          if (f = 120) { base := 16 } else { if (f != 100 && f != 105 && f != 117) { x := unsupported() } }
          v := v & mask;
          if ((f = 100 || f = 105) && v > mask >> 1) { v := -v & mask; minus := 1 }
          p := 1;
          n := 1 + minus;
          while (v / p >= base) { p := p * base; n := n + 1 }
          if (fill = 48 && left = 0) {
            if (minus = 1) {
              if (r + 1 < room) { Mem(dst + r) := 45 }
              r := r + 1;
              minus := 0
            }
          } else { fill := 32 }
        }
        if (left = 0) {
          while (n < width) {
            if (r + 1 < room) { Mem(dst + r) := fill }
            r := r + 1;
            width := width - 1
          }
        }
        if (f = 115) {
          if (most != 0) { t := Mem(v) } else { t := 0 }
          while (t != 0) {
            if (r + 1 < room) { Mem(dst + r) := t }
            r := r + 1;
            v := v + 1;
            most := most - 1;
            if (most != 0) { t := Mem(v) } else { t := 0 }
          }
        } else { if (f = 99) {
          if (r + 1 < room) { Mem(dst + r) := v & 255 }
          r := r + 1
        } else {
          if (minus = 1) {
            if (r + 1 < room) { Mem(dst + r) := 45 }
            r := r + 1
          }
          while (p != 0) {
            t := 48 + v / p % base;
            if (t > 57) { t := t + 39 }
            if (r + 1 < room) { Mem(dst + r) := t }
            r := r + 1;
            p := p / base
          }
        } }
        while (n < width) {
          if (r + 1 < room) { Mem(dst + r) := 32 }
          r := r + 1;
          width := width - 1
        }
      }
    }
    format := format + 1;
    f := Mem(format)
  }
  if (room != 0) {
    if (r < room) { Mem(dst + r) := 0 } else { Mem(dst + (room - 1)) := 0 }
  }
}

proc sprintf(dst, format, a, b, c, d) returns r {
  r := format_text(dst, -1, format, a, b, c, d);
}

proc snprintf(dst, room, format, a, b, c, d) returns r {
  r := format_text(dst, room, format, a, b, c, d);
}

proc unknown_word() returns r {
  low := input();
  r := input();
  r := r * 65536 + low;
}

# A conversion may fail, which ends the scan: where the input ends (0; before the first conversion the result is -1), or
# because something else is there (65535; not for %s and %c, which take anything). Text is read up to white space (%s) or
# to the end of the line (%[^\n]), or as far as its width says.
proc scan(format, a, b, c) returns r {
  k := 0;
  f := Mem(format);
  while (f != 0) {
    if (f = 37) {
      format := format + 1;
      f := Mem(format);
      n := 0;
      while (48 <= f && f <= 57) { n := n * 10 + (f - 48); format := format + 1; f := Mem(format) }
      if (n = 0) { n := -1 } else { if (f != 115 && f != 91) { x := unsupported() } }
      long := 0;
      if (f = 108) { long := 1; format := format + 1; f := Mem(format) }
      v := input();
      if (v = 0 || v = 65535 && f != 115 && f != 99) {
        if (v = 0 && r = 0) { r := -1 }
        f := 0
      } else {
        if (k > 2) { x := unsupported() }
        p := a;
        if (k = 1) { p := b }
        if (k = 2) { p := c }
        k := k + 1;
        if (f = 100 || f = 117 || f = 120) {
          v := unknown_word();
          if (long = 1 && word_bytes = 8) {
            high := unknown_word();
            store_word(p, (high << 4 * word_bytes) + v)
          } else { if (big_endian = 1) {
            Mem(p) := v >> 24 & 255;
            Mem(p + 1) := v >> 16 & 255;
            Mem(p + 2) := v >> 8 & 255;
            Mem(p + 3) := v & 255
          } else {
            Mem(p) := v & 255;
            Mem(p + 1) := v >> 8 & 255;
            Mem(p + 2) := v >> 16 & 255;
            Mem(p + 3) := v >> 24 & 255
          } }
        } else {
          if (long = 1) { x := unsupported() }
          v := input();
          v := v & 255;
          if (f = 99) { Mem(p) := v } else {
            line := 0;
            if (f = 91) {
              c1 := Mem(format + 1);
              c2 := Mem(format + 2);
              c3 := Mem(format + 3);
              if (c1 != 94 || c2 != 10 || c3 != 93) { x := unsupported() }
              format := format + 3;
              line := 1
            } else { if (f != 115) { x := unsupported() } }
            # White space before text is skipped, and an empty line is no text: the first byte is another one.
            if (line = 1) { if (v = 10) { v := 97 } } else { if (v = 32 || 9 <= v && v <= 13) { v := 97 } }
            while (n != 0) {
              Mem(p) := v;
              p := p + 1;
              n := n - 1;
              if (n != 0) {
                v := input();
                v := v & 255;
                if (line = 1) { if (v = 10) { n := 0 } } else { if (v = 32 || 9 <= v && v <= 13) { n := 0 } }
              }
            }
            Mem(p) := 0
          }
        }
        r := r + 1
      }
    }
    if (f != 0) { format := format + 1; f := Mem(format) }
  }
}

proc scanf(format, a, b, c) returns r {
  r := scan(format, a, b, c);
}

proc fscanf(stream, format, a, b, c) returns r {
  r := scan(format, a, b, c);
}

proc puts(s) returns r {
  read_text(s);
  r := input();
}

proc fputs(s, stream) returns r {
  read_text(s);
  r := input();
}

proc fputc(c, stream) returns r {
  r := c & 255;
}

proc fgetc(stream) returns r {
  r := getchar();
}

proc fgets(s, n, stream) returns r {
  n := n & 4294967295;
  if (0 < n && n < 2147483648) {
    r := s;
    while (1 < n) {
      v := getchar();
      if (v = -1) {
        n := 0;
        if (s = r) { r := 0 }
      } else {
        Mem(s) := v;
        s := s + 1;
        n := n - 1;
        if (v = 10) { n := 1 }
      }
    }
    if (r != 0) { Mem(s) := 0 }
  }
}

proc gets(s) returns r {
  r := s;
  v := getchar();
  if (v = -1) { r := 0 }
  while (v != 10 && v != -1) { Mem(s) := v; s := s + 1; v := getchar() }
  if (r != 0) { Mem(s) := 0 }
}

proc fread(s, size, n, stream) returns r {
  v := input();
  if (size != 0) {
    if (v < n) { r := v } else { r := n }
    i := 0;
    while (i < r * size) { v := input(); Mem(s + i) := v & 255; i := i + 1 }
  }
}

proc fwrite(s, size, n, stream) returns r {
  if (size != 0) {
    i := 0;
    while (i < n * size) { c := Mem(s + i); i := i + 1 }
    r := n
  }
}

proc fflush(stream) returns r {
  r := 0;
}

proc strnlen(s, n) returns r {
  go := 1;
  while (go != 0) {
    if (r = n) { go := 0 } else {
      c := Mem(s + r);
      if (c = 0) { go := 0 } else { r := r + 1 }
    }
  }
}

proc strncat(dst, src, n) returns r {
  r := dst;
  m := strlen(dst);
  dst := dst + m;
  i := 0;
  while (i < n) {
    c := Mem(src + i);
    if (c = 0) { n := i } else { Mem(dst + i) := c; i := i + 1 }
  }
  Mem(dst + i) := 0;
}

proc strrchr(s, c) returns r {
  c := c & 255;
  go := 1;
  while (go != 0) {
    v := Mem(s);
    if (v = c) { r := s }
    if (v = 0) { go := 0 }
    s := s + 1
  }
}

proc memchr(s, c, n) returns r {
  c := c & 255;
  while (n != 0) {
    v := Mem(s);
    if (v = c) { r := s; n := 0 } else { s := s + 1; n := n - 1 }
  }
}

proc strstr(s, t) returns r {
  go := 1;
  while (go != 0) {
    i := 0;
    b := Mem(t);
    a := b;
    while (b != 0 && a = b) {
      a := Mem(s + i);
      if (a = b) { i := i + 1; b := Mem(t + i); a := b }
    }
    if (b = 0) { r := s; go := 0 } else {
      a := Mem(s);
      if (a = 0) { go := 0 }
      s := s + 1
    }
  }
}

proc abs(n) returns r {
  r := n & 4294967295;
  if (r >= 2147483648) { r := -r & 4294967295 }
}

proc toupper(c) returns r {
  r := c & 4294967295;
  if (97 <= r && r <= 122) { r := r - 32 }
}

proc tolower(c) returns r {
  r := c & 4294967295;
  if (65 <= r && r <= 90) { r := r + 32 }
}

proc isdigit(c) returns r {
  c := c & 4294967295;
  if (48 <= c && c <= 57) { r := 1 }
}

proc isspace(c) returns r {
  c := c & 4294967295;
  if (c = 32 || 9 <= c && c <= 13) { r := 1 }
}

proc isalpha(c) returns r {
  c := c & 4294967295;
  if (65 <= c && c <= 90 || 97 <= c && c <= 122) { r := 1 }
}

proc isalnum(c) returns r {
  c := c & 4294967295;
  if (48 <= c && c <= 57 || 65 <= c && c <= 90 || 97 <= c && c <= 122) { r := 1 }
}

proc isupper(c) returns r {
  c := c & 4294967295;
  if (65 <= c && c <= 90) { r := 1 }
}

proc islower(c) returns r {
  c := c & 4294967295;
  if (97 <= c && c <= 122) { r := 1 }
}

proc isxdigit(c) returns r {
  c := c & 4294967295;
  if (48 <= c && c <= 57 || 65 <= c && c <= 70 || 97 <= c && c <= 102) { r := 1 }
}

proc isprint(c) returns r {
  c := c & 4294967295;
  if (32 <= c && c <= 126) { r := 1 }
}

proc ispunct(c) returns r {
  c := c & 4294967295;
  if (33 <= c && c <= 47 || 58 <= c && c <= 64 || 91 <= c && c <= 96 || 123 <= c && c <= 126) { r := 1 }
}

proc iscntrl(c) returns r {
  c := c & 4294967295;
  if (c <= 31 || c = 127) { r := 1 }
}

proc labs(n) returns r {
  r := n;
  if (n > 0 - 1 >> 1) { r := -n }
}

proc bzero(dst, n) {
  x := memset(dst, 0, n);
}

proc stpcpy(dst, src) returns r {
  c := 1;
  r := dst - 1;
  while (c != 0) { c := Mem(src); r := r + 1; Mem(r) := c; src := src + 1 }
}

proc mempcpy(dst, src, n) returns r {
  r := memcpy(dst, src, n);
  r := dst + n;
}

proc strdup(s) returns r {
  n := strlen(s);
  r := malloc(n + 1);
  if (r != 0) { x := memcpy(r, s, n + 1) }
}

proc strndup(s, n) returns r {
  n := strnlen(s, n);
  r := malloc(n + 1);
  if (r != 0) {
    x := memcpy(r, s, n);
    Mem(r + n) := 0
  }
}

# Whether the byte c is in the text t.
proc is_among(c, t) returns r {
  v := Mem(t);
  while (v != 0) {
    if (v = c) { r := 1; v := 0 } else { t := t + 1; v := Mem(t) }
  }
}

proc strspn(s, t) returns r {
  c := Mem(s);
  while (c != 0) {
    found := is_among(c, t);
    if (found = 1) { r := r + 1; c := Mem(s + r) } else { c := 0 }
  }
}

proc strcspn(s, t) returns r {
  c := Mem(s);
  while (c != 0) {
    found := is_among(c, t);
    if (found = 0) { r := r + 1; c := Mem(s + r) } else { c := 0 }
  }
}

proc strpbrk(s, t) returns r {
  n := strcspn(s, t);
  c := Mem(s + n);
  if (c != 0) { r := s + n }
}

proc strncasecmp(s, t, n) returns r {
  i := 0;
  while (i < n) {
    a := Mem(s + i);
    b := Mem(t + i);
    a := tolower(a);
    b := tolower(b);
    r := a - b;
    if (a != b || a = 0) { i := n } else { i := i + 1 }
  }
}

proc strcasecmp(s, t) returns r {
  r := strncasecmp(s, t, -1);
}

# A number of any base in text, at most `limit` (one more if negative); `wraps` if a minus sign only negates it.
proc parse_number(s, end, base, limit, wraps) returns r {
  start := s;
  negative := 0;
  c := Mem(s);
  while (c = 32 || 9 <= c && c <= 13) { s := s + 1; c := Mem(s) }
  if (c = 43 || c = 45) {
    if (c = 45) { negative := 1 }
    s := s + 1;
    c := Mem(s)
  }
  if (base > 36 || base = 1) { x := unsupported() }
  if (c = 48 && (base = 0 || base = 16)) {
    x1 := Mem(s + 1);
    if (x1 = 120 || x1 = 88) {
      x2 := Mem(s + 2);
      if (48 <= x2 && x2 <= 57 || 65 <= x2 && x2 <= 70 || 97 <= x2 && x2 <= 102) { base := 16; s := s + 2; c := x2 }
    }
    if (base = 0) { base := 8 }
  }
  if (base = 0) { base := 10 }
  if (negative = 1 && wraps = 0) { limit := limit + 1 }
  cut := limit / base;
  last := limit % base;
  too_large := 0;
  going := 1;
  while (going = 1) {
    digit := 99;
    if (48 <= c && c <= 57) { digit := c - 48 }
    if (97 <= c && c <= 122) { digit := c - 87 }
    if (65 <= c && c <= 90) { digit := c - 55 }
    if (digit < base) {
      if (r > cut || r = cut && digit > last) { too_large := 1 }
      r := r * base + digit;
      s := s + 1;
      c := Mem(s);
      start := s
    } else { going := 0 }
  }
  if (too_large = 1) { r := limit }
  if (negative = 1 && (too_large = 0 || wraps = 0)) { r := -r }
  if (end != 0) { store_word(end, start) }
}

proc strtol(s, end, base) returns r {
  r := parse_number(s, end, base & 4294967295, 0 - 1 >> 1, 0);
}

proc strtoul(s, end, base) returns r {
  r := parse_number(s, end, base & 4294967295, 0 - 1, 1);
}

# Since C23 a binary number may begin with 0b.
proc __isoc23_strtol(s, end, base) returns r {
  if (base = 0 || base = 2) { x := unsupported() }
  r := strtol(s, end, base);
}

proc __isoc23_strtoul(s, end, base) returns r {
  if (base = 0 || base = 2) { x := unsupported() }
  r := strtoul(s, end, base);
}

proc atol(s) returns r {
  r := parse_number(s, 0, 10, 0 - 1 >> 1, 0);
}

proc sleep(seconds) returns r {
  r := 0;
}

proc usleep(microseconds) returns r {
  r := 0;
}

proc perror(s) {
  if (s != 0) { read_text(s) }
}

proc rand() returns r {
  r := unknown_word();
  r := r & 2147483647;
}

proc srand(seed) {
  seed := 0;
}

proc time(at) returns r {
  r := unknown_word();
  r := r & 2147483647;
  if (at != 0) {
    i := 0;
    while (i < word_bytes) {
      if (big_endian = 1) { Mem(at + (word_bytes - 1 - i)) := r >> 8 * i & 255 } else { Mem(at + i) := r >> 8 * i & 255 }
      i := i + 1
    }
  }
}

# The time in 64 bits, as C libraries of 32-bit machines give it.
proc __time64(at) returns r {
  r := unknown_word();
  r := r & 2147483647;
  if (at != 0) {
    i := 0;
    while (i < 8) {
      v := 0;
      if (i < 4) { v := r >> 8 * i & 255 }
      if (big_endian = 1) { Mem(at + (7 - i)) := v } else { Mem(at + i) := v }
      i := i + 1
    }
  }
}

# Where the tables of characters are that the macros of glibc look into: a cell with the address of the entry of 0.
proc __ctype_b_loc() returns r {
  r := ctype_tables;
}

proc __ctype_toupper_loc() returns r {
  r := ctype_tables + word_bytes;
}

proc __ctype_tolower_loc() returns r {
  r := ctype_tables + 2 * word_bytes;
}

# The checked forms that compilers call with -D_FORTIFY_SOURCE: `size` is what the compiler knows of the destination.
proc __memcpy_chk(dst, src, n, size) returns r {
  assert(n <= size);
  r := memcpy(dst, src, n);
}

proc __memmove_chk(dst, src, n, size) returns r {
  assert(n <= size);
  r := memmove(dst, src, n);
}

proc __memset_chk(dst, c, n, size) returns r {
  assert(n <= size);
  r := memset(dst, c, n);
}

proc __strcpy_chk(dst, src, size) returns r {
  n := strlen(src);
  assert(n < size);
  r := strcpy(dst, src);
}

proc __strncpy_chk(dst, src, n, size) returns r {
  assert(n <= size);
  r := strncpy(dst, src, n);
}

proc __strcat_chk(dst, src, size) returns r {
  n := strlen(dst);
  m := strlen(src);
  assert(n + m < size);
  r := strcat(dst, src);
}

proc __strncat_chk(dst, src, n, size) returns r {
  m := strlen(dst);
  k := strnlen(src, n);
  assert(m + k < size);
  r := strncat(dst, src, n);
}

proc __sprintf_chk(dst, flag, size, format, a, b, c, d) returns r {
  r := format_text(dst, size, format, a, b, c, d);
  assert(r < size);
}

proc __snprintf_chk(dst, room, flag, size, format, a, b, c, d) returns r {
  assert(room <= size);
  r := format_text(dst, room, format, a, b, c, d);
}

proc __fgets_chk(s, size, n, stream) returns r {
  r := fgets(s, n, stream);
}

proc __printf_chk(flag, format, a, b, c, d) returns r {
  consume(format, a, b, c, d);
  r := input();
}

proc __fprintf_chk(stream, flag, format, a, b, c, d) returns r {
  consume(format, a, b, c, d);
  r := input();
}

proc __stack_chk_fail() {
  assert(0 = 1);
}
