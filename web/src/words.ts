// Signs and labels that several pages use; each says in a shape or word what colour also says.

import { h, visible } from "./dom";
import { Input } from "./data";
import { link } from "./router";

export const SIGNS: Record<string, string> = { violated: "✗", proved: "✓", unknown: "?" };
export const KIND_SIGNS: Record<string, string> = { start: "●", call: "↘", direct: "→", exit: "↖" };
export const STATUS_SIGNS: Record<string, string> = {
  confirmed: "✗", "in the model": "✗", infeasible: "○", undecided: "?",
};

export function shown(text: string | null | undefined): string {
  return visible(text ?? "");
}

export function addressLink(at: string | null, text?: string, query: Record<string, string | number> = {}): Node {
  if (at === null) return document.createTextNode(visible(text ?? ""));
  return h("a", { href: link("code", at, query), class: "address" }, text ?? at);
}

export function inputTable(inputs: Input[], first = 0): HTMLElement {
  return h("table", { class: "inputs" },
    h("thead", {}, h("tr", {}, ["#", "value", "hex", "as text", "what it is"].map((title) => h("th", { scope: "col" }, title)))),
    h("tbody", {}, inputs.map((item, number) => h("tr", {},
      h("td", { class: "quiet" }, item.name || `${first + number}`),
      h("td", { class: "value" }, item.value),
      h("td", { class: "mono" }, item.hex),
      h("td", { class: "mono" }, item.character && `‘${item.character}’`),
      h("td", {}, `${item.bits} bits, ${item.where}`)))));
}

export function copyButton(text: string): HTMLElement {
  const button = h("button", { type: "button", class: "small", onclick: () => {
    navigator.clipboard?.writeText(text).then(() => { button.textContent = "copied"; }, () => { button.textContent = "not copied"; });
  } }, "copy");
  return button;
}

// What is counted in a search.
export const COUNTED: Record<string, string> = {
  seconds: "seconds", cpu_seconds: "seconds of processor time", peak_rss_mb: "MB of memory", concrete_runs: "runs",
  symbolic_runs: "symbolic runs", refinements: "refinements", lemmas: "lemmas", solver_calls: "solver calls",
  instructions_executed: "instructions executed", locations: "locations", nodes: "nodes of the graph",
};
