/** A test whose bound is a time: a busy machine may exceed it once, a fault does so on each of three tries. */
export function itInTime(title: string, run: (this: Mocha.Context) => unknown): Mocha.Test {
  const test = it(title, run as Mocha.Func);
  test.retries(2);
  return test;
}
