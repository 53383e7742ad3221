/** A test whose bound is a time: a busy machine may exceed it once, a fault does so on each of three tries. */
export function itInTime(title: string, test: (this: Mocha.Context) => Promise<unknown>): Mocha.Test {
  const added = it(title, test);
  added.retries(2);
  return added;
}
