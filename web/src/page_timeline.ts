// How the search went: its events one by one, and the graph as it was after each.

import { Pages, TimelineEvent } from "./data";
import { clear, h, plural, rovingFocus } from "./dom";
import { GraphView, ViewEdge, ViewNode } from "./graphview";
import { link, replaceRoute, Route } from "./router";
import { addressLink, COUNTED as ALL_COUNTED } from "./words";

const SIGNS: Record<string, string> = {
  begin: "●", run: "▶", split: "÷", refuted: "✂", "given up": "?", stage: "∀",
};
const NAMES: Record<string, string> = {
  begin: "begin", run: "run", split: "split", refuted: "refuted", "given up": "given up", stage: "stage",
};
const PLAY_MILLISECONDS = 700;
const { seconds: _, cpu_seconds: __, peak_rss_mb: ___, ...COUNTED } = ALL_COUNTED;

// Everything a graph ever has, with the events at which parts come and go.
interface Lifetime { nodes: Map<string, { name: string; at: string; since: number; twinOf: string | null; isStart: boolean; endsStart: number }>;
  edges: Map<string, { from: string; to: string; way: string; spans: [number, number][]; given: number }> }

export function timelinePage(pages: Pages, route: Route): HTMLElement {
  if (!pages.timeline.events.length) {
    return h("div", { class: "page narrow" }, h("h1", {}, "Timeline"), h("p", {}, pages.timeline.why_empty || "Nothing was recorded."), logTable(pages));
  }
  return new TimelinePage(pages, route).element;
}

// Of searches without a graph: what they said of themselves on the way.
function logTable(pages: Pages): HTMLElement | false {
  const log = pages.timeline.log ?? [];
  if (!log.length) return false;
  const names = Object.keys(COUNTED).filter((name) => log.some(([, , counts]) => counts[name] !== undefined));
  const head = ["after", ...names.map((name) => COUNTED[name]!), "it was at"];
  return h("section", {}, h("h2", {}, "How far the search was"),
    h("table", { class: "log" }, h("thead", {}, h("tr", {}, head.map((name) => h("th", { scope: "col" }, name)))),
      h("tbody", {}, log.map(([seconds, where, counts]) => h("tr", {}, h("td", {}, `${seconds.toFixed(1)} s`),
        names.map((name) => h("td", {}, (counts[name] ?? 0).toLocaleString("en"))), h("td", { class: "mono wide" }, where))))));
}

class TimelinePage {
  readonly element: HTMLElement;
  private events: TimelineEvent[];
  private at: number;
  private graphs = new Map<number, Lifetime>();
  private shown = -1;
  private view: GraphView;
  private slider: HTMLInputElement;
  private caption = h("div", { class: "caption", role: "status" });
  private list = h("ol", { class: "events" });
  private playButton: HTMLButtonElement;
  private timer = 0;
  private follow = h("input", { type: "checkbox" });
  private nodeList: ViewNode[] = [];
  private openSteps = new Map<string, string>();
  private edgeList: { key: string; edge: ViewEdge }[] = [];

  constructor(private pages: Pages, route: Route) {
    this.events = pages.timeline.events;
    this.replay();
    const wanted = route.detail === "" ? this.events.length - 1 : Number(route.detail) || 0;
    this.at = Math.max(0, Math.min(this.events.length - 1, wanted));
    this.view = new GraphView("the graph of the search", () => {}, (id) => {
      const node = this.lifetime()?.nodes.get(id);
      if (node) location.hash = link("code", node.at);
    });
    this.slider = h("input", { type: "range", min: 0, max: this.events.length - 1, "aria-label": "event", oninput: () => this.go(Number(this.slider.value)) });
    this.playButton = h("button", { type: "button", title: "play or pause (Space)", onclick: () => this.play() }, "▶ play");
    this.element = this.draw();
    window.addEventListener("mcveto-theme", () => this.view.draw());
    Object.assign(this.view.canvas, { mcvetoView: this.view });
    queueMicrotask(() => this.go(this.at));
  }

  private lifetime(): Lifetime | undefined {
    return this.graphs.get(this.events[this.at]![4]);
  }

  private replay(): void {
    this.events.forEach(([, , , , graph, changes], number) => {
      let life = this.graphs.get(graph);
      if (!life) {
        life = { nodes: new Map([["0", { name: "unexplored", at: "", since: number, twinOf: null, isStart: false, endsStart: Infinity }]]), edges: new Map() };
        this.graphs.set(graph, life);
      }
      for (const change of changes) this.apply(life, change, number);
    });
  }

