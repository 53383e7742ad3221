/** For what a test knows to be there: the value, or a failure that says so. */
export function must<T>(value: T | null | undefined): T {
  if (value === null || value === undefined) throw new Error("Something this test takes for granted is not there.");
  return value;
}
