// The control-flow graph of a function: layered, searchable, with parts that can be collapsed.

import { Block, Func, Pages } from "./data";
import { clear, h, plural } from "./dom";
import { GraphView, ViewEdge, ViewNode } from "./graphview";
import { link, replaceRoute, Route } from "./router";
import { addressLink, shown } from "./words";

export function graphPage(pages: Pages, route: Route): HTMLElement {
  if (!pages.code.functions.length) {
    return h("div", { class: "page narrow" }, h("h1", {}, "Graph"), h("p", {}, pages.subject.is_model
      ? "A model has no code." : "The result holds no code; write it with --report or --report-data."));
  }
  return new GraphPage(pages, route).element;
}

class GraphPage {
  readonly element: HTMLElement;
  private view: GraphView;
  private func: Func;
  private collapsed: Set<string>;
  private chains: boolean;
  private details = h("div", { class: "details" });
  private summary = h("p", { class: "quiet", role: "status" });
  private executed: Set<string>;
  private onTrace = new Set<string>();
  private blocks = new Map<string, Block>();
  private memberOf = new Map<string, string>();
  private matches: string[] = [];
  private match = -1;
  private query: string;

  constructor(private pages: Pages, route: Route) {
    this.executed = new Set(pages.code.executed);
    const steps = pages.runs[0]?.steps ?? [];
    const before: string[] = []; // the instruction executed last, for every depth of calls
    for (const step of steps) {
      if (before[step.depth] !== undefined) this.onTrace.add(`${before[step.depth]} ${step.at}`);
      before.length = step.depth;
      before[step.depth] = step.at;
    }
    const owner = (at: string): Func | undefined => pages.code.functions.find((func) => has(func, at));
    const node = route.query.get("node") ?? "";
    this.func = owner(route.detail) ?? owner(node) ?? this.interesting();
    this.collapsed = new Set((route.query.get("collapsed") ?? "").split(",").filter(Boolean));
    this.chains = route.query.get("chains") === "1";
    this.query = route.query.get("q") ?? "";
    this.view = new GraphView(`control flow of ${shown(this.func.name)}`, (id) => this.select(id), (id) => { location.hash = link("code", id); });
    this.element = this.draw();
    window.addEventListener("mcveto-theme", () => this.view.draw());
    this.show();
    this.details.append(h("p", { class: "quiet" }, "Choose a block with the mouse or the arrow keys to see its instructions here; Enter opens it in the code."));
    if (this.query) this.search(this.query);
    if (node) { this.view.select(this.memberOf.get(node) ?? node); this.select(this.memberOf.get(node) ?? node); }
    Object.assign(this.view.canvas, { mcvetoView: this.view });
  }

  private interesting(): Func {
    const functions = this.pages.code.functions;
    const last = this.pages.runs[0]?.steps.findLast((step) => functions.some((func) => func.blocks.length > 1 && has(func, step.at)));
    const largest = functions.reduce((best, func) => (func.blocks.length > best.blocks.length ? func : best));
    return (last && functions.find((func) => has(func, last.at))) ?? largest;
  }

  private draw(): HTMLElement {
    const functions = h("select", { "aria-label": "function", onchange: () => { location.hash = link("graph", functions.value); } },
      this.pages.code.functions.map((func) => h("option", { value: func.entry, selected: func === this.func },
        `${func.name} (${plural(func.blocks.length, "block")})`)));
    const search = h("input", { type: "search", placeholder: "search: address, name, instruction ( / )", "aria-label": "search the graph",
      value: this.query, oninput: () => { this.search(search.value); this.route(); },
      onkeydown: (event: KeyboardEvent) => { if (event.key === "Enter") { event.preventDefault(); this.nextMatch(event.shiftKey ? -1 : 1); } } });
    const chains = h("input", { type: "checkbox", onchange: () => { this.chains = chains.checked; this.show(); this.route(); } });
    chains.checked = this.chains;
    const element = h("div", { class: "page split graph-page" },
      h("section", { class: "wide" },
        h("div", { class: "tools" }, functions, search, h("label", {}, chains, "join straight lines"),
          h("button", { type: "button", title: "hide what only this block leads to (c)", onclick: () => this.collapse() }, "collapse"),
          h("button", { type: "button", onclick: () => { this.collapsed.clear(); this.show(); this.route(); } }, "expand all")),
        this.summary, this.view.element,
        h("p", { class: "legend quiet" }, "● solid: executed   dashed: not executed   ▶ entry   ✗ asked about   ⊞ collapsed   ⌕ found   thick edges: the run shown")),
      h("aside", { class: "right" }, this.details));
    element.addEventListener("keydown", (event) => {
      if (event.key === "c" && (event.target as HTMLElement) === this.view.canvas) this.collapse();
    });
    return element;
  }

