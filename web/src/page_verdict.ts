// The first page: what was found, with which input, and why, in plain words.

import { Pages } from "./data";
import { h, plural } from "./dom";
import { link } from "./router";
import { addressLink, copyButton, COUNTED, inputTable, SIGNS } from "./words";

const SHOWN = 40;
const INPUTS_SHOWN = 12;
const TITLES: Record<string, string> = {
  violated: "The program can be broken", proved: "The program is safe in this respect", unknown: "Not known",
};

export function verdictPage(pages: Pages): HTMLElement {
  const kind = pages.verdict.kind;
  const title = kind === "violated" && pages.subject.is_model ? "The model breaks its property" : TITLES[kind] ?? kind;
  return h("div", { class: "page narrow" },
    h("section", { class: `banner ${kind}` },
      h("h1", {}, h("span", { class: "sign", "aria-hidden": "true" }, SIGNS[kind] ?? "?"), title),
      kind === "violated" && h("p", { class: "inshort" }, inShort(pages)),
      h("p", { class: "headline" }, pages.verdict.headline)),
    h("section", {}, h("h2", {}, kind === "violated" ? "What happens" : "What this means"),
      h("ol", { class: "story" }, pages.story.map((line) => h("li", {}, line)))),
    pages.tries.length > 0 && h("section", {}, h("h2", {}, "What to try"), list(pages.tries)),
    pages.inputs.length > 0 && inputs(pages),
    kind === "unknown" && (pages.timeline.log ?? []).length > 0 && h("p", { class: "actions" },
      h("a", { class: "button", href: link("timeline") }, "See how far the search was"),
      pages.code.executed.length > 0 && h("a", { class: "button", href: link("code") }, "See which code it looked at")),
    pages.traces.length > 0 && h("p", { class: "actions" },
      h("a", { class: "button", href: link("traces") }, pages.traces.length > 1 ? `See all ${pages.traces.length} traces` : "See the run, step by step"),
      pages.runs.length > 0 && h("a", { class: "button", href: link("code", firstAddress(pages), { trace: firstWithRun(pages), step: lastStep(pages) }) },
        "See where it happens in the code")),
    pages.why.length > 0 && decisions(pages),
    ways(pages),
    h("section", {}, h("h2", {}, "What was asked"),
      h("p", {}, pages.subject.is_model ? "Does a run of the model violate this? " : "Can the program, for any input, …"),
      list(pages.subject.checked)),
    pages.invariants.length > 0 && invariants(pages),
    pages.refinements.length > 0 && refinements(pages),
    pages.aftermath.length > 0 && h("section", {}, h("h2", {}, "After the violation"), list(pages.aftermath)),
    pages.warnings.length > 0 && h("section", { class: "warning" }, h("h2", {}, "⚠ Warnings"), list(pages.warnings)),
    pages.assumptions.length > 0 && h("section", {}, h("h2", {}, "What it rests on"),
      h("p", {}, kind === "unknown" ? "These assumptions were made:" : "The answer holds if these assumptions do:"), list(pages.assumptions)),
    pages.notes.length > 0 && h("section", {}, h("h2", {}, "Notes"), list(pages.notes)),
    details(pages));
}

// The whole answer in a line: what goes wrong, and with which input.
function inShort(pages: Pages): string {
  const what = pages.verdict.reason ?? pages.traces.find((trace) => trace.means !== "")?.means ?? "";
  const calls = pages.inputs.filter((input) => input.name !== "").map((input) => input.value);
  const some = calls.slice(0, 6).join(", ") + (calls.length > 6 ? ", …" : "");
  const input = calls.length ? `With input ${some}` : pages.inputs.length ? "With the input below" : "Whatever happens";
  return what === "" ? "" : `${pages.subject.is_model ? "A run of the model" : input}: ${what}.`;
}

function list(lines: string[]): HTMLElement {
  return h("ul", {}, lines.map((line) => h("li", {}, line)));
}

function firstWithRun(pages: Pages): number {
  return pages.traces.find((trace) => trace.run !== null)?.number ?? 1;
}

function lastStep(pages: Pages): number {
  return (pages.runs[0]?.steps.length ?? 1) - 1;
}

function firstAddress(pages: Pages): string {
  const steps = pages.runs[0]?.steps ?? [];
  return steps[steps.length - 1]?.at ?? "";
}

function inputs(pages: Pages): HTMLElement {
  const again = pages.again.join(" ");
  return h("section", { id: "inputs" }, h("h2", {}, "The input that does it"),
    inputTable(pages.inputs.slice(0, INPUTS_SHOWN)),
    pages.inputs.length > INPUTS_SHOWN && h("details", {}, h("summary", {}, `${pages.inputs.length - INPUTS_SHOWN} more`),
      inputTable(pages.inputs.slice(INPUTS_SHOWN), INPUTS_SHOWN)),
    again !== "" && h("p", {}, pages.automata.length > 0 ? "Run the program on it yourself: " : "Run it yourself: ", h("code", { class: "command" }, again), " ", copyButton(again)),
    pages.confirmed_by.length > 0 && h("p", {}, "Confirmed by: ", pages.confirmed_by.join(", "), "."));
}

