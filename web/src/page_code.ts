// The disassembly: what was executed, what holds where, and what a run changes at each instruction.

import { Func, Invariant, Pages, Run } from "./data";
import { clear, h, plural } from "./dom";
import { link, replaceRoute, Route } from "./router";
import { addressLink } from "./words";

const MAX_INVARIANTS = 12;

export function codePage(pages: Pages, route: Route): HTMLElement {
  const functions = pages.code.functions;
  if (!functions.length) {
    return h("div", { class: "page narrow" }, h("h1", {}, "Code"), h("p", {}, pages.subject.is_model
      ? "A model has no code." : "The result holds no code; write it with --report or --report-data."));
  }
  return new CodePage(pages, route).element;
}

class CodePage {
  readonly element: HTMLElement;
  private executed: Set<string>;
  private invariants = new Map<string, Invariant[]>();
  private owner = new Map<string, Func>();
  private func: Func;
  private run: Run | null = null;
  private trace = 0;
  private step = 0;
  private listing = h("div", { class: "listing", role: "table", "aria-label": "instructions" });
  private registers = h("div", { class: "registers", role: "status" });
  private slider = h("input", { type: "range", min: 0, "aria-label": "step of the run" });
  private position = h("span", { class: "position" });
  private lines = new Map<string, HTMLElement>();
  private functionList = h("ul", { class: "functions" });
  private address: string;

  constructor(private pages: Pages, route: Route) {
    this.executed = new Set(pages.code.executed);
    for (const item of pages.invariants) {
      const list = this.invariants.get(item.at);
      if (list) list.push(item);
      else this.invariants.set(item.at, [item]);
    }
    for (const func of pages.code.functions) {
      for (const block of func.blocks) for (const line of block.lines) this.owner.set(line[0], func);
    }
    this.address = route.detail || pages.verdict.at || pages.subject.entry || "";
    this.func = this.owner.get(this.address) ?? this.owner.get(pages.subject.entry ?? "") ?? pages.code.functions[0]!;
    const number = Number(route.query.get("trace") ?? pages.traces.find((trace) => trace.run !== null)?.number ?? 0);
    const trace = pages.traces.find((item) => item.number === number && item.run !== null);
    if (trace) {
      this.trace = number;
      this.run = pages.runs[trace.run!] ?? null;
      this.step = route.query.has("step") ? this.stepIndex(Number(route.query.get("step"))) : (this.run?.steps.length ?? 1) - 1;
      if (!route.detail && this.run) {
        this.address = this.run.steps[this.step]?.at ?? this.address;
        this.func = this.owner.get(this.address) ?? this.func;
      }
    }
    this.element = this.draw();
    this.drawFunction();
    queueMicrotask(() => this.goTo(this.address, false));
  }

  private stepIndex(number: number): number {
    const steps = this.run?.steps ?? [];
    const at = steps.findIndex((step) => step.n >= number);
    return number < 0 ? 0 : at < 0 ? steps.length - 1 : at;
  }

  private draw(): HTMLElement {
    const search = h("input", { type: "search", placeholder: "search: address, name, instruction ( / )", "aria-label": "search the code",
      oninput: () => this.search(search.value) });
    const results = this.functionList;
    this.drawFunctions(this.pages.code.functions, "");
    const runs = this.pages.traces.filter((trace) => trace.run !== null);
    const choice = h("select", { "aria-label": "run", onchange: () => {
      location.hash = link("code", this.address, { trace: choice.value, step: 0 });
    } }, runs.map((trace) => h("option", { value: trace.number, selected: trace.number === this.trace }, `counterexample ${trace.number}`)));
    const total = this.run?.steps.length ?? 0;
    this.slider.max = String(Math.max(0, total - 1));
    this.slider.addEventListener("input", () => this.moveTo(Number(this.slider.value)));
    const button = (text: string, title: string, by: number): HTMLElement =>
      h("button", { type: "button", title, onclick: () => this.moveTo(this.step + by) }, text);
    const element = h("div", { class: "page split" },
      h("aside", {}, h("h1", {}, "Code"), search,
        this.pages.code.coverage !== "" && h("p", { class: "quiet" }, `● executed, ○ not, in ${this.pages.code.coverage}`),
        results, this.pages.code.notes.map((note) => h("p", { class: "quiet" }, note))),
      h("section", { class: "wide" },
        this.run && h("div", { class: "tools player" }, runs.length > 1 && choice,
          button("|◀", "first step", -1e9), button("◀", "previous step (p)", -1), button("▶", "next step (n)", 1),
          button("▶|", "last step", 1e9), this.slider, this.position),
        this.run && this.registers, this.listing));
    element.addEventListener("keydown", (event) => {
      if ((event.target as HTMLElement).matches("input[type=search], select")) return;
      if (event.key === "n" || event.key === "p") this.moveTo(this.step + (event.key === "n" ? 1 : -1));
    });
    const onKey = (event: KeyboardEvent): void => {
      if (!element.isConnected) { document.removeEventListener("keydown", onKey); return; }
      if (event.target === document.body && (event.key === "n" || event.key === "p")) this.moveTo(this.step + (event.key === "n" ? 1 : -1));
    };
    document.addEventListener("keydown", onKey);
    return element;
  }

  private drawFunctions(functions: Func[], query: string): void {
    clear(this.functionList);
    for (const func of functions.slice(0, 500)) {
      const lines = func.blocks.flatMap((block) => block.lines);
      const hit = lines.filter((line) => this.executed.has(line[0])).length;
      this.functionList.append(h("li", {}, h("a", { href: link("code", func.entry, this.trace ? { trace: this.trace, step: this.step } : {}) },
        func.name), h("span", { class: "quiet" }, ` ${hit}/${plural(lines.length, "instruction")}`)));
    }
    if (functions.length > 500) this.functionList.append(h("li", { class: "quiet" }, `${functions.length - 500} more`));
    if (!functions.length) this.functionList.append(h("li", { class: "quiet" }, `nothing has “${query}” in it`));
  }

