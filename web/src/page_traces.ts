// Counterexamples: choose some, see them as a tree that shares common beginnings, steps without effect folded.

import { Pages, State, Trace } from "./data";
import { clear, h, plural, rovingFocus } from "./dom";
import { link, replaceRoute, Route } from "./router";
import { inputTable, KIND_SIGNS, STATUS_SIGNS } from "./words";

interface Options { selected: Set<number>; fold: boolean; full: boolean; common: boolean; errors: Set<string> }
interface Row { trace: Trace; at: number; state: State }
interface Branch { members: Trace[]; rows: Row[]; children: Branch[] }

const MAX_COMPARED = 1500;

export function tracesPage(pages: Pages, route: Route): HTMLElement {
  if (!pages.traces.length) {
    const why = { proved: "There is none: the property is proved.", unknown: "None was found." }[pages.verdict.kind];
    return h("div", { class: "page narrow" }, h("h1", {}, "Counterexamples"), h("p", {}, why ?? "None could be shown."));
  }
  const options = readOptions(pages, route);
  const tree = h("div", { class: "tree", role: "group", "aria-label": "steps" });
  const side = h("div", { class: "trace-list", role: "group", "aria-label": "counterexamples" });
  const summary = h("p", { class: "quiet", role: "status" });
  const update = (): void => {
    replaceRoute(link("traces", "", { sel: [...options.selected].sort((a, b) => a - b).join(",") || "none",
      fold: options.fold ? "" : 0, stack: options.full ? "full" : "", common: options.common ? "" : 0 }));
    drawTree(pages, options, tree, summary);
  };
  const boxes = new Map<number, HTMLInputElement>();
  for (const trace of pages.traces) side.append(traceItem(trace, options, boxes, update));
  const choose = (which: (trace: Trace) => boolean): void => {
    options.selected = new Set(pages.traces.filter(which).map((trace) => trace.number));
    for (const [number, box] of boxes) box.checked = options.selected.has(number);
    update();
  };
  const toggle = (label: string, value: boolean, set: (on: boolean) => void): HTMLElement => {
    const box = h("input", { type: "checkbox", onchange: () => { set(box.checked); update(); } });
    box.checked = value;
    return h("label", {}, box, label);
  };
  rovingFocus(tree, ".row, .fold");
  update();
  queueMicrotask(() => { if (route.query.has("at")) tree.querySelector<HTMLElement>(`[data-at="${Number(route.query.get("at"))}"]`)?.focus(); });
  const open = (on: boolean): void => { for (const item of tree.querySelectorAll("details")) item.open = on; };
  return h("div", { class: "page split" },
    h("aside", {}, h("h1", {}, "Counterexamples"),
      pages.complete && h("p", {}, pages.complete),
      pages.traces.length > 1 && h("p", { class: "tools" },
        h("button", { type: "button", onclick: () => choose(() => true) }, "all"),
        h("button", { type: "button", onclick: () => choose(() => false) }, "none"),
        pages.traces.some((trace) => trace.status === "infeasible" || trace.status === "undecided")
          && h("button", { type: "button", onclick: () => choose((trace) => trace.status === "confirmed") }, "confirmed")),
      side, groups(pages, choose)),
    h("section", { class: "wide" },
      h("div", { class: "tools" },
        toggle("fold steps without effect", options.fold, (on) => (options.fold = on)),
        toggle("full stacks", options.full, (on) => (options.full = on)),
        pages.traces.length > 1 && toggle("mark common steps ◆", options.common, (on) => (options.common = on)),
        h("button", { type: "button", onclick: () => open(false) }, "close branches"),
        h("button", { type: "button", onclick: () => open(true) }, "open branches")),
      summary, legend(), tree));
}

function readOptions(pages: Pages, route: Route): Options {
  const query = route.query;
  const given = query.get("sel");
  const good = pages.traces.filter((trace) => trace.status === "confirmed" || trace.status === "in the model");
  const chosen = given === null ? (good.length ? good : pages.traces.slice(0, 1)).map((trace) => trace.number)
    : given.split(",").map(Number).filter((number) => pages.traces.some((trace) => trace.number === number));
  return { selected: new Set(chosen), fold: query.get("fold") !== "0", full: query.get("stack") === "full",
    common: query.get("common") !== "0",
    errors: new Set(pages.automata.flatMap((automaton) => Object.keys(automaton.errors))) };
}

