/** Texts kept in this browser. Storage may be disabled or full: then they end with the page. */
type Place = "localStorage" | "sessionStorage";

export function stored(place: Place, name: string): string | undefined {
  try {
    return window[place].getItem(name) ?? undefined;
  } catch {
    return undefined;
  }
}

/** Without a text nothing is kept under the name. */
export function store(place: Place, name: string, text: string | undefined): void {
  try {
    if (text === undefined) window[place].removeItem(name);
    else window[place].setItem(name, text);
  } catch {
    // Nothing depends on it.
  }
}

/** What this tab keeps under the name; nothing where it is unreadable. */
export function storedList<Item>(name: string): readonly Item[] {
  try {
    const list: unknown = JSON.parse(stored("sessionStorage", name) ?? "[]");
    return Array.isArray(list) ? (list as Item[]) : [];
  } catch {
    return [];
  }
}