  private search(text: string): void {
    const query = text.trim().toLowerCase();
    for (const line of this.lines.values()) line.classList.remove("found");
    if (!query) { this.drawFunctions(this.pages.code.functions, ""); return; }
    const matches = (func: Func): boolean => func.name.toLowerCase().includes(query)
      || func.blocks.some((block) => block.name.toLowerCase().includes(query)
        || block.lines.some((line) => line[0].includes(query) || line[2].toLowerCase().includes(query)));
    this.drawFunctions(this.pages.code.functions.filter(matches), text);
    let first: HTMLElement | null = null;
    for (const block of this.func.blocks) for (const line of block.lines) {
      if (line[0].includes(query) || line[2].toLowerCase().includes(query)) {
        const element = this.lines.get(line[0]);
        element?.classList.add("found");
        first ??= element ?? null;
      }
    }
    first?.scrollIntoView({ block: "center" });
  }

  private drawFunction(): void {
    clear(this.listing);
    this.lines.clear();
    const func = this.func;
    this.listing.append(h("h2", {}, func.name, " ", h("a", { href: link("graph", func.entry) }, "graph")));
    for (const block of func.blocks) {
      const box = h("div", { class: "block" }, block.name !== block.at && h("div", { class: "label" }, `${block.name}:`));
      block.lines.forEach((line, number) => box.append(...this.line(line, number === block.lines.length - 1 ? block.out : [])));
      this.listing.append(box);
    }
    this.drawStep();
  }

  private line([at, bytes, text]: [string, string, string], out: [string, string][]): HTMLElement[] {
    const done = this.executed.has(at);
    const element = h("div", { class: `line${done ? " executed" : ""}`, role: "row", "data-address": at },
      h("span", { class: "cover", title: done ? "executed" : "not executed" }, done ? "●" : "○"),
      h("a", { class: "address", href: link("code", at) }, at),
      h("span", { class: "bytes" }, bytes), h("span", { class: "instruction" }, text),
      h("span", { class: "out" }, out.map(([kind, target]) => [` ${kind} `, target && addressLink(target)])),
      h("span", { class: "effect" }));
    this.lines.set(at, element);
    return [...this.invariantLines(at), element];
  }

  private invariantLines(at: string): HTMLElement[] {
    const found = this.invariants.get(at);
    if (!found) return [];
    return found.slice(0, 4).map((item): HTMLElement => {
      const calls = item.calls?.length ? ` (called from ${item.calls.join(", ")})` : "";
      const lines = item.alternatives.flatMap((literals, number) => [
        ...(number ? ["or"] : []), ...(literals.length ? literals : ["any state"])]);
      return h("details", { class: "invariant", open: lines.length <= MAX_INVARIANTS },
        h("summary", {}, `⊢ always holds here${calls}`), lines.map((line) => h("div", { class: line === "or" ? "quiet" : "mono" }, line)));
    }).concat(found.length > 4 ? [h("div", { class: "quiet" }, `${found.length - 4} more, for other callers`)] : []);
  }

  private moveTo(step: number): void {
    if (!this.run) return;
    this.step = Math.max(0, Math.min(this.run.steps.length - 1, step));
    const at = this.run.steps[this.step]!.at;
    const func = this.owner.get(at);
    if (func && func !== this.func) { this.func = func; this.drawFunction(); }
    this.drawStep();
    this.goTo(at, true);
  }

  private drawStep(): void {
    const run = this.run;
    if (!run) return;
    const steps = run.steps.slice(0, this.step + 1);
    const values: Record<string, string> = { ...run.registers };
    const last = new Map<string, [number, string]>();
    steps.forEach((step) => {
      for (const [name, value] of step.set) values[name] = value;
      const effects = [...step.set.map(([name, value]) => `${name} = ${value}`),
        ...step.mem.map(([what, address, , value]) => what === "write" ? `[${address}] := ${value}` : `reads [${address}] = ${value}`)];
      last.set(step.at, [(last.get(step.at)?.[0] ?? 0) + 1, effects.join(", ")]);
    });
    const now = run.steps[this.step];
    for (const [at, element] of this.lines) {
      const seen = last.get(at);
      const effect = element.querySelector(".effect")!;
      effect.textContent = seen ? `${seen[0] > 1 ? `×${seen[0]} ` : ""}${seen[1]}` : "";
      element.classList.toggle("current", at === now?.at);
      element.toggleAttribute("aria-current", at === now?.at);
    }
    const changed = new Set(now?.set.map(([name]) => name));
    clear(this.registers);
    this.registers.append(...Object.entries(values).map(([name, value]) =>
      h("span", { class: changed.has(name) ? "register changed" : "register" }, `${name} ${value}${changed.has(name) ? " *" : ""}`)));
    this.slider.value = String(this.step);
    this.position.textContent = `after step ${now?.n ?? 0} of ${run.total - 1}${now?.input !== null && now ? ` (reads input ${now.input})` : ""}`
      + (this.step === run.steps.length - 1 ? `; then ${run.end}` : "")
      + (run.left_out ? `; ${run.left_out} steps are left out` : "");
    replaceRoute(link("code", now?.at ?? this.address, { trace: this.trace, step: now?.n ?? 0 }));
  }

  private goTo(at: string, quick: boolean): void {
    const element = this.lines.get(at);
    if (!element) return;
    for (const line of this.lines.values()) line.classList.remove("target");
    if (!quick) element.classList.add("target");
    element.scrollIntoView({ block: quick ? "nearest" : "center" });
  }
}