function traceItem(trace: Trace, options: Options, boxes: Map<number, HTMLInputElement>, update: () => void): HTMLElement {
  const box = h("input", { type: "checkbox", id: `trace-${trace.number}`, onchange: () => {
    if (box.checked) options.selected.add(trace.number);
    else options.selected.delete(trace.number);
    update();
  } });
  box.checked = options.selected.has(trace.number);
  boxes.set(trace.number, box);
  return h("div", { class: `trace ${trace.status.replaceAll(" ", "-")}` },
    h("label", { for: `trace-${trace.number}` }, box,
      h("strong", {}, `${trace.number}. ${STATUS_SIGNS[trace.status] ?? ""} ${trace.status}`), ` ${plural(trace.length, "step")}`),
    h("div", { class: "quiet" }, [trace.error, trace.means, trace.reason].filter(Boolean).join(": ")),
    trace.inputs.length > 0 && h("details", {}, h("summary", {}, plural(trace.inputs.length, "input")), inputTable(trace.inputs)),
    trace.run !== null && h("a", { href: link("code", trace.states[0]?.at ?? "", { trace: trace.number, step: 0 }) }, "run in the code"));
}

function groups(pages: Pages, choose: (which: (trace: Trace) => boolean) => void): HTMLElement | null {
  const shown = pages.groups.filter((group) => group.members.length > 1);
  if (!shown.length) return null;
  return h("section", {}, h("h2", {}, "Groups"), shown.map((group) => h("p", {},
    h("button", { type: "button", onclick: () => choose((trace) => group.members.includes(trace.number)) },
      `${group.error} at ${group.node}`), ` ${group.members.join(", ")}`,
    group.events.length > 0 && h("span", { class: "quiet" }, ` all do: ${group.events.slice(0, 8).join(" → ")}`))));
}

function legend(): HTMLElement {
  return h("p", { class: "legend quiet" }, "↘ call  → direct  ↖ exit (return)   [state] the automaton moved   ◆ in all chosen");
}

// The longest common subsequence of the nodes of all chosen traces, pair after pair.
export function commonNodes(traces: Trace[]): string[] {
  let common = traces[0]?.states.map((state) => state.node) ?? [];
  for (const trace of traces.slice(1)) common = lcs(common, trace.states.map((state) => state.node));
  return common;
}

function lcs(left: string[], right: string[]): string[] {
  if (left.length > MAX_COMPARED || right.length > MAX_COMPARED) {
    const known = new Set(right);
    return left.filter((node) => known.has(node));
  }
  const width = right.length + 1;
  const table = new Uint16Array((left.length + 1) * width);
  for (let i = left.length - 1; i >= 0; i--) {
    for (let j = right.length - 1; j >= 0; j--) {
      table[i * width + j] = left[i] === right[j] ? table[(i + 1) * width + j + 1]! + 1
        : Math.max(table[(i + 1) * width + j]!, table[i * width + j + 1]!);
    }
  }
  const found: string[] = [];
  for (let i = 0, j = 0; i < left.length && j < right.length;) {
    if (left[i] === right[j]) { found.push(left[i]!); i++; j++; }
    else if (table[(i + 1) * width + j]! >= table[i * width + j + 1]!) i++;
    else j++;
  }
  return found;
}

function keyOf(state: State): string {
  return `${state.kind}\n${state.state}\n${JSON.stringify(state.values)}\n${state.stack.join("\n")}\n${state.node}`;
}

function branch(traces: Trace[], from: number): Branch {
  const rows: Row[] = [];
  let at = from;
  for (;;) {
    const ways = new Map<string, Trace[]>();
    for (const trace of traces) {
      const state = trace.states[at];
      const key = state ? keyOf(state) : "";
      const list = ways.get(key);
      if (list) list.push(trace);
      else ways.set(key, [trace]);
    }
    if (ways.size > 1) {
      const children = [...ways].filter(([key]) => key !== "").map(([, members]) => branch(members, at));
      return { members: traces, rows, children };
    }
    const state = traces[0]?.states[at];
    if (!state) return { members: traces, rows, children: [] };
    rows.push({ trace: traces[0]!, at, state });
    at++;
  }
}

