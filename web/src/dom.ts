// Elements with text in them, never markup: nothing here parses HTML.

type Child = Node | string | number | null | undefined | false | Child[];
type Handler = (event: never) => void;
type Props = Record<string, string | number | boolean | undefined | Handler>;

export function h<K extends keyof HTMLElementTagNameMap>(tag: K, props: Props = {}, ...children: Child[]):
  HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === false) continue;
    if (typeof value === "function") {
      element.addEventListener(name.slice(2), value as EventListener);
    } else if (name === "href" && !String(value).startsWith("#")) {
      throw new Error("links stay within the pages");
    } else {
      element.setAttribute(name, value === true ? "" : String(value));
    }
  }
  append(element, children);
  return element;
}

export function append(parent: Node, children: Child[]): void {
  for (const child of children) {
    if (Array.isArray(child)) append(parent, child);
    else if (child instanceof Node) parent.appendChild(child);
    else if (child !== null && child !== undefined && child !== false) {
      parent.appendChild(document.createTextNode(visible(String(child))));
    }
  }
}

// Characters that would reorder or hide the text around them are shown as their numbers.
export function visible(text: string): string {
  return text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g,
    (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

export function clear(element: Element): void {
  element.replaceChildren();
}

export function plural(count: number, noun: string, many = `${noun}s`): string {
  return `${count.toLocaleString("en")} ${count === 1 ? noun : many}`;
}

// Moves the focus among the children that can have it: arrows, Home, End.
export function rovingFocus(container: HTMLElement, selector: string, onFocus: (item: HTMLElement) => void = () => {}):
  void {
  const items = (): HTMLElement[] => Array.from(container.querySelectorAll<HTMLElement>(selector));
  container.addEventListener("keydown", (event) => {
    const all = items();
    const at = all.indexOf(document.activeElement as HTMLElement);
    if (at < 0) return;
    const to = { ArrowDown: at + 1, j: at + 1, ArrowUp: at - 1, k: at - 1, Home: 0, End: all.length - 1 }[event.key];
    const next = to === undefined ? undefined : all[Math.max(0, Math.min(all.length - 1, to))];
    if (!next || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    for (const item of all) item.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
    next.scrollIntoView({ block: "nearest" });
    onFocus(next);
  });
}
