/** Returns a value that must be present, or throws. */
export function must<T>(value: T | null | undefined): T {
  if (value === null || value === undefined) throw new Error("A value that this measurement needs is missing.");
  return value;
}
