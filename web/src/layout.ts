// Layered drawing of directed graphs (Sugiyama, Tagawa, Toda 1981): cycles are cut by depth-first search, layers are
// longest paths, the order within a layer is by barycentres, and places are the least-squares fit to the neighbours
// that keeps the order (isotonic regression). All steps are near-linear, so that 5,000 nodes take well under a second.
// Long edges get a bend in every layer they cross, as long as there are not too many of them.

export interface LayoutNode { width: number; height: number }
export interface LayoutEdge { from: number; to: number }
export interface Placed { x: number[]; y: number[]; paths: [number, number][][]; width: number; height: number }

const GAP_X = 28;
const GAP_Y = 46;
const BEND_WIDTH = 2;
const BEND_GAP = 9;
const MAX_BENDS = 30_000;
const LONGEST_BENT = 60;

export function layered(nodes: LayoutNode[], edges: LayoutEdge[], roots: number[]): Placed {
  const count = nodes.length;
  const out: number[][] = nodes.map(() => []);
  edges.forEach((edge, number) => out[edge.from]!.push(number));
  const reversed = backEdges(count, edges, out, roots);
  const source = (e: number): number => (reversed[e] ? edges[e]!.to : edges[e]!.from);
  const target = (e: number): number => (reversed[e] ? edges[e]!.from : edges[e]!.to);
  const layer = layers(count, edges.length, source, target);

  // Real nodes first, then bends; `chains` are the places an edge passes, from top to bottom.
  const widths = nodes.map((node) => node.width);
  const heights = nodes.map((node) => node.height);
  const layerOf = layer.slice();
  const down: number[][] = nodes.map(() => []);
  const up: number[][] = nodes.map(() => []);
  const chains: number[][] = [];
  let bends = 0;
  for (let e = 0; e < edges.length; e++) {
    const from = source(e), to = target(e);
    const chain = [from];
    const span = layer[to]! - layer[from]!;
    if (from !== to && span > 1 && span <= LONGEST_BENT && bends + span < MAX_BENDS) {
      for (let at = layer[from]! + 1; at < layer[to]!; at++) {
        chain.push(widths.length);
        widths.push(BEND_WIDTH);
        heights.push(0);
        layerOf.push(at);
        down.push([]);
        up.push([]);
        bends++;
      }
    }
    chain.push(to);
    chains.push(chain);
    for (let i = 0; i + 1 < chain.length; i++) {
      if (chain[i] !== chain[i + 1]) {
        down[chain[i]!]!.push(chain[i + 1]!);
        up[chain[i + 1]!]!.push(chain[i]!);
      }
    }
  }
  const rows: number[][] = [];
  layerOf.forEach((at, node) => (rows[at] ??= []).push(node));
  order(rows, up, down, widths.length > 8000 ? 4 : 10);
  const x = places(rows, widths, up, down);

  const y: number[] = new Array<number>(widths.length).fill(0);
  let top = 0;
  for (const row of rows) {
    const tallest = Math.max(...row.map((node) => heights[node]!), 0);
    for (const node of row) y[node] = top + tallest / 2;
    top += tallest + GAP_Y;
  }
  const paths = edges.map((edge, e): [number, number][] => {
    const chain = chains[e]!;
    if (edge.from === edge.to) {
      const right = x[edge.from]! + widths[edge.from]! / 2, middle = y[edge.from]!;
      return [[right, middle - 6], [right + 16, middle - 6], [right + 16, middle + 6], [right, middle + 6]];
    }
    const points = chain.map((node): [number, number] => [x[node]!, y[node]!]);
    const first = chain[0]!, last = chain[chain.length - 1]!;
    points[0] = [x[first]!, y[first]! + heights[first]! / 2];
    points[points.length - 1] = [x[last]!, y[last]! - heights[last]! / 2];
    if (!reversed[e]) return points;
    // Backwards: a little to the right, so that it does not lie on an edge forwards between the same nodes.
    const aside = Math.min(22, widths[first]! / 4, widths[last]! / 4);
    points[0]![0] += aside;
    points[points.length - 1]![0] += aside;
    return points.reverse();
  });
  let width = 0;
  for (let node = 0; node < widths.length; node++) width = Math.max(width, x[node]! + widths[node]! / 2);
  return { x: x.slice(0, count), y: y.slice(0, count), paths, width, height: Math.max(0, top - GAP_Y) };
}

