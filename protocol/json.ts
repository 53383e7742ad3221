/** The value of a JSON text; undefined if it is invalid (no JSON text decodes to undefined). */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
