/**
 * Simulates several contract calls in sequence with one `eth_call`, and returns success, gas used and revert data of
 * each. It runs as a code override of the payer's (empty) account, so that the contract sees the payer as the sender;
 * it is never deployed.
 */
import { getBytes, toBeHex, zeroPadValue } from "ethers";

/** The probe in Yul; `BATCH_PROBE` is its bytecode. */
export const BATCH_PROBE_SOURCE = `object "BatchProbe" {
  code {
    let target := calldataload(0)
    let out := 0x20000
    for { let at := 32 } lt(at, calldatasize()) {} {
      if lt(gas(), 1100000) { break }
      let size := calldataload(at)
      at := add(at, 32)
      calldatacopy(0, at, size)
      at := add(at, size)
      let before := gas()
      let success := call(1000000, target, 0, 0, size, 0, 0)
      mstore(add(out, 32), sub(before, gas()))
      mstore(out, success)
      let length := 0
      if iszero(success) {
        length := returndatasize()
        if gt(length, 1024) { length := 1024 }
      }
      mstore(add(out, 64), length)
      returndatacopy(add(out, 96), 0, length)
      out := add(out, add(96, length))
    }
    return(0x20000, sub(out, 0x20000))
  }
}
`;

export const BATCH_PROBE =
  "0x6202000060003560205b368110601d575b6201ffff19830162020000f35b6210c8e05a1060835780602060609235828183" +
  "8195016000370101936000805a93818088620f4240f1915a9003602082015281815260009115606e575b8160408201528160" +
  "008483013e0101916009565b3d9150610400821115605a576104009150605a565b601056";

/** Longer calls are simulated individually: the probe's memory layout has no space for them. */
export const MAX_PROBED_BYTES = 0x1f000;

export interface ProbedCall {
  readonly succeeded: boolean;
  readonly gas: bigint;
  /** Revert data; empty on success. */
  readonly reason: string;
}

export function encodeProbe(contract: string, calls: readonly string[]): string {
  const parts = calls.map((call) => zeroPadValue(toBeHex((call.length - 2) / 2), 32).slice(2) + call.slice(2));
  return zeroPadValue(contract, 32) + parts.join("");
}

/**
 * One result per call, in order, as far as the gas sufficed. @throws RangeError if the data cannot be a probe's result.
 */
export function decodeProbe(data: string): readonly ProbedCall[] {
  const bytes = Buffer.from(getBytes(data));
  const found: ProbedCall[] = [];
  for (let at = 0; at < bytes.length;) {
    const [success, gas, length] = [0, 32, 64].map((offset) =>
      Number(BigInt(`0x${bytes.subarray(at + offset, at + offset + 32).toString("hex") || "0"}`)),
    );
    const end = at + 96 + (length ?? 0);
    if (!(end <= bytes.length)) throw new RangeError("the probe's answer ends early");
    found.push({
      succeeded: success === 1,
      gas: BigInt(gas ?? 0),
      reason: `0x${bytes.subarray(at + 96, end).toString("hex")}`,
    });
    at = end;
  }
  return found;
}
