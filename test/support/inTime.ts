/** A test whose bound is a time: a busy machine may exceed it once, a fault does so on each of three tries. */
export function itInTime(title: string, test: (this: Mocha.Context) => unknown): Mocha.Test {
  return it(title, test as Mocha.Func).retries(2);
}
