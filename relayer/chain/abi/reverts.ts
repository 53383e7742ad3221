/** Maps reverts to the API's errors. */
import { AbiCoder, toBeHex, zeroPadValue, type ErrorFragment, type ParamType, type Result } from "ethers";
import {
  codeOfSolidityError,
  ERRORS,
  isErrorCode,
  KeywrightError,
  type ErrorCode,
  type ErrorFacts,
} from "../../../protocol/errors";
import { BUDGETS } from "../../../protocol/budgets";
import { CONTRACT } from "./contract";
import { lacksGas, RpcError } from "../../../protocol/rpc/errors";

/** The contract's `Scope`, in its order. */
const SCOPES = [
  "execute",
  "create_pkps",
  "create_groups",
  "delete_groups",
  "manage_actions",
  "add_pkp",
  "remove_pkp",
  "owner_only",
] as const;
const OWNER_ONLY = BigInt(SCOPES.indexOf("owner_only"));

/** Maps a refused call or estimate to its API error; other errors pass through. */
export function namedError(error: unknown): unknown {
  if (!(error instanceof RpcError)) return error;
  if (error.failure === "reverted") return revertError(error.data, error);
  if (error.failure === "needs_too_much_gas") {
    return new KeywrightError(
      "invalid_value",
      "This write needs more gas than one block allows; split it into several.",
      {},
      { cause: error },
    );
  }
  return error;
}

/** Maps a refused read to its API error: what it needs of gas is no fault of the request. */
export function readError(error: unknown): unknown {
  if (!(error instanceof RpcError) || !lacksGas(error)) return namedError(error);
  return new KeywrightError(
    "chain_unavailable",
    "This read needs more gas than the operator's RPC endpoints give a call; one with a higher limit can answer it.",
    {},
    // Until its operator has changed that.
    { cause: error, retryAfterSeconds: 60 },
  );
}

export function revertError(data: string | undefined, cause?: unknown): KeywrightError {
  const reason = data === undefined ? undefined : reasonOf(data);
  const code = reason === undefined ? undefined : apiCode(reason);
  if (reason === undefined || code === undefined) {
    return new KeywrightError("internal_error", "The contract refused without a reason it declares.", undefined, {
      cause: cause ?? new Error(`revert data ${data}`),
    });
  }
  const facts = factsOf(reason);
  return new KeywrightError(code, sentence(code, facts), facts, { cause });
}

interface Reason {
  readonly fragment: ErrorFragment;
  readonly args: Result;
}

/** Undefined for none that the contracts declare. */
function reasonOf(data: string): Reason | undefined {
  const fragment = declared().get(data.slice(0, SELECTOR_CHARS).toLowerCase());
  if (fragment === undefined) return undefined;
  const args = AbiCoder.defaultAbiCoder().decode(fragment.inputs, `0x${data.slice(SELECTOR_CHARS)}`);
  return { fragment, args };
}

const SELECTOR_CHARS = "0x".length + 8;
let errors: ReadonlyMap<string, ErrorFragment> | undefined;

/** By selector: to find one, `Interface.parseError` hashes the signature of each. */
function declared(): ReadonlyMap<string, ErrorFragment> {
  if (errors !== undefined) return errors;
  const found = new Map<string, ErrorFragment>();
  for (const contract of [BUDGETS, CONTRACT]) contract.forEachError((error) => found.set(error.selector, error));
  return (errors = found);
}

function apiCode({ fragment, args }: Reason): ErrorCode | undefined {
  if (fragment.name === "MissingScope" && args[0] === OWNER_ONLY) return "owner_only";
  const code = codeOfSolidityError(fragment.name);
  return isErrorCode(code) ? code : undefined;
}

function factsOf({ fragment, args }: Reason): ErrorFacts {
  const entries = fragment.inputs.map((input, index): [string, unknown] => [
    wireName(input),
    wireValue(input, args[index]),
  ]);
  // Omit the transaction's sender, an internal detail, and group 0 of account-wide scopes, which carries no
  // information.
  return Object.fromEntries(
    entries.filter(
      ([name, value]) => name !== "caller" && !(name === "group_id" && value === "0") && value !== "owner_only",
    ),
  );
}

const wireName = (input: ParamType): string => input.name.replace(/([A-Z])/g, "_$1").toLowerCase();

const HASHES = new Set(["id", "key", "action", "expected", "accountId", "derivationPath", "member"]);

function wireValue(input: ParamType, value: unknown): unknown {
  if (typeof value !== "bigint") return value;
  if (input.name === "scope") return SCOPES[Number(value)] ?? value.toString();
  return HASHES.has(input.name) ? zeroPadValue(toBeHex(value), 32) : value.toString();
}

function sentence(code: ErrorCode, facts: ErrorFacts): string {
  const said = Object.entries(facts).map(([name, value]) => `${name.replaceAll("_", " ")} ${String(value)}`);
  return said.length === 0 ? `${ERRORS[code].title}.` : `${ERRORS[code].title}: ${said.join(", ")}.`;
}
