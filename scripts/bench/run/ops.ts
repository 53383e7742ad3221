/**
 * Time of a run with each key operation, compared with signMessage: whole runs in the sandbox with real ops,
 * alternating, so that load affects all alike.
 */
import { createLocalRunner } from "../../action/localRun";
import { LEAD_IN } from "./http";

const DIGEST = `0x${"ab".repeat(32)}`;
const TRANSACTION = {
  type: 2,
  chainId: 1,
  nonce: 0,
  to: `0x${"11".repeat(20)}`,
  value: 1,
  gasLimit: 21_000,
  maxFeePerGas: 2,
  maxPriorityFeePerGas: 1,
};
const TYPED_DATA = {
  domain: { name: "Mail", chainId: 1 },
  types: { Mail: [{ name: "text", type: "string" }] },
  message: { text: "m" },
};

/** Operation → its argument beside `pkpId`. */
const OPERATIONS = {
  signMessage: { message: "m" },
  signTypedData: TYPED_DATA,
  signTransaction: { transaction: TRANSACTION },
  signDigest: { digest: DIGEST },
  signEd25519: { message: "m" },
  signSchnorr: { digest: DIGEST },
  "signSchnorr, taproot": { digest: DIGEST, merkleRoot: "0x" },
  signP256: { message: "m" },
  "getPublicKey, ed25519": { curve: "ed25519" },
  Encrypt: { message: "m" },
} as const satisfies Record<string, object>;

/** One code for all, since a child stays warm for one CID. */
const CODE = `async function main({ pkpId, operation, args }) { return Actions[operation]({ pkpId, ...args }); }`;

/** Milliseconds of `runs` runs of each operation. */
export async function measureOps(runs: number): Promise<Record<string, number[]>> {
  const runner = await createLocalRunner();
  const samples: Record<string, number[]> = Object.fromEntries(Object.keys(OPERATIONS).map((name) => [name, []]));
  try {
    for (let run = 0; run < runs + LEAD_IN; run++) {
      for (const [name, args] of Object.entries(OPERATIONS)) {
        const start = performance.now();
        const { error } = await runner.run(CODE, { operation: name.split(",")[0], args });
        if (error) throw new Error(`${name} failed: ${error.message}`);
        if (run >= LEAD_IN) samples[name]?.push(performance.now() - start);
      }
    }
    return samples;
  } finally {
    await runner.close();
  }
}
