// A graph on a canvas: pan, zoom, selection, keyboard. Only what is in view is drawn, with less detail from afar.

import { h, visible } from "./dom";
import { layered, Placed } from "./layout";

export interface ViewNode {
  id: string; title: string; lines: string[]; shape: "box" | "round" | "diamond";
  solid: boolean; // executed, or there: others have a dashed border
  strong: boolean; // thick border
  sign: string; // a character in the corner
}
export interface ViewEdge { from: string; to: string; label: string; dashed: boolean; strong: boolean }

const LINE = 15;
const PAD = 8;
const MAX_LINES = 12;
const MAX_CHARACTERS = 46;
const CHARACTER = 7.25;
const SMALLEST_FIT = 0.03;
const START_SCALE = 0.6;

export class GraphView {
  readonly element: HTMLElement;
  readonly canvas: HTMLCanvasElement;
  readonly status: HTMLElement;
  layoutMilliseconds = 0;
  drawMilliseconds = 0;
  selected: string | null = null;
  found = new Set<string>();
  hidden: (id: string) => boolean = () => false;
  hiddenEdge: (number: number) => boolean = () => false;
  marked = new Set<string>();
  private nodes: ViewNode[] = [];
  private edges: ViewEdge[] = [];
  private numbers = new Map<string, number>();
  private sizes: { width: number; height: number }[] = [];
  private placed: Placed = { x: [], y: [], paths: [], width: 0, height: 0 };
  private boxes: [number, number, number, number][] = [];
  private scale = 1;
  private left = 0;
  private top = 0;
  private pending = false;
  private isFitted = false;
  private root: string | null = null;
  paintedNodes = 0;

  constructor(label: string, private onSelect: (id: string) => void, private onOpen: (id: string) => void) {
    this.canvas = h("canvas", { tabindex: 0, role: "application", "aria-label": label, class: "graph" });
    this.status = h("p", { class: "quiet", role: "status", "aria-live": "polite" });
    const button = (text: string, title: string, action: () => void): HTMLElement =>
      h("button", { type: "button", title, "aria-label": title, onclick: action }, text);
    this.element = h("div", { class: "graph-box" },
      h("div", { class: "graph-tools" },
        button("+", "zoom in (+)", () => this.zoom(1.3)),
        button("−", "zoom out (−)", () => this.zoom(1 / 1.3)),
        button("fit", "show everything (0)", () => this.fit())),
      this.canvas, this.status);
    this.listen();
    new ResizeObserver(() => {
      if (!this.isFitted && this.canvas.clientWidth) this.begin();
      this.draw();
    }).observe(this.canvas);
  }

  show(nodes: ViewNode[], edges: ViewEdge[], roots: string[]): void {
    const started = performance.now();
    this.nodes = nodes;
    this.numbers = new Map(nodes.map((node, number) => [node.id, number]));
    this.edges = edges.filter((edge) => this.numbers.has(edge.from) && this.numbers.has(edge.to));
    this.sizes = nodes.map((node) => {
      const lines = shortened(node.lines);
      const longest = Math.max(cut(node.title).length + 3, ...lines.map((line) => line.length), 4);
      const diamond = node.shape === "diamond" ? 24 : 0;
      return { width: longest * CHARACTER + 2 * PAD + diamond, height: (lines.length + 1) * LINE + 2 * PAD + diamond };
    });
    const ends = this.edges.map((edge) => ({ from: this.numbers.get(edge.from)!, to: this.numbers.get(edge.to)! }));
    this.root = roots.find((root) => this.numbers.has(root)) ?? null;
    const known = roots.flatMap((root) => this.numbers.get(root) ?? []);
    this.placed = layered(this.sizes, ends, known);
    this.boxes = this.placed.paths.map((path) => {
      const xs = path.map((point) => point[0]), ys = path.map((point) => point[1]);
      return [Math.min(...xs), Math.min(...ys), Math.max(...xs), Math.max(...ys)];
    });
    this.layoutMilliseconds = performance.now() - started;
    this.isFitted = false;
    if (this.canvas.clientWidth) this.begin();
    this.draw();
  }

  get count(): number {
    return this.nodes.length;
  }

  restyle(): void {
    this.draw();
  }

  select(id: string | null, centre = true): void {
    this.selected = id;
    const number = id === null ? undefined : this.numbers.get(id);
    if (id !== null && centre) this.centre(id);
    if (number !== undefined) {
      const node = this.nodes[number]!;
      const next = this.neighbours(number, true).length, before = this.neighbours(number, false).length;
      this.status.textContent = visible(`${node.title}: ${node.lines.length} lines, ${before} in, ${next} out`);
    }
    this.draw();
  }