  // Blocks that only lead to each other become one node, if that is wanted.
  private joined(): { id: string; blocks: Block[] }[] {
    const inside = new Set(this.func.blocks.map((block) => block.at));
    this.blocks = new Map(this.func.blocks.map((block) => [block.at, block]));
    const flow = (block: Block): string[] => block.out.filter(([kind, to]) => kind !== "call" && inside.has(to)).map(([, to]) => to);
    const arriving = new Map<string, number>();
    for (const block of this.func.blocks) for (const to of flow(block)) arriving.set(to, (arriving.get(to) ?? 0) + 1);
    this.memberOf.clear();
    const found: { id: string; blocks: Block[] }[] = [];
    const taken = new Set<string>();
    const isTail = new Set<string>();
    for (const block of this.func.blocks) {
      const next = flow(block);
      if (this.chains && next.length === 1 && arriving.get(next[0]!) === 1 && next[0] !== this.func.entry && next[0] !== block.at) isTail.add(next[0]!);
    }
    for (const block of [...this.func.blocks.filter((one) => !isTail.has(one.at)), ...this.func.blocks]) {
      if (taken.has(block.at)) continue;
      const chain = [block];
      taken.add(block.at);
      for (;;) {
        const next = flow(chain[chain.length - 1]!);
        const to = next.length === 1 ? this.blocks.get(next[0]!) : undefined;
        if (!to || !isTail.has(to.at) || taken.has(to.at)) break;
        chain.push(to);
        taken.add(to.at);
      }
      found.push({ id: block.at, blocks: chain });
      for (const member of chain) for (const line of member.lines) this.memberOf.set(line[0], block.at);
    }
    return found;
  }

  private show(): void {
    const groups = this.joined();
    const head = new Map(groups.flatMap((group) => group.blocks.map((block): [string, string] => [block.at, group.id])));
    const edges: ViewEdge[] = [];
    for (const group of groups) {
      const last = group.blocks[group.blocks.length - 1]!;
      const from = last.lines[last.lines.length - 1]?.[0] ?? last.at;
      for (const [kind, to] of last.out) {
        const target = head.get(to);
        if (kind === "call" || target === undefined) continue;
        edges.push({ from: group.id, to: target, label: kind === "taken" ? "yes" : kind === "else" ? "no" : "",
          dashed: kind === "jump to function" || !this.executed.has(from) || !this.executed.has(to), strong: this.onTrace.has(`${from} ${to}`) });
      }
    }
    const hidden = this.hiddenBy(groups.map((group) => group.id), edges);
    const asked = new Set([this.pages.verdict.at ?? ""]);
    const nodes: ViewNode[] = groups.filter((group) => !hidden.has(group.id)).map((group) => {
      const lines = group.blocks.flatMap((block) => block.lines);
      const done = lines.some((line) => this.executed.has(line[0]));
      const target = lines.some((line) => asked.has(line[0]));
      const isCollapsed = this.collapsed.has(group.id);
      const exits = group.blocks.flatMap((block) => block.out).filter(([kind]) => kind === "return" || kind === "computed");
      return { id: group.id, title: group.blocks[0]!.name, lines: isCollapsed ? ["collapsed"] : lines.map((line) => line[2]),
        shape: exits.length ? "round" : "box", solid: done, strong: target || group.id === this.func.entry,
        sign: isCollapsed ? "⊞" : target ? "✗" : group.id === this.func.entry ? "▶" : done ? "●" : "" };
    });
    this.view.show(nodes, edges.filter((edge) => !hidden.has(edge.from) && !hidden.has(edge.to)), [this.func.entry]);
    this.summary.textContent = shown(`${this.func.name}: ${plural(nodes.length, "node")}, ${plural(edges.length, "edge")}`
      + (hidden.size ? `, ${plural(hidden.size, "node")} collapsed` : "") + `; placed in ${Math.round(this.view.layoutMilliseconds)} ms`);
  }

