/**
 * `Actions`: the operations the keyholder serves. Each call names a PKP or a CID; the keyholder decides whether it is
 * allowed.
 */
import { opRow, OPS, type OpName } from "../../../protocol/ops";
import type { RpcUrls } from "../types";
import type { Bridge } from "./bridge";
import { chainFunctions } from "./chains";
import { olderFunctions, type OldSignature, type Ops } from "./older";

/** A resolved import of the run; set by the host before the code starts. */
export interface ImportDetail {
  specifier: string;
  url: string;
  integrity: string;
  bytes: number;
}

const ALIASES: readonly (readonly [alias: string, name: string])[] = [
  ["getLitActionPrivateKey", "getActionPrivateKey"],
  ["getLitActionWalletAddress", "getActionWalletAddress"],
];

const namesLike = (pattern: RegExp): string =>
  Object.keys(OPS)
    .filter((name) => pattern.test(name))
    .join(", ");
const signing = (): string => `one of Actions.${namesLike(/^sign(?!.*AsAction)/)}; each returns the whole signature`;

/** Functions of older systems, and their replacement. Lists: an isolate makes them faster than objects. */
const REPLACED: readonly (readonly [name: string, instead: string | (() => string)])[] = [
  ["signAndCombine", signing],
  [
    "signAsAction",
    () => `one of Actions.${namesLike(/^sign.*AsAction/)}, or an ethers.Wallet over Actions.getActionPrivateKey()`,
  ],
  ["encrypt", "Actions.Encrypt({ pkpId, message })"],
  ["encrypt_bls", "Actions.Encrypt({ pkpId, message })"],
  ["decrypt", "Actions.Decrypt({ pkpId, ciphertext })"],
  ["decryptAndCombine", "Actions.Decrypt({ pkpId, ciphertext })"],
  ["decryptToSingleNode", "Actions.Decrypt({ pkpId, ciphertext })"],
  ["aesDecrypt", "Actions.Decrypt, or crypto.subtle with AES-GCM"],
  [
    "checkConditions",
    "a condition in the code itself: read the value with fetch or ethers and throw when it does not hold",
  ],
  ["call", "an import with an integrity hash; an action cannot call another action"],
  ["claimKey", "POST /core/v1/create_wallet, outside the action"],
  ["getPermissions", "the group's lists in the account contract"],
  ["getPermittedActions", "the group's lists in the account contract"],
  ["getPermittedAddresses", "the group's lists in the account contract"],
  ["getPermittedAuthMethods", "the group's lists in the account contract"],
  ["getPermittedAuthMethodScopes", "the group's lists in the account contract"],
  ["isPermittedAction", "the account contract's views"],
  ["isPermittedAddress", "the account contract's views"],
  ["isPermittedAuthMethod", "the account contract's views"],
  ["pubkeyToTokenId", "the PKP's address, which is its id"],
  ["verifyActionSignature", "ethers.verifyMessage or crypto.subtle, with Actions.getActionPublicKey({ ipfsId })"],
];

export interface ActionsParts {
  bridge: Bridge;
  setResponse(value: unknown): void;
  keepSignature(name: string, signature: OldSignature): void;
  setting(): { readonly imports: readonly ImportDetail[]; readonly rpcUrls: RpcUrls };
  log(text: string): void;
}

export function createActions({ bridge, setResponse, keepSignature, setting, log }: ActionsParts): object {
  const { parse } = JSON;
  const actions: Record<string, unknown> = {};
  for (const name in OPS) {
    actions[name] = async (args?: unknown): Promise<unknown> => {
      const { value } = await bridge.call(name, checked(name as OpName, args));
      return parse(value) as unknown;
    };
  }
  for (const [alias, name] of ALIASES) actions[alias] = actions[name];
  for (const [name, instead] of REPLACED) {
    actions[name] = () => {
      throw new Error(`Actions.${name} does not exist here. Use ${typeof instead === "string" ? instead : instead()}.`);
    };
  }
  for (const [name, call] of olderFunctions(actions as unknown as Ops, keepSignature)) actions[name] = call;
  for (const [name, call] of chainFunctions(() => setting().rpcUrls)) actions[name] = call;
  actions.setResponse = (args: unknown): void => {
    if (!isObject(args) || !("response" in args)) throw new TypeError("Actions.setResponse takes { response }");
    setResponse(args.response);
  };
  // Programs for older systems request the compressed key by this name.
  actions.getLitActionPublicKey = async (args?: unknown): Promise<unknown> => {
    const { compressed = false, ...rest } = isObject(args)
      ? args
      : { compressed: false, ...(args === undefined ? {} : { args }) };
    const key = (await (actions.getActionPublicKey as (args: unknown) => Promise<unknown>)(rest)) as string;
    return compressed === true ? compressedKey(key) : key;
  };
  actions.showImportDetails = (): (ImportDetail & { hash: string })[] => {
    const details = setting().imports.map((detail) => ({ ...detail, hash: detail.integrity }));
    for (const { specifier, url, bytes } of details) log(`${specifier} from ${url}, ${bytes} bytes\n`);
    return details;
  };
  return Object.freeze(actions);
}

/** Compresses a 65-byte point to its x coordinate and the parity of y; returns shorter keys unchanged. */
const compressedKey = (key: string): string =>
  key.length === 132 ? `0x${Number.parseInt(key.slice(-1), 16) % 2 === 0 ? "02" : "03"}${key.slice(4, 68)}` : key;

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null;

/** A plain copy with only the known fields; errors name missing and unknown ones. */
function checked(name: OpName, args: unknown): Record<string, unknown> {
  const { required, optional = [], text, bytesOrText } = opRow(name);
  const fields = [...required, ...optional];
  const usage = `Actions.${name}(${fields.length > 0 ? `{ ${fields.join(", ")} }` : ""})`;
  if (args === undefined && required.length === 0) return {};
  if (!isObject(args)) throw new TypeError(`${usage} takes one object`);
  for (const field of required) if (args[field] === undefined) throw new TypeError(`${usage}: ${field} is missing`);
  for (const field of Object.keys(args))
    if (!fields.includes(field)) throw new TypeError(`${usage}: unknown field ${field}`);
  if (text !== undefined && typeof args[text] !== "string") throw new TypeError(`${usage}: ${text} must be a string`);
  return Object.fromEntries(
    fields
      .filter((field) => args[field] !== undefined)
      .map((field) => [field, field === bytesOrText ? messageOf(usage, args[field]) : portable(args[field])]),
  );
}

/** Refuses objects: untrusted parameters could name bytes where the author expects text. */
function messageOf(usage: string, message: unknown): unknown {
  if (typeof message === "string") return message;
  if (message instanceof Uint8Array) return { bytes: portable(message) };
  throw new TypeError(`${usage}: message must be a string or a Uint8Array`);
}

/** Transactions and typed data contain bigints and bytes, which JSON lacks: sent as decimal text and hex. */
function portable(value: unknown, depth = 0): unknown {
  if (depth > 32) throw new RangeError("the argument is nested too deeply");
  if (typeof value === "bigint") return value.toString();
  if (value instanceof Uint8Array)
    return `0x${Array.from(value, (byte) => byte.toString(16).padStart(2, "0")).join("")}`;
  if (Array.isArray(value)) return value.map((item) => portable(item, depth + 1));
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, portable(item, depth + 1)]));
}
