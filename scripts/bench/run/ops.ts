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

/** Any action's CID. */
const CID = "QmbFMke1KXqnYyBBWxB74N4c5SBnJMVAiMNRcGu6x1AwQH";

/** Operations with a PKP → their argument beside `pkpId`. */
const WITH_PKP = {
  signMessage: { message: "m" },
  signTypedData: TYPED_DATA,
  signTransaction: { transaction: TRANSACTION },
  signDigest: { digest: DIGEST },
  signEd25519: { message: "m" },
  signSchnorr: { digest: DIGEST },
  "signSchnorr, taproot": { digest: DIGEST, merkleRoot: "0x" },
  signP256: { message: "m" },
  "getPublicKey, ed25519": { curve: "ed25519" },
  getPrivateKey: {},
  Encrypt: { message: "m" },
} as const satisfies Record<string, object>;

/** Operations of the action's own identity → their argument. */
const AS_ACTION = {
  signEd25519AsAction: { message: "m" },
  signSchnorrAsAction: { digest: DIGEST },
  signP256AsAction: { message: "m" },
  getActionPrivateKey: {},
  getActionPublicKey: { ipfsId: CID },
  getActionWalletAddress: { ipfsId: CID },
} as const satisfies Record<string, object>;

/** One code for all, since a child stays warm for one CID. */
const CODE = `async function main({ pkpId, operation, args, asAction }) {
  const value = await Actions[operation](asAction ? args : { pkpId, ...args });
  return operation === "Encrypt" ? value : "";
}`;

/** Milliseconds of `runs` runs of each operation. */
export async function measureOps(runs: number): Promise<Record<string, number[]>> {
  const runner = await createLocalRunner();
  const run = async (params: Record<string, unknown>): Promise<string> => {
    const { response, error } = await runner.run(CODE, params);
    if (error) throw new Error(`${JSON.stringify(params)} failed: ${error.message}`);
    return JSON.parse(response) as string;
  };
  try {
    const operations = paramsOf(await run({ operation: "Encrypt", args: WITH_PKP.Encrypt }));
    const samples: Record<string, number[]> = Object.fromEntries(operations.map(([name]) => [name, []]));
    for (let i = 0; i < runs + LEAD_IN; i++) {
      for (const [name, params] of operations) {
        const start = performance.now();
        await run(params);
        if (i >= LEAD_IN) samples[name]?.push(performance.now() - start);
      }
    }
    return samples;
  } finally {
    await runner.close();
  }
}

/** Each operation's name in the table and the parameters of its run. */
function paramsOf(ciphertext: string): [string, Record<string, unknown>][] {
  const withPkp = Object.entries({ ...WITH_PKP, Decrypt: { ciphertext } });
  return [
    ...withPkp.map(([name, args]): [string, Record<string, unknown>] => [
      name,
      { operation: name.split(",")[0], args },
    ]),
    ...Object.entries(AS_ACTION).map(([name, args]): [string, Record<string, unknown>] => [
      name,
      { operation: name, args, asAction: true },
    ]),
  ];
}
