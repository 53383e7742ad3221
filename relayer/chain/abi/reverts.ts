/** Maps reverts to the API's errors. */
import { type ErrorDescription, toBeHex, zeroPadValue, type ParamType } from "ethers";
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
import { RpcError } from "../../../protocol/rpc/errors";

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

export function revertError(data: string | undefined, cause?: unknown): KeywrightError {
  const description =
    data === undefined || data === "0x" ? null : (CONTRACT.parseError(data) ?? BUDGETS.parseError(data));
  const code = description === null ? undefined : apiCode(description);
  if (description === null || code === undefined) {
    return new KeywrightError(
      "internal_error",
      "The contract refused without a reason it declares.",
      {},
      { cause: cause ?? new Error(`revert data ${data}`) },
    );
  }
  const facts = factsOf(description);
  return new KeywrightError(code, sentence(code, facts), facts, { cause });
}

function apiCode({ name, args }: ErrorDescription): ErrorCode | undefined {
  if (name === "MissingScope" && args[0] === OWNER_ONLY) return "owner_only";
  const code = codeOfSolidityError(name);
  return isErrorCode(code) ? code : undefined;
}

function factsOf({ fragment, args }: ErrorDescription): ErrorFacts {
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
