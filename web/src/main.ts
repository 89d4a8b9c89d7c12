// The frame of the pages: navigation, theme, keys, and which page is shown.

import "./viewer.css";
import { readPages } from "./data";
import { clear, h } from "./dom";
import { codePage } from "./page_code";
import { graphPage } from "./page_graph";
import { timelinePage } from "./page_timeline";
import { tracesPage } from "./page_traces";
import { verdictPage } from "./page_verdict";
import { link, parseRoute, Route } from "./router";
import { shown, SIGNS } from "./words";

const pages = readPages();
const PAGES: [string, string, (route: Route) => HTMLElement][] = [
  ["verdict", "Verdict", () => verdictPage(pages)],
  ["traces", "Counterexamples", (route) => tracesPage(pages, route)],
  ["code", "Code", (route) => codePage(pages, route)],
  ["graph", "Graph", (route) => graphPage(pages, route)],
  ["timeline", "Timeline", (route) => timelinePage(pages, route)],
];
const THEMES = ["auto", "light", "dark"];

const main = h("main", { id: "main", tabindex: -1 });
const nav = h("nav", { "aria-label": "Pages" });
const theme = h("button", { type: "button", class: "theme", title: "light, dark or as the system has it (t)",
  onclick: nextTheme });
const help = h("dialog", { class: "help", "aria-label": "Keys" });

function draw(): void {
  const route = parseRoute(location.hash);
  const at = Math.max(0, PAGES.findIndex(([name]) => name === route.page));
  clear(nav);
  PAGES.forEach(([name, title], number) => {
    nav.append(h("a", { href: link(name), "aria-current": number === at ? "page" : undefined, title: `key ${number + 1}` },
      title));
  });
  clear(main);
  main.append(PAGES[at]![2](route));
  document.title = `${PAGES[at]![1]}: ${shown(pages.subject.name)} - mcveto`;
}

function setTheme(name: string): void {
  if (name === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = name;
  theme.textContent = `theme: ${name}`;
  try {
    localStorage.setItem("mcveto-theme", name);
  } catch { /* not kept */ }
  window.dispatchEvent(new Event("mcveto-theme"));
}

function nextTheme(): void {
  const now = document.documentElement.dataset.theme ?? "auto";
  setTheme(THEMES[(THEMES.indexOf(now) + 1) % THEMES.length]!);
}

function startTheme(): void {
  let name = "auto";
  try {
    name = localStorage.getItem("mcveto-theme") ?? "auto";
  } catch { /* as the system has it */ }
  setTheme(THEMES.includes(name) ? name : "auto");
}

const KEYS: [string, string][] = [
  ["1 … 5", "the pages, in their order"],
  ["/", "search on this page"],
  ["t", "light, dark, or as the system has it"],
  ["↑ ↓ or k j", "the step before or after; in the graph: along the edges"],
  ["← →", "in the graph: to the neighbour; with Shift: move the view"],
  ["+ − 0", "in the graph: closer, farther, everything"],
  ["Enter", "open: a step or a block in the code"],
  ["n p", "code and timeline: next and previous step"],
  ["Space", "timeline: play or pause"],
  ["?", "this help"],
];

function key(event: KeyboardEvent): void {
  const target = event.target as HTMLElement;
  const writes = target.matches("input:not([type=checkbox]):not([type=radio]):not([type=range]), textarea, select");
  if (event.ctrlKey || event.altKey || event.metaKey || (writes && event.key !== "Escape")) return;
  const number = "12345".indexOf(event.key);
  if (number >= 0) location.hash = link(PAGES[number]![0]);
  else if (event.key === "t") nextTheme();
  else if (event.key === "?") help.open ? help.close() : help.showModal();
  else if (event.key === "/") {
    const search = main.querySelector<HTMLInputElement>("input[type=search]");
    if (!search) return;
    search.focus();
  } else if (event.key === "Escape" && writes) target.blur();
  else return;
  event.preventDefault();
}

function start(): void {
  const app = document.getElementById("app")!;
  help.append(h("h2", {}, "Keys"), h("table", {}, KEYS.map(([keys, what]) => h("tr", {}, h("th", {}, keys), h("td", {}, what)))),
    h("form", { method: "dialog" }, h("button", {}, "close")));
  const verdict = pages.verdict.kind;
  app.append(
    h("a", { class: "skip", href: "#main", onclick: (event: Event) => { event.preventDefault(); main.focus(); } },
      "to the content"),
    h("header", {},
      h("span", { class: `badge ${verdict}` }, `${SIGNS[verdict] ?? "?"} ${verdict.toUpperCase()}`),
      h("span", { class: "name", title: shown(pages.subject.path) }, pages.subject.name),
      nav, theme,
      h("button", { type: "button", title: "keys (?)", "aria-label": "keys", onclick: () => help.showModal() }, "?")),
    main, help);
  startTheme();
  window.addEventListener("hashchange", draw);
  document.addEventListener("keydown", key);
  draw();
}

start();