  private apply(life: Lifetime, change: (string | number)[], number: number): void {
    const [kind, first, second] = [change[0], String(change[1]), String(change[2])];
    const open = (from: string, to: string, way: string): void => {
      const key = `${from} ${to} ${way}`;
      const edge = life.edges.get(key) ?? { from, to, way, spans: [], given: -1 };
      life.edges.set(key, edge);
      const last = edge.spans[edge.spans.length - 1];
      if (!last || last[1] !== Infinity) edge.spans.push([number, Infinity]);
    };
    const live = (edge: { spans: [number, number][] }): boolean => edge.spans[edge.spans.length - 1]?.[1] === Infinity;
    if (kind === "node") life.nodes.set(first, { at: second, name: String(change[3]), since: number, twinOf: null,
      isStart: change[4] === 1, endsStart: Infinity });
    else if (kind === "edge") open(first, second, String(change[3]));
    else if (kind === "gone") {
      const last = life.edges.get(`${first} ${second} ${String(change[3])}`)?.spans.at(-1);
      if (last) last[1] = number;
    } else if (kind === "given up") {
      const edge = life.edges.get(`${first} ${second} ${String(change[3])}`);
      if (edge) edge.given = number;
    } else if (kind === "unstart") {
      const node = life.nodes.get(first);
      if (node) node.endsStart = number;
    } else if (kind === "twin") {
      const node = life.nodes.get(first);
      if (!node) return;
      life.nodes.set(second, { ...node, since: number, twinOf: first });
      const before = [...life.edges.values()].filter(live);
      for (const edge of before) if (edge.to === first) open(edge.from, second, edge.way);
      for (const edge of [...life.edges.values()].filter(live)) if (edge.from === first) open(second, edge.to, edge.way);
    }
  }

  private draw(): HTMLElement {
    this.events.forEach(([kind, seconds, text], number) => this.list.append(h("li", {},
      h("button", { type: "button", class: "event", "data-event": number, tabindex: number === this.at ? 0 : -1, onclick: () => this.go(number) },
        h("span", { class: "kind" }, `${SIGNS[kind] ?? ""} ${NAMES[kind] ?? kind}`), h("span", { class: "quiet" }, ` ${seconds.toFixed(2)} s `), text))));
    rovingFocus(this.list, "button.event", (item) => this.go(Number(item.dataset.event)));
    const button = (text: string, title: string, by: number): HTMLElement =>
      h("button", { type: "button", title, onclick: () => this.go(this.at + by) }, text);
    const element = h("div", { class: "page split timeline" },
      h("aside", {}, h("h1", {}, "Timeline"),
        this.pages.timeline.left_out > 0 && h("p", { class: "quiet" }, `${this.pages.timeline.left_out} later events were not recorded`),
        this.list),
      h("section", { class: "wide" },
        h("div", { class: "tools player" }, this.playButton, button("|◀", "first event", -1e9), button("◀", "previous (p)", -1),
          button("▶", "next (n)", 1), button("▶|", "last event", 1e9), this.slider,
          h("label", {}, this.follow, "follow")),
        this.caption, this.view.element,
        h("p", { class: "legend quiet" }, "◇ some step from here may lead into what is unexplored; ? such a step was given up; ★ new or touched by this event; thick edges are new, dashed ones given up; dashed nodes can no longer be reached. It is proved when no ◇ is left, or an invariant excludes all of them.")));
    const onKey = (event: KeyboardEvent): void => {
      if (!element.isConnected) { document.removeEventListener("keydown", onKey); clearTimeout(this.timer); return; }
      const target = event.target as HTMLElement;
      if (target.matches("input[type=search], select")) return;
      if (event.key === "n") this.go(this.at + 1);
      else if (event.key === "p") this.go(this.at - 1);
      else if (event.key === " " && !target.matches("button")) { event.preventDefault(); this.play(); }
    };
    document.addEventListener("keydown", onKey);
    return element;
  }

  private play(): void {
    if (this.timer) {
      clearTimeout(this.timer);
      this.timer = 0;
    } else {
      if (this.at === this.events.length - 1) this.go(0);
      const tick = (): void => {
        if (!this.element.isConnected || this.at >= this.events.length - 1) { this.timer = 0; this.playButton.textContent = "▶ play"; return; }
        this.go(this.at + 1);
        this.timer = window.setTimeout(tick, PLAY_MILLISECONDS);
      };
      this.timer = window.setTimeout(tick, PLAY_MILLISECONDS);
    }
    this.playButton.textContent = this.timer ? "‖ pause" : "▶ play";
  }