function drawTree(pages: Pages, options: Options, tree: HTMLElement, summary: HTMLElement): void {
  clear(tree);
  const chosen = pages.traces.filter((trace) => options.selected.has(trace.number))
    .sort((a, b) => a.length - b.length || a.number - b.number);
  if (!chosen.length) {
    summary.textContent = "Choose at least one counterexample.";
    return;
  }
  const common = options.common && chosen.length > 1 ? commonNodes(chosen) : [];
  summary.textContent = chosen.length === 1 ? `Counterexample ${chosen[0]!.number}: ${plural(chosen[0]!.length, "step")}.`
    : `${plural(chosen.length, "counterexample")}, shortest first; ${plural(common.length, "step")} in all of them.`;
  tree.append(drawBranch(branch(chosen, 0), options, new Set(common)));
  tree.querySelector<HTMLElement>(".row")?.setAttribute("tabindex", "0");
}

function drawBranch(found: Branch, options: Options, common: Set<string>): HTMLElement {
  const rows = h("div", { class: "rows" });
  const interesting = (row: Row, number: number): boolean => {
    const next = found.rows[number + 1];
    const ends = number === 0 && row.at === 0 || row.at === row.trace.states.length - 1;
    return ends || row.state.changes || row.state.notes.length > 0 || row.trace.dies_at === row.at
      || next !== undefined && next.state.changes;
  };
  for (let number = 0; number < found.rows.length;) {
    let end = number;
    while (options.fold && end < found.rows.length && !interesting(found.rows[end]!, end)) end++;
    if (end - number > 1) {
      rows.append(fold(found.rows.slice(number, end), options, common));
      number = end;
    } else {
      rows.append(drawRow(found.rows[number]!, options, common));
      number++;
    }
  }
  const children = found.children.map((child) => {
    const numbers = child.members.map((trace) => trace.number).join(", ");
    const title = `${child.members.length > 1 ? "counterexamples" : "counterexample"} ${numbers}`;
    return h("details", { open: true, class: "branch" }, h("summary", {}, `└ ${title}`), drawBranch(child, options, common));
  });
  return h("div", {}, rows, children);
}

function fold(rows: Row[], options: Options, common: Set<string>): HTMLElement {
  const inside = rows.map((row) => row.state.kind).filter((kind) => kind !== "direct").length;
  const text = `… ${plural(rows.length, "step")} without effect${inside ? ` (${plural(inside, "call or exit", "calls and exits")})` : ""}`;
  const button = h("button", { type: "button", class: "fold", "aria-expanded": "false", onclick: () => {
    const box = h("div", { class: "unfolded" }, h("button", { type: "button", class: "fold", "aria-expanded": "true", onclick: () => {
      box.replaceWith(button);
      button.focus();
    } }, `fold ${plural(rows.length, "step")} again`), rows.map((row) => drawRow(row, options, common)));
    button.replaceWith(box);
    (box.firstElementChild as HTMLElement).focus();
  } }, text);
  return button;
}

function drawRow({ trace, at, state }: Row, options: Options, common: Set<string>): HTMLElement {
  const values = Object.entries(state.values).map(([name, value]) => `${name} = ${value}`).join(", ");
  const isCommon = common.has(state.node);
  const dies = trace.dies_at === at;
  const isEnd = at === trace.states.length - 1 && options.errors.has(state.state);
  const query = { trace: trace.number, ...(state.step === null ? {} : { step: state.step }) };
  const open = state.at === null ? undefined : link("code", state.at, query);
  return h("div", { class: `row ${state.kind}${isCommon ? " common" : ""}${state.changes ? " changes" : ""}`, tabindex: -1,
    "data-at": at, onkeydown: (event: KeyboardEvent) => { if (event.key === "Enter" && open && event.target === event.currentTarget) location.hash = open; } },
    h("span", { class: "number" }, String(state.step ?? at)),
    h("span", { class: "kind" }, `${KIND_SIGNS[state.kind] ?? ""} ${state.kind}`),
    h("span", { class: "mark", title: isCommon ? "in all chosen counterexamples" : "" }, isCommon ? "◆" : ""),
    h("span", { class: "where" }, open ? h("a", { href: open, tabindex: -1 }, state.node) : state.node,
      options.full && state.stack.length > 1 && h("span", { class: "stack" }, ` ◂ ${state.stack.slice(1).join(" ◂ ")}`),
      state.text && h("span", { class: "instruction" }, state.text)),
    (state.changes || at === 0) && state.state && h("span", { class: `state${isEnd ? " error" : ""}` }, `[${state.state}${values ? `; ${values}` : ""}]`),
    state.events.length > 0 && h("span", { class: "event" }, `⚑ ${state.events.join(", ")}`),
    state.notes.map((note) => h("span", { class: "note" }, note)),
    dies && h("span", { class: "note" }, `✂ ${trace.reason}`));
}