  centre(id: string): void {
    const number = this.numbers.get(id);
    if (number === undefined) return;
    if (this.scale < 0.55) this.scale = 0.8;
    this.left = this.placed.x[number]! - this.canvas.clientWidth / 2 / this.scale;
    this.top = this.placed.y[number]! - this.canvas.clientHeight / 2 / this.scale;
    this.isFitted = true;
    this.draw();
  }

  // The first view: everything, or the entry if from so far away there would be nothing to see.
  private begin(): void {
    this.fit();
    if (this.scale >= SMALLEST_FIT || this.root === null) return;
    this.scale = START_SCALE;
    this.centre(this.root);
    this.top = this.placed.y[this.numbers.get(this.root)!]! - 80 / this.scale;
    this.status.textContent = "Too large to be read at once: this is its beginning. Search, move with Shift and the arrows, or press 0 to see all of it.";
  }

  fit(): void {
    const width = this.canvas.clientWidth, height = this.canvas.clientHeight;
    if (!width || !this.placed.width) return;
    this.scale = Math.min(1.1, width / (this.placed.width + 40), height / (this.placed.height + 40));
    this.left = this.placed.width / 2 - width / 2 / this.scale;
    this.top = this.placed.height * this.scale < height - 40 ? -20 / this.scale
      : this.placed.height / 2 - height / 2 / this.scale;
    this.isFitted = true;
    this.draw();
  }

  zoom(factor: number, x = this.canvas.clientWidth / 2, y = this.canvas.clientHeight / 2): void {
    const scale = Math.max(0.004, Math.min(3, this.scale * factor));
    this.left += x / this.scale - x / scale;
    this.top += y / this.scale - y / scale;
    this.scale = scale;
    this.draw();
  }

  pan(x: number, y: number): void {
    this.left += x / this.scale;
    this.top += y / this.scale;
    this.draw();
  }

  draw(): void {
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame(() => {
      this.pending = false;
      const started = performance.now();
      this.paint();
      this.drawMilliseconds = performance.now() - started;
      this.canvas.dataset.drawn = String(Number(this.canvas.dataset.drawn ?? "0") + 1);
    });
  }