  private go(to: number): void {
    this.at = Math.max(0, Math.min(this.events.length - 1, to));
    const [kind, seconds, text, at, graph, changes] = this.events[this.at]!;
    this.slider.value = String(this.at);
    for (const item of this.list.querySelectorAll<HTMLElement>("[aria-current]")) item.removeAttribute("aria-current");
    const item = this.list.querySelector<HTMLElement>(`[data-event="${this.at}"]`);
    item?.setAttribute("aria-current", "true");
    item?.scrollIntoView({ block: "nearest" });
    if (graph !== this.shown) { this.shown = graph; this.showGraph(); }
    const touched = new Set<string>();
    for (const change of changes) {
      touched.add(String(change[1]));
      if (change[0] !== "node") touched.add(String(change[2]));
    }
    touched.delete("0");
    const life = this.lifetime()!;
    const isThere = (key: string): boolean => {
      const edge = life.edges.get(key)!;
      return edge.spans.some(([from, end]) => from <= this.at && this.at < end);
    };
    this.view.marked = changes.length > 60 ? new Set() : touched;
    this.view.hidden = (id) => (life.nodes.get(id)?.since ?? Infinity) > this.at;
    this.view.hiddenEdge = (number) => !isThere(this.edgeList[number]!.key);
    this.openSteps = new Map();
    let undecided = 0;
    const reached = this.reachable(life, isThere);
    for (const node of this.nodeList) node.solid = reached.has(node.id);
    for (const [key, edge] of life.edges) {
      if (edge.to !== "0" || !isThere(key) || !reached.has(edge.from)) continue;
      undecided++;
      this.openSteps.set(edge.from, edge.given >= 0 && edge.given <= this.at ? "?" : "◇");
    }
    for (const { key, edge } of this.edgeList) {
      const known = life.edges.get(key)!;
      edge.dashed = known.given >= 0 && known.given <= this.at;
      edge.strong = known.spans.some(([from]) => from === this.at) && this.at > 0;
    }
    if (this.follow.checked && touched.size) this.view.centre([...touched].find((id) => !this.view.hidden(id)) ?? "1");
    for (const node of this.nodeList) node.sign = `${this.view.marked.has(node.id) ? "★" : ""}${this.openSteps.get(node.id) ?? ""}`;
    this.view.draw();
    const nodes = [...life.nodes.values()].filter((node) => node.since <= this.at).length - 1;
    clear(this.caption);
    this.caption.append(h("strong", {}, `${this.at + 1} of ${this.events.length}: ${SIGNS[kind] ?? ""} ${NAMES[kind] ?? kind}`),
      h("span", {}, ` ${text} `), at !== null && this.inCode(at) ? addressLink(at, `at ${at}`) : "",
      h("div", { class: "quiet" }, `${seconds.toFixed(2)} s; ${plural(nodes, "node")}, ${plural(undecided, "step")} into the unexplored`));
    replaceRoute(link("timeline", String(this.at)));
  }

  // What can be reached from the start at this event; a node that cannot no longer matters.
  private reachable(life: Lifetime, isThere: (key: string) => boolean): Set<string> {
    const out = new Map<string, string[]>();
    for (const [key, edge] of life.edges) {
      if (edge.to === "0" || !isThere(key)) continue;
      const list = out.get(edge.from);
      if (list) list.push(edge.to);
      else out.set(edge.from, [edge.to]);
    }
    const work = [...life.nodes].filter(([, node]) => node.isStart && node.since <= this.at && this.at < node.endsStart).map(([id]) => id);
    const seen = new Set(work);
    while (work.length) {
      for (const to of out.get(work.pop()!) ?? []) if (!seen.has(to)) { seen.add(to); work.push(to); }
    }
    return seen;
  }

  private inCode(at: string): boolean {
    return this.pages.code.functions.some((func) => func.blocks.some((block) => block.lines.some((line) => line[0] === at)));
  }

  private showGraph(): void {
    const life = this.lifetime()!;
    this.nodeList = [...life.nodes].filter(([id]) => id !== "0").map(([id, node]) => (
      { id, title: node.name, lines: [`node ${id}${node.twinOf ? `, split from ${node.twinOf}` : ""}`], shape: "box", solid: true, strong: false, sign: "" }));
    this.edgeList = [...life.edges].filter(([, edge]) => edge.to !== "0").map(([key, edge]) => ({ key, edge: { from: edge.from, to: edge.to, label: edge.way.split(" ")[0]!, dashed: false, strong: false } }));
    this.follow.checked = this.nodeList.length > 40;
    this.view.show(this.nodeList, this.edgeList.map((item) => item.edge), ["1"]);
  }
}
