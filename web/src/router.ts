// Deep links: #/page/detail?key=value. Every state of a page that is worth sharing is in the address.

export interface Route { page: string; detail: string; query: URLSearchParams }

export function parseRoute(hash: string): Route {
  const text = hash.replace(/^#\/?/, "");
  const [path = "", query = ""] = text.split("?", 2);
  const [page = "", ...rest] = path.split("/");
  return { page: page || "verdict", detail: decoded(rest.join("/")), query: new URLSearchParams(query) };
}

export function link(page: string, detail = "", query: Record<string, string | number | undefined | null> = {}): string {
  const found = new URLSearchParams();
  for (const [key, value] of Object.entries(query)) {
    if (value !== undefined && value !== null && value !== "") found.set(key, String(value));
  }
  const tail = found.toString();
  return `#/${page}${detail ? `/${encodeURIComponent(detail)}` : ""}${tail ? `?${tail}` : ""}`;
}

// Changes the address without drawing the page again.
export function replaceRoute(hash: string): void {
  history.replaceState(null, "", hash);
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
