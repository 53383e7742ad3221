/**
 * Hostile actions: what one run can do to the shared processes. Each ends by itself or by a limit, and each is charged.
 */
import { MIB } from "../../../protocol/limits";

export interface AbuseAttack {
  readonly name: string;
  readonly code: string;
  /** Expected outcomes of a run; `none` when it ends without error. */
  readonly ends: readonly string[];
  /** Parameters of the run beside the PKP. */
  readonly params?: Readonly<Record<string, unknown>>;
  /** How many accounts attack together; one unless said. */
  readonly accounts?: number;
}

export interface Surroundings {
  /** A server that discards requests and answers with 10 MiB. */
  readonly sinkUrl: string;
}

const LATTICE = `
  const fields = (i) => [1, 2].filter((s) => i + s < 60).map((s) => ({ name: "f" + s, type: "A" + (i + s) }));
  const types = Object.fromEntries(Array.from({ length: 60 }, (_, i) => ["A" + i, fields(i)]));`;
const DENSE = `
  const types = { M: [{ name: "n", type: "uint8[]" }] };
  const message = { n: Array.from({ length: 1400 }, () => 1) };`;
const hundred = (call: string): string => `await Promise.allSettled(Array.from({ length: 100 }, (_, i) => ${call}));`;

const ENDED_BY_LIMITS: readonly AbuseAttack[] = [
  {
    name: "code of 300 kB of declarations",
    code: Array.from({ length: 30_000 }, (_, i) => `let a${i.toString(36)};`).join(""),
    ends: ["none", "timed_out"],
  },
  {
    name: "memory up to the limit",
    code: `async function main() { const kept = []; for (;;) kept.push(new Uint8Array(${MIB}).fill(1)); }`,
    ends: ["threw", "timed_out", "out_of_memory", "sandbox_crashed"],
  },
  {
    name: "loops without an end",
    code: "async function main() { for (;;); }",
    ends: ["timed_out"],
  },
  {
    name: "loops without an end, by two accounts",
    code: "async function main() { for (;;) {} }",
    ends: ["timed_out"],
    accounts: 2,
  },
  {
    name: "logs and small ops without an end",
    code: `async function main({ pkpId }) {
      for (;;) {
        console.log("x".repeat(100));
        await Actions.signDigest({ pkpId, digest: "0x" + "11".repeat(32) });
      }
    }`,
    ends: ["limit_exceeded", "logs_too_large", "timed_out"],
  },
];

export function attacks({ sinkUrl }: Surroundings): AbuseAttack[] {
  return [
    {
      name: "typed data whose types form a lattice",
      code:
        `async function main({ pkpId }) { ${LATTICE} ` +
        `${hundred("Actions.signTypedData({ pkpId, domain: {}, types, message: {} })")} }`,
      ends: ["none", "timed_out"],
    },
    {
      name: "typed data at the size limits",
      code:
        `async function main({ pkpId }) { ${DENSE} ` +
        `${hundred("Actions.signTypedData({ pkpId, domain: {}, types, message })")} }`,
      ends: ["none", "timed_out"],
    },
    {
      name: "a hundred ops of 60 kB at once",
      code:
        `async function main({ pkpId }) { const message = "m".repeat(60000); ` +
        `${hundred("Actions.signMessage({ pkpId, message })")} }`,
      ends: ["none", "timed_out"],
    },
    {
      name: "a hundred ops of a megabyte at once, given up at once",
      code: `async function main({ pkpId }) {
        const message = "m".repeat(1000000);
        for (let i = 0; i < 100; i++) Actions.Encrypt({ pkpId, message }).catch(() => 0);
      }`,
      ends: ["none", "timed_out", "out_of_memory"],
    },
    {
      name: "values that throw in the keyholder",
      code: `async function main({ pkpId }) { ${hundred(`Actions.signMessage({ pkpId, message: "\\ud800" })`)} }`,
      ends: ["none", "timed_out"],
    },
    {
      name: "names that never resolve",
      code: `async function main() {
        const url = (i) => "http://never-" + i + "-" + Math.random() + ".test/";
        await Promise.allSettled(Array.from({ length: 50 }, (_, i) => fetch(url(i))));
      }`,
      ends: ["none", "timed_out"],
    },
    {
      name: "a private key read, then uploads of 10 MiB",
      code: `async function main() {
        await Actions.getActionPrivateKey();
        const body = new Uint8Array(${10 * MIB - 1}).fill(37);
        const url = (i) => (i % 2 ? "${sinkUrl}" : "http://127.0.0.1:1/");
        for (let i = 0; i < 50; i++) await fetch(url(i), { method: "POST", body }).catch(() => 0);
      }`,
      ends: ["none", "timed_out", "out_of_memory"],
    },
    {
      name: "answers of 10 MiB, fifty at once",
      code:
        "async function main() { await Promise.allSettled(Array.from({ length: 50 }, () => " +
        `fetch("${sinkUrl}"))); }`,
      ends: ["none", "timed_out", "out_of_memory"],
    },
    ...ENDED_BY_LIMITS,
  ];
}