  private listen(): void {
    const canvas = this.canvas;
    let drag: { x: number; y: number; moved: boolean } | null = null;
    canvas.addEventListener("pointerdown", (event) => {
      drag = { x: event.clientX, y: event.clientY, moved: false };
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (!drag) return;
      const x = event.clientX - drag.x, y = event.clientY - drag.y;
      if (!drag.moved && Math.abs(x) + Math.abs(y) < 4) return;
      this.pan(-x, -y);
      drag = { x: event.clientX, y: event.clientY, moved: true };
    });
    canvas.addEventListener("pointerup", (event) => {
      const click = drag && !drag.moved;
      drag = null;
      const id = click ? this.at(event.offsetX, event.offsetY) : null;
      if (id !== null) {
        this.select(id, false);
        this.onSelect(id);
      }
    });
    canvas.addEventListener("dblclick", (event) => {
      const id = this.at(event.offsetX, event.offsetY);
      if (id !== null) this.onOpen(id);
    });
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      if (event.ctrlKey || event.metaKey || !event.shiftKey) {
        this.zoom(Math.exp(-event.deltaY / 400), event.offsetX, event.offsetY);
      } else this.pan(event.deltaX, event.deltaY);
    }, { passive: false });
    canvas.addEventListener("keydown", (event) => this.key(event));
    canvas.addEventListener("focus", () => this.draw());
    canvas.addEventListener("blur", () => this.draw());
  }

  private key(event: KeyboardEvent): void {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const moves: Record<string, () => void> = {
      "+": () => this.zoom(1.3), "=": () => this.zoom(1.3), "-": () => this.zoom(1 / 1.3), "0": () => this.fit(),
      ArrowDown: () => event.shiftKey ? this.pan(0, 80) : this.step(true),
      ArrowUp: () => event.shiftKey ? this.pan(0, -80) : this.step(false),
      ArrowRight: () => event.shiftKey ? this.pan(80, 0) : this.sibling(1),
      ArrowLeft: () => event.shiftKey ? this.pan(-80, 0) : this.sibling(-1),
      Enter: () => this.selected !== null && this.onOpen(this.selected),
    };
    const move = moves[event.key];
    if (!move) return;
    event.preventDefault();
    event.stopPropagation();
    move();
  }

  private step(forward: boolean): void {
    const at = this.selected === null ? undefined : this.numbers.get(this.selected);
    const to = at === undefined ? this.topmost() : this.neighbours(at, forward)[0];
    this.choose(to);
  }

  private sibling(by: number): void {
    const at = this.selected === null ? this.topmost() : this.numbers.get(this.selected);
    if (at === undefined) return;
    const row = this.visibleNumbers().filter((node) => this.placed.y[node] === this.placed.y[at]);
    row.sort((a, b) => this.placed.x[a]! - this.placed.x[b]!);
    this.choose(row[(row.indexOf(at) + by + row.length) % row.length]);
  }

  private choose(number: number | undefined): void {
    const node = number === undefined ? undefined : this.nodes[number];
    if (!node) return;
    this.select(node.id);
    this.onSelect(node.id);
  }

  private topmost(): number | undefined {
    return this.visibleNumbers().sort((a, b) => this.placed.y[a]! - this.placed.y[b]!)[0];
  }

  private visibleNumbers(): number[] {
    return this.nodes.map((_, number) => number).filter((number) => !this.hidden(this.nodes[number]!.id));
  }

  private neighbours(number: number, forward: boolean): number[] {
    const id = this.nodes[number]!.id;
    const found = this.edges.filter((edge, e) => !this.hiddenEdge(e) && (forward ? edge.from : edge.to) === id)
      .map((edge) => this.numbers.get(forward ? edge.to : edge.from)!);
    return found.filter((other) => !this.hidden(this.nodes[other]!.id));
  }

  private at(x: number, y: number): string | null {
    const worldX = this.left + x / this.scale, worldY = this.top + y / this.scale;
    for (let n = 0; n < this.nodes.length; n++) {
      const size = this.sizes[n]!;
      const inside = Math.abs(this.placed.x[n]! - worldX) * 2 <= size.width
        && Math.abs(this.placed.y[n]! - worldY) * 2 <= size.height;
      if (inside && !this.hidden(this.nodes[n]!.id)) return this.nodes[n]!.id;
    }
    return null;
  }

  private paint(): void {
    const width = this.canvas.clientWidth, height = this.canvas.clientHeight, ratio = window.devicePixelRatio || 1;
    if (!width) return;
    if (this.canvas.width !== Math.round(width * ratio)) this.canvas.width = Math.round(width * ratio);
    if (this.canvas.height !== Math.round(height * ratio)) this.canvas.height = Math.round(height * ratio);
    const context = this.canvas.getContext("2d")!;
    const style = getComputedStyle(this.canvas);
    const colours = new Map<string, string>();
    const colour = (name: string): string => {
      let found = colours.get(name);
      if (found === undefined) colours.set(name, found = style.getPropertyValue(name).trim());
      return found;
    };
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = colour("--canvas");
    context.fillRect(0, 0, width, height);
    context.setTransform(ratio * this.scale, 0, 0, ratio * this.scale, -this.left * this.scale * ratio,
      -this.top * this.scale * ratio);
    const right = this.left + width / this.scale, bottom = this.top + height / this.scale;
    this.paintEdges(context, right, bottom, colour);
    const withText = this.scale > 0.3;
    this.paintedNodes = 0;
    context.font = `12px ${style.getPropertyValue("--mono")}`;
    context.textBaseline = "middle";
    for (let n = 0; n < this.nodes.length; n++) {
      const size = this.sizes[n]!, x = this.placed.x[n]! - size.width / 2, y = this.placed.y[n]! - size.height / 2;
      if (x > right || y > bottom || x + size.width < this.left || y + size.height < this.top) continue;
      const node = this.nodes[n]!;
      if (this.hidden(node.id)) continue;
      this.paintedNodes++;
      this.paintNode(context, node, x, y, size, withText, colour);
    }
    this.canvas.dataset.scale = this.scale.toFixed(3);
  }

  private paintEdges(context: CanvasRenderingContext2D, right: number, bottom: number,
    colour: (name: string) => string): void {
    const coarse = this.scale < 0.12;
    const classes = new Map<string, number[]>();
    this.edges.forEach((edge, e) => {
      const [x1, y1, x2, y2] = this.boxes[e]!;
      if (x1 > right || y1 > bottom || x2 < this.left || y2 < this.top || this.hiddenEdge(e)) return;
      if (this.hidden(edge.from) || this.hidden(edge.to)) return;
      const near = this.selected !== null && (edge.from === this.selected || edge.to === this.selected);
      const key = `${edge.strong ? 1 : 0}${edge.dashed ? 1 : 0}${near ? 1 : 0}`;
      const list = classes.get(key);
      if (list) list.push(e);
      else classes.set(key, [e]);
    });
    for (const [key, list] of classes) {
      const strong = key[0] === "1", dashed = key[1] === "1", near = key[2] === "1";
      context.lineWidth = (strong || near ? 2.6 : 1.2) / Math.min(1, Math.max(this.scale, 0.3));
      context.strokeStyle = context.fillStyle = colour(near ? "--accent" : strong ? "--text" : "--line");
      context.setLineDash(dashed && !coarse ? [5, 4] : []);
      context.beginPath();
      for (const e of list) trace(context, this.placed.paths[e]!, coarse);
      context.stroke();
      if (coarse) continue;
      context.setLineDash([]);
      context.beginPath();
      for (const e of list) arrow(context, this.placed.paths[e]!);
      context.fill();
      if (this.scale > 0.5) this.paintLabels(context, list, colour);
    }
    context.setLineDash([]);
  }

  private paintLabels(context: CanvasRenderingContext2D, list: number[], colour: (name: string) => string): void {
    context.font = "11px sans-serif";
    context.fillStyle = colour("--quiet");
    for (const e of list) {
      const label = this.edges[e]!.label, path = this.placed.paths[e]!;
      if (!label) continue;
      const [x, y] = path[0]!;
      const second = path[1] ?? path[0]!;
      context.fillText(label, x + Math.sign(second[0] - x || 1) * 10 + (second[0] < x ? -28 : 0), second[1] < y ? y - 8 : y + 12);
    }
  }

  private paintNode(context: CanvasRenderingContext2D, node: ViewNode, x: number, y: number,
    size: { width: number; height: number }, withText: boolean, colour: (name: string) => string): void {
    const selected = node.id === this.selected, found = this.found.has(node.id), marked = this.marked.has(node.id);
    context.beginPath();
    if (node.shape === "diamond") {
      const middle = x + size.width / 2, half = y + size.height / 2;
      context.moveTo(middle, y);
      context.lineTo(x + size.width, half);
      context.lineTo(middle, y + size.height);
      context.lineTo(x, half);
      context.closePath();
    } else context.roundRect(x, y, size.width, size.height, node.shape === "round" ? 12 : 3);
    context.fillStyle = colour(selected ? "--select" : found ? "--found" : marked ? "--mark" : node.solid ? "--card" : "--canvas");
    context.fill();
    context.setLineDash(node.solid ? [] : [5, 4]);
    context.lineWidth = (selected ? 3.5 : node.strong || found || marked ? 2.5 : 1.2) / Math.max(0.3, Math.min(1, this.scale));
    context.strokeStyle = colour(selected ? "--accent" : found || marked || node.strong ? "--text" : "--line");
    context.stroke();
    context.setLineDash([]);
    if (!withText) return;
    const inset = node.shape === "diamond" ? 12 : 0;
    context.fillStyle = colour("--text");
    context.font = `600 12px ${colour("--mono")}`;
    const sign = found ? "⌕" : node.sign;
    context.fillText(visible((sign ? `${sign} ` : "") + cut(node.title)), x + PAD + inset, y + PAD + LINE / 2 + inset);
    context.font = `12px ${colour("--mono")}`;
    context.fillStyle = colour(node.solid ? "--text" : "--quiet");
    shortened(node.lines).forEach((line, number) => {
      context.fillText(visible(line), x + PAD + inset, y + PAD + LINE * (number + 1.5) + inset);
    });
  }
}

