/** Returns a value that must be present, or throws. */
export function must<T>(value: T | null | undefined): T {
  if (value === null || value === undefined) throw new Error("Something this test takes for granted is not there.");
  return value;
}