  private hiddenBy(ids: string[], edges: ViewEdge[]): Set<string> {
    if (!this.collapsed.size) return new Set();
    const out = new Map<string, string[]>();
    for (const edge of edges) (out.get(edge.from) ?? out.set(edge.from, []).get(edge.from)!).push(edge.to);
    const reach = (stop: (id: string) => boolean): Set<string> => {
      const seen = new Set([this.func.entry]);
      const work = [this.func.entry];
      while (work.length) {
        const id = work.pop()!;
        if (stop(id)) continue;
        for (const to of out.get(id) ?? []) if (!seen.has(to)) { seen.add(to); work.push(to); }
      }
      return seen;
    };
    const all = reach(() => false), kept = reach((id) => this.collapsed.has(id));
    return new Set(ids.filter((id) => all.has(id) && !kept.has(id)));
  }

  private collapse(): void {
    const id = this.view.selected;
    if (id === null) { this.summary.textContent = "Choose a block first: what only it leads to is then hidden."; return; }
    if (!this.collapsed.delete(id)) this.collapsed.add(id);
    this.show();
    this.view.select(id);
    this.route();
  }

  private search(text: string): void {
    this.query = text;
    const query = text.trim().toLowerCase();
    const found = new Set<string>();
    if (query) {
      for (const block of this.func.blocks) {
        const hit = block.name.toLowerCase().includes(query) || block.lines.some((line) => line[0].includes(query) || line[2].toLowerCase().includes(query));
        if (hit) found.add(this.memberOf.get(block.lines[0]?.[0] ?? block.at) ?? block.at);
      }
    }
    this.view.found = found;
    this.matches = [...found];
    this.match = -1;
    this.summary.textContent = query ? `${plural(found.size, "block")} found; Enter goes to the next` : this.func.name;
    if (found.size) this.nextMatch(1);
    else this.view.draw();
  }

  private nextMatch(by: number): void {
    if (!this.matches.length) return;
    this.match = (this.match + by + this.matches.length) % this.matches.length;
    const id = this.matches[this.match]!;
    this.view.select(id);
    this.select(id);
    this.summary.textContent = `${this.match + 1} of ${plural(this.matches.length, "block")} found; Enter goes to the next`;
  }

  private select(id: string): void {
    const block = this.blocks.get(id);
    clear(this.details);
    if (!block) return;
    const done = block.lines.filter((line) => this.executed.has(line[0])).length;
    this.details.append(h("h2", {}, block.name), h("p", { class: "quiet" }, `${done} of ${plural(block.lines.length, "instruction")} executed`),
      h("div", { class: "listing small" }, block.lines.map(([at, , text]) => h("div", { class: "line" },
        h("span", { class: "cover" }, this.executed.has(at) ? "●" : "○"), addressLink(at), h("span", { class: "instruction" }, text)))),
      h("p", {}, block.out.map(([kind, to]) => h("div", {}, `${kind} `, to && addressLink(to)))));
    this.route();
  }

  private route(): void {
    replaceRoute(link("graph", this.func.entry, { node: this.view.selected, q: this.query, chains: this.chains ? 1 : "",
      collapsed: [...this.collapsed].join(",") }));
  }
}

function has(func: Func, at: string): boolean {
  return func.entry === at || func.blocks.some((block) => block.lines.some((line) => line[0] === at));
}
