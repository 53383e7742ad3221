/**
 * One whole stack shared by all tests of a mocha process that need no special settings: chain, contract, executor,
 * relayer, doubles, an identity provider. Started on first use, stopped after the last test. Tests that kill services
 * or need other settings start their own with `startStack`.
 */
import { startStack, type Stack } from "../../scripts/dev/stack";
import type { JsonRpcProvider } from "ethers";
import { connect } from "./chain";
import { newApiAccount, type ApiAccount } from "./http";
import { startIdentityProvider, type IdentityProvider } from "./identityProvider";

interface Shared {
  readonly stack: Stack;
  readonly identity: IdentityProvider;
}

/** All tests of a process share one address: lift its rate limits. */
const GENEROUS = {
  RATE_LIMIT_ADDRESS_PER_SECOND: "1000000",
  RATE_LIMIT_STRANGERS_PER_MINUTE: "1000000",
  RATE_LIMIT_HEAVY_PER_MINUTE: "1000000",
  RATE_LIMIT_PAYMENTS_PER_MINUTE: "1000000",
  RATE_LIMIT_MINTS_PER_MINUTE: "1000000",
  RATE_LIMIT_KEY_PER_SECOND: "100000",
};

let shared: Promise<Shared> | undefined;

async function startShared(): Promise<Shared> {
  const identity = await startIdentityProvider();
  try {
    return {
      stack: await startStack({ env: { IDENTITY_ISSUERS: JSON.stringify([identity.issuer]), ...GENEROUS } }),
      identity,
    };
  } catch (error) {
    identity.stop();
    throw error;
  }
}

function useShared<T>(part: (all: Shared) => T): () => T {
  let all: Shared | undefined;
  before(async function () {
    this.timeout(120_000);
    shared ??= startShared();
    all = await shared;
  });
  return () => {
    if (all === undefined) throw new Error("the stack is there once the tests run, not while they are described");
    return part(all);
  };
}

/** Call inside `describe`; the returned function gives the stack once the tests run. */
export const useStack = (): (() => Stack) => useShared(({ stack }) => stack);

/** A new API-mode account on the shared stack; call inside `describe`. */
export function useApiAccount(): () => ApiAccount {
  const stack = useStack();
  let account: ApiAccount | undefined;
  before(async () => void (account = await newApiAccount(stack().baseUrl)));
  return () => {
    if (account === undefined) throw new Error("the account is there once the tests run");
    return account;
  };
}

/** A provider of the shared stack's chain; call inside `describe`. */
export function useProvider(): () => JsonRpcProvider {
  const stack = useStack();
  let provider: JsonRpcProvider | undefined;
  before(() => void (provider = connect(stack().rpcUrl)));
  after(() => provider?.destroy());
  return () => {
    if (provider === undefined) throw new Error("the provider is there once the tests run");
    return provider;
  };
}

/** The identity provider the shared stack trusts; call inside `describe`. */
export const useIdentityProvider = (): (() => IdentityProvider) => useShared(({ identity }) => identity);

// Imported at the top of a test file, this is a hook of mocha's root suite.
after(async function () {
  this.timeout(20_000);
  const all = await shared?.catch(() => undefined);
  await all?.stack.stop();
  all?.identity.stop();
});
