/** The repository's own examples, some with their terms before the text, each with initial parameters. */
import encryptSecret from "../../../examples/encrypt-secret.js?raw";
import gateOnFetch from "../../../examples/gate-on-fetch.js?raw";
import hello from "../../../examples/hello.js?raw";
import identity from "../../../examples/action-identity.js?raw";
import priceOracle from "../../../examples/price-oracle/oracle.js?raw";
import readContract from "../../../examples/read-contract.js?raw";
import signMessage from "../../../examples/sign-message.js?raw";
import signTransaction from "../../../examples/sign-transaction.js?raw";
import signTypedData from "../../../examples/sign-typed-data.js?raw";

export interface Example {
  readonly name: string;
  readonly code: string;
  readonly params: Readonly<Record<string, unknown>>;
  /** Whether its parameters name a PKP. */
  readonly pkp: boolean;
}

export const SIGN_EXAMPLE: Example = {
  name: "Sign a message",
  code: signMessage,
  params: { message: "hello" },
  pkp: true,
};

/** Part of the code, so that whoever runs it chooses none of them. */
const ORACLE_TERMS =
  'const PAIR = "ETH/USD", SOURCES = ["https://example.com/a.json", "https://example.com/b.json"], QUORUM = 2;\n';
const GATE_TERMS = 'const SOURCE = "https://example.com/value.json", AT_LEAST = 10;\n';
const CONTRACT_TERMS = 'const RPC_URL = "https://example.com/rpc", TOKEN = "0x…";\n';

export const EXAMPLES: readonly Example[] = [
  { name: "Hello", code: hello, params: { name: "world" }, pkp: false },
  SIGN_EXAMPLE,
  { name: "Sign typed data", code: signTypedData, params: { amount: "1000000000000000000" }, pkp: true },
  {
    name: "Sign a transaction",
    code: signTransaction,
    params: { to: "0x000000000000000000000000000000000000dEaD", valueWei: "1000000000000000" },
    pkp: true,
  },
  { name: "Keep a secret", code: encryptSecret, params: { secret: "only for this PKP" }, pkp: true },
  { name: "Prove which code spoke", code: identity, params: { statement: "the sky is blue" }, pkp: false },
  {
    name: "Sign while a value allows it",
    code: GATE_TERMS + gateOnFetch,
    params: { message: "ok" },
    pkp: true,
  },
  {
    name: "Price oracle",
    code: ORACLE_TERMS + priceOracle,
    params: {},
    pkp: true,
  },
  {
    name: "Read a contract",
    code: CONTRACT_TERMS + readContract,
    params: { holder: "0x…" },
    pkp: true,
  },
];
