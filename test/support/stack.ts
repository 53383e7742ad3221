/**
 * One whole stack for all tests of a mocha process that take it as it comes: chain, contract, executor, relayer, doubles. Started by the first file that asks,
 * stopped after the last of all. Tests that kill services or need other settings start their own with `startStack`.
 */
import { startStack, type Stack } from "../../scripts/dev/stack";

let shared: Promise<Stack> | undefined;

/** Call inside `describe`; the answer gives the stack once the tests run. */
export function useStack(): () => Stack {
  let stack: Stack | undefined;
  before(async function () {
    this.timeout(120_000);
    shared ??= startStack();
    stack = await shared;
  });
  return () => {
    if (stack === undefined) throw new Error("the stack is there once the tests run, not while they are described");
    return stack;
  };
}

// Imported at the top of a test file, this is a hook of mocha's root suite.
after(async function () {
  this.timeout(20_000);
  const stack = await shared?.catch(() => undefined);
  await stack?.stop();
});
