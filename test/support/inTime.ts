/** A test whose bound is a time: a busy machine may exceed it once, a fault does so on each of three tries. */
export function itInTime(title: string, test: Mocha.AsyncFunc | Mocha.Func): void {
  it(title, test).retries(2);
}