function backEdges(count: number, edges: LayoutEdge[], out: number[][], roots: number[]): boolean[] {
  const reversed = new Array<boolean>(edges.length).fill(false);
  const state = new Uint8Array(count); // 0 new, 1 on the path, 2 done
  const next = new Int32Array(count);
  const starts = [...roots, ...Array.from({ length: count }, (_, node) => node)];
  for (const start of starts) {
    if (state[start] !== 0) continue;
    const stack = [start];
    state[start] = 1;
    while (stack.length) {
      const node = stack[stack.length - 1]!;
      const edge = out[node]![next[node]!++];
      if (edge === undefined) {
        state[node] = 2;
        stack.pop();
        continue;
      }
      const to = edges[edge]!.to;
      if (state[to] === 1) reversed[edge] = to !== node;
      else if (state[to] === 0) {
        state[to] = 1;
        stack.push(to);
      }
    }
  }
  return reversed;
}

function layers(count: number, edgeCount: number, source: (e: number) => number, target: (e: number) => number):
  number[] {
  const waiting = new Int32Array(count);
  const out: number[][] = Array.from({ length: count }, () => []);
  for (let e = 0; e < edgeCount; e++) {
    if (source(e) !== target(e)) {
      waiting[target(e)]!++;
      out[source(e)]!.push(target(e));
    }
  }
  const layer = new Array<number>(count).fill(0);
  const ready: number[] = [];
  for (let node = 0; node < count; node++) if (waiting[node] === 0) ready.push(node);
  for (let at = 0; at < ready.length; at++) {
    const node = ready[at]!;
    for (const to of out[node]!) {
      layer[to] = Math.max(layer[to]!, layer[node]! + 1);
      if (--waiting[to]! === 0) ready.push(to);
    }
  }
  return layer;
}

function order(rows: number[][], up: number[][], down: number[][], sweeps: number): void {
  const place: number[] = [];
  for (const row of rows) row.forEach((node, at) => (place[node] = at));
  for (let sweep = 0; sweep < sweeps; sweep++) {
    const downwards = sweep % 2 === 0;
    const neighbours = downwards ? up : down;
    for (let i = 1; i < rows.length; i++) {
      const row = rows[downwards ? i : rows.length - 1 - i]!;
      const centre = new Map<number, number>();
      for (const node of row) {
        const near = neighbours[node]!;
        let sum = 0;
        for (const other of near) sum += place[other]!;
        centre.set(node, near.length ? sum / near.length : place[node]!);
      }
      row.sort((a, b) => centre.get(a)! - centre.get(b)! || place[a]! - place[b]!);
      row.forEach((node, at) => (place[node] = at));
    }
  }
}

function places(rows: number[][], widths: number[], up: number[][], down: number[][]): number[] {
  const x: number[] = new Array<number>(widths.length).fill(0);
  for (const row of rows) {
    let at = 0;
    for (const node of row) {
      x[node] = at + widths[node]! / 2;
      at += widths[node]! + gap(widths[node]!, GAP_X);
    }
    for (const node of row) x[node]! -= at / 2;
  }
  for (let sweep = 0; sweep < 8; sweep++) {
    const downwards = sweep % 2 === 0;
    for (let i = 0; i < rows.length; i++) {
      const row = rows[downwards ? i : rows.length - 1 - i]!;
      const wanted = row.map((node) => {
        const near = downwards ? up[node]! : down[node]!;
        if (!near.length) return x[node]!;
        let sum = 0;
        for (const other of near) sum += x[other]!;
        return sum / near.length;
      });
      fit(row, wanted, widths, x);
    }
  }
  let left = Infinity;
  for (let node = 0; node < widths.length; node++) left = Math.min(left, x[node]! - widths[node]! / 2);
  return x.map((value) => value - left);
}

function gap(left: number, right: number): number {
  return left === BEND_WIDTH || right === BEND_WIDTH ? BEND_GAP : GAP_X;
}

// The places closest to those wanted that keep order and distances: pools of neighbours that would overlap move together.
function fit(row: number[], wanted: number[], widths: number[], x: number[]): void {
  const offset: number[] = [];
  row.forEach((node, at) => {
    offset.push(at === 0 ? 0 : offset[at - 1]! + (widths[row[at - 1]!]! + widths[node]!) / 2
      + gap(widths[row[at - 1]!]!, widths[node]!));
  });
  const pools: { sum: number; size: number }[] = [];
  row.forEach((_, at) => {
    let pool = { sum: wanted[at]! - offset[at]!, size: 1 };
    while (pools.length) {
      const before = pools[pools.length - 1]!;
      if (before.sum / before.size <= pool.sum / pool.size) break;
      pools.pop();
      pool = { sum: before.sum + pool.sum, size: before.size + pool.size };
    }
    pools.push(pool);
  });
  let at = 0;
  for (const pool of pools) {
    for (let i = 0; i < pool.size; i++, at++) x[row[at]!] = pool.sum / pool.size + offset[at]!;
  }
}