// One line for each way to break the program, if there are several.
function ways(pages: Pages): HTMLElement | false {
  const found = pages.traces.filter((trace) => trace.status === "confirmed" && trace.means !== "");
  if (found.length < 2 || pages.subject.is_model) return false;
  const rows = found.slice(0, SHOWN).map((trace) => {
    const values = trace.inputs.filter((input) => input.name !== "").map((input) => input.value);
    const last = trace.why[trace.why.length - 1];
    return h("tr", {},
      h("td", {}, h("a", { href: link("traces", "", { sel: trace.number }) }, `${trace.number}`)),
      h("td", { class: "value" }, values.slice(0, INPUTS_SHOWN).join(", ") + (values.length > INPUTS_SHOWN ? ", …" : "")),
      h("td", {}, trace.means),
      h("td", { class: "wide" }, last !== undefined && [addressLink(last.at, last.name), " ", h("span", { class: "mono" }, last.text)]));
  });
  return h("section", { id: "ways" }, h("h2", {}, `All ${found.length} ways that were found`),
    h("table", {}, h("thead", {}, h("tr", {},
      ["#", "input", "what goes wrong", "the last decision"].map((name) => h("th", { scope: "col" }, name)))), h("tbody", {}, rows)),
    found.length > SHOWN && h("p", {}, `${found.length - SHOWN} more are on the page `, h("a", { href: link("traces") }, "Counterexamples"), "."));
}

function decisions(pages: Pages): HTMLElement {
  const rows = pages.why.map((item) => h("tr", {},
    h("td", { class: "quiet" }, `step ${item.step}`), h("td", {}, addressLink(item.at, item.name)),
    h("td", { class: "mono wide" }, item.text)));
  const table = (some: HTMLElement[]): HTMLElement => h("table", {}, h("thead", {}, h("tr", {},
    ["when", "where", "the program goes this way because"].map((name) => h("th", { scope: "col" }, name)))), h("tbody", {}, some));
  const last = rows.slice(-8), earlier = rows.slice(0, -8);
  return h("section", {}, h("h2", {}, "Why: what the input decides"),
    h("p", { class: "quiet" }, "in0, in1, … are the inputs in their order; u and s mark unsigned and signed comparisons, sext widens a signed number, a[7:0] are its bits 7 to 0, mem32[a] is the word at a."),
    earlier.length > 0 && h("details", {}, h("summary", {}, `${plural(earlier.length, "earlier decision")}`), table(earlier)),
    table(last),
    pages.why_left_out !== "" && h("p", { class: "quiet" }, pages.why_left_out));
}

function invariants(pages: Pages): HTMLElement {
  const rows = pages.invariants.slice(0, SHOWN).map((item) => h("tr", {},
    h("td", {}, addressLink(item.at, item.name)),
    h("td", { class: "mono wide" }, item.alternatives.map((literals, number) => [
      number > 0 && h("div", { class: "quiet" }, "or"),
      h("div", {}, literals.length ? literals.map((literal) => h("div", {}, literal)) : "(any state)")]))));
  return h("section", {}, h("h2", {}, "The proof: what always holds where"),
    h("p", {}, "Whenever control is at one of these places, one of its alternatives holds; control is nowhere else."),
    h("table", {}, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "at"), h("th", { scope: "col" }, "holds there"))),
      h("tbody", {}, rows)),
    pages.invariants.length > SHOWN && h("p", {}, `${pages.invariants.length - SHOWN} more: they are shown at their addresses on the page `,
      h("a", { href: link("code") }, "Code"), "."));
}

function refinements(pages: Pages): HTMLElement {
  return h("section", {}, h("h2", {}, "What every violation passes"),
    h("p", {}, "No run breaks the property without one of these; the cause is often there or just behind it."), h("ul", {}, pages.refinements.map((item) => h("li", {},
    item.is_event ? `${item.nodes.slice(0, 4).join(" or ")}, where ${item.what} happens` : item.what,
    item.lines.length > 0 && [h("p", {}, "If what follows is then allowed, refine the property:"), h("pre", {}, item.lines.join("\n"))]))));
}

function details(pages: Pages): HTMLElement {
  const facts: [string, string][] = [
    ["file", pages.subject.path], ["SHA-256", pages.subject.sha256 ?? "–"], ["instruction set", pages.subject.isa ?? "–"],
    ["entry", pages.subject.entry ?? "–"], ["command", pages.command.join(" ")], ["mcveto", pages.mcveto],
    ...(pages.verdict.found_by ? [["found by", `engine ${pages.verdict.found_by}`] as [string, string]] : []),
    ...Object.entries(pages.statistics).map(([name, value]): [string, string] => [COUNTED[name] ?? name, value.toLocaleString("en")]),
    ...Object.entries(pages.support).map(([name, value]): [string, string] => [name.replaceAll("_", " "), String(value)]),
  ];
  return h("details", {}, h("summary", {}, "File, command and figures"),
    h("table", {}, h("tbody", {}, facts.map(([name, value]) => h("tr", {}, h("th", { scope: "row" }, name), h("td", { class: "wide" }, value))))));
}