function trace(context: CanvasRenderingContext2D, path: [number, number][], coarse: boolean): void {
  const [x, y] = path[0]!;
  context.moveTo(x, y);
  for (let i = 1; i < path.length; i++) {
    const [px, py] = path[i - 1]!, [qx, qy] = path[i]!;
    if (coarse || path.length === 4 && path[0]![0] === path[3]![0]) context.lineTo(qx, qy);
    else context.bezierCurveTo(px, (py + qy) / 2, qx, (py + qy) / 2, qx, qy);
  }
}

function arrow(context: CanvasRenderingContext2D, path: [number, number][]): void {
  const [x, y] = path[path.length - 1]!, [, py] = path[path.length - 2]!;
  const sideways = Math.abs(py - y) < 1;
  const up = py > y;
  if (sideways) {
    context.moveTo(x, y);
    context.lineTo(x + 8, y - 4);
    context.lineTo(x + 8, y + 4);
  } else {
    const by = up ? 8 : -8;
    context.moveTo(x, y);
    context.lineTo(x - 4, y + by);
    context.lineTo(x + 4, y + by);
  }
  context.closePath();
}

function cut(text: string): string {
  return text.length > MAX_CHARACTERS ? `${text.slice(0, MAX_CHARACTERS - 1)}…` : text;
}

function shortened(lines: string[]): string[] {
  if (lines.length <= MAX_LINES) return lines.map(cut);
  const rest = lines.length - MAX_LINES + 1;
  return [...lines.slice(0, MAX_LINES - 3), `… ${rest} more …`, ...lines.slice(-2)].map(cut);
}
