/**
 * The key operations of a running action. One handler per run, bound to its key, CID and account: the action only names
 * a PKP, and the contract is asked about that PKP at its first use; the decision holds until the run ends.
 */
import { KeywrightError } from "../../protocol/errors";
import { isDenied, isOpName, opRow, type OpName, type PkpOp } from "../../protocol/ops";
import {
  actionHashOf,
  type AccountId,
  type ActionHash,
  type Cid,
  type DerivationPath,
  type PkpId,
} from "../../protocol/ids";
import type { KeyState } from "../../protocol/keyState";
import type { RunLimits } from "../../protocol/limits";
import { authorizePkp, type Authorization } from "../access/authorize";
import type { Chain } from "../chain/chain";
import type { Decision } from "../../protocol/decision";
import type { Keyring } from "../keys/keyring";
import type { Curve } from "../../protocol/curves";
import { publicKeyOn } from "../keys/curves";
import { addressOf } from "../keys/secp256k1";
import type { OpAnswer, OpCall, OpHandler } from "../sandbox/types";
import { inTurn } from "../loop";
import type { Budgets } from "../budgets/budgets";
import { OP_ARGUMENTS, whatIsWrong, type OpArguments } from "./arguments";
import {
  ed25519Signature,
  p256Signature,
  schnorrSignature,
  signDigest,
  signMessage,
  signTransaction,
  signTypedData,
} from "./signing";
import { decrypt, encrypt } from "./encryption";
import { OpRefusal } from "./refusal";
import type { TypedDataLimits } from "./typedData";
import { parseJson } from "../../protocol/json";
import { defined } from "../../protocol/defined";

export interface OpsParts {
  readonly chain: Chain;
  readonly keyring: Keyring;
  /** Whether getPrivateKey is enabled at all. */
  readonly privateKeysAllowed: boolean;
  readonly budgets: Pick<Budgets, "spend">;
  readonly limits: Pick<RunLimits, "signBytes" | "typedDataBytes" | keyof TypedDataLimits>;
}

type RunPermission = Authorization & { readonly key?: KeyState };

/**
 * `pkpId` is the PKP the run was already authorized for, if it named one. `onUsed` receives each PKP that an op
 * has used.
 */
export function createOps(
  parts: OpsParts,
  run: RunPermission,
  pkpId?: PkpId,
  onUsed: (pkpId: PkpId) => void = () => undefined,
): OpHandler {
  const ops = new RunOps(parts, run, pkpId, onUsed);
  return (call) => ops.answer(call);
}

/** More than the arguments of any other op need. */
const SHORT_ARGUMENTS_BYTES = 4_096;
/** More fields than any op has. An unknown one is named in the refusal; thousands are not even looked at. */
const MAX_FIELDS = 32;

/** The use of a PKP; reading its public key cannot be denied. */
type PkpUse = PkpOp | "getPublicKey";

/** `over`: aborted when the run is. */
interface Wanted<O extends PkpUse = PkpUse> {
  readonly op: O;
  readonly pkpId: PkpId;
  readonly over: AbortSignal | undefined;
}
interface Granted {
  readonly account: AccountId;
  readonly path: DerivationPath;
  readonly actionByName: boolean;
}
interface Exposed {
  readonly value: string;
  readonly exposes?: string[];
}
/** The synchronous rest of an op, after everything was awaited. */
type Work = () => Exposed;
/** Work of an op that awaits nothing is done in the turn in which its arguments were read. */
type Served = Promise<Work | Exposed> | Work;
type Begun = Promise<Work | Exposed> | Exposed;
type Ops = { [N in OpName]: (args: OpArguments<N>, over?: AbortSignal) => Served };

class RunOps {
  readonly #decisions = new Map<PkpId, Promise<Decision>>();
  readonly #ops: Ops;
  #actionHash: ActionHash | undefined;
  readonly #parts: OpsParts;
  readonly #run: RunPermission;
  readonly #onUsed: (pkpId: PkpId) => void;

  constructor(parts: OpsParts, run: RunPermission, pkpId: PkpId | undefined, onUsed: (pkpId: PkpId) => void) {
    this.#parts = parts;
    this.#run = run;
    this.#onUsed = onUsed;
    if (pkpId !== undefined) this.#decisions.set(pkpId, Promise.resolve(run.decision));
    const signs =
      <Args>(op: PkpOp, curve: Curve, sign: (secret: Buffer, args: Args) => string) =>
      (args: Args & { readonly pkpId: PkpId }, over?: AbortSignal) =>
        this.#withPkp({ op, curve, pkpId: args.pkpId, over }, (secret) => sign(secret, args));
    this.#ops = {
      signMessage: signs("signMessage", "secp256k1", signMessage),
      signTypedData: signs("signTypedData", "secp256k1", (key, args) => signTypedData(key, args, parts.limits)),
      signTransaction: signs("signTransaction", "secp256k1", signTransaction),
      signDigest: signs("signDigest", "secp256k1", signDigest),
      signEd25519: signs("signEd25519", "ed25519", ed25519Signature),
      signSchnorr: signs("signSchnorr", "bip340", schnorrSignature),
      signP256: signs("signP256", "p256", p256Signature),
      getPublicKey: ({ pkpId: id, curve }, over) =>
        this.#withPkp({ op: "getPublicKey", curve, pkpId: id, over }, (secret) => publicKeyOn(curve, secret)),
      Encrypt: ({ pkpId: id, message }, over) =>
        this.#withEncryption({ op: "Encrypt", pkpId: id, over }, (key, scope) => encrypt(key, scope, message)),
      Decrypt: ({ pkpId: id, ciphertext }, over) =>
        this.#withEncryption({ op: "Decrypt", pkpId: id, over }, (key, scope) => decrypt(key, scope, ciphertext)),
      getPrivateKey: ({ pkpId: id }, over) => this.#privateKey({ op: "getPrivateKey", pkpId: id, over }),
      getActionPrivateKey: () => () => this.#parts.keyring.withAction(this.#run.cid, exposedKey),
      signEd25519AsAction: (args) =>
        this.#withAction("ed25519", this.#run.cid, (secret) => ed25519Signature(secret, args)),
      signSchnorrAsAction: (args) =>
        this.#withAction("bip340", this.#run.cid, (secret) => schnorrSignature(secret, args)),
      signP256AsAction: (args) => this.#withAction("p256", this.#run.cid, (secret) => p256Signature(secret, args)),
      getActionPublicKey: ({ ipfsId, curve }) =>
        this.#withAction(curve, ipfsId, (secret) => publicKeyOn(curve, secret)),
      getActionWalletAddress: ({ ipfsId }) => this.#withAction("secp256k1", ipfsId, addressOf),
      spend: (args, over) => this.#spend(args, over),
    };
  }

  /** Never rejects because of the action; a rejection is a fault of the service (the chain cannot be read). */
  async answer(call: OpCall): Promise<OpAnswer> {
    try {
      return await this.#perform(call);
    } catch (error) {
      const refusal = call.over?.aborted === true ? RUN_IS_OVER : asRefusal(error);
      if (refusal === undefined) throw error;
      return { ok: false, code: refusal.code, message: refusal.message };
    }
  }

  async #perform({ name, args, over }: OpCall): Promise<OpAnswer> {
    if (!isOpName(name)) throw new OpRefusal("invalid_arguments", `there is no op ${name.slice(0, 64)}`);
    this.#requireSize(name, args);
    const account = this.#run.decision.accountId;
    const begin = (): Begun => this.#begin(name, args, over);
    // To read a spend takes less time than to hand out a turn.
    const begun = await (name === "spend" ? begin() : inTurn(account, begin, over));
    return typeof begun === "function" ? inTurn(account, () => said(begun()), over) : said(begun);
  }

  #begin(name: OpName, args: string, over: AbortSignal | undefined): Begun {
    const parsed = OP_ARGUMENTS[name].safeParse(fieldsOf(args));
    if (!parsed.success) throw new OpRefusal("invalid_arguments", `${name}: ${whatIsWrong(parsed.error)}`);
    const serve = this.#ops[name] as (args: unknown, over?: AbortSignal) => Served;
    const served = serve(parsed.data, over);
    return typeof served === "function" ? served() : served;
  }

  /** Parsing and hashing block the thread shared by all ops, so the size per op is limited. */
  #requireSize(name: OpName, args: string): void {
    const { limit } = opRow(name);
    if (limit === "none") return;
    const most = limit === undefined ? SHORT_ARGUMENTS_BYTES : this.#parts.limits[limit];
    if (Buffer.byteLength(args, "utf8") <= most) return;
    const advice = limit === undefined ? "" : "; sign a digest of them instead";
    throw new OpRefusal("limit_exceeded", `the arguments of ${name} are larger than ${most} bytes${advice}`);
  }

  async #withPkp(wanted: Wanted & { readonly curve: Curve }, use: (secret: Buffer) => string): Promise<Work> {
    const { curve, pkpId } = wanted;
    const { account, path } = await this.#granted(wanted);
    return this.#used(pkpId, () => ({ value: this.#parts.keyring.withPkpOn(curve, account, path, pkpId, use) }));
  }

  /** Once it has happened: the contract allows any address, and the work fails for one that is not the account's. */
  #used(pkpId: PkpId, work: () => Exposed): Work {
    return () => {
      const done = work();
      this.#onUsed(pkpId);
      return done;
    };
  }

  #withAction(curve: Curve, cid: Cid, use: (secret: Buffer) => string): Work {
    return () => ({ value: this.#parts.keyring.withActionOn(curve, cid, use) });
  }

  async #withEncryption(
    wanted: Wanted<PkpOp>,
    use: (key: Buffer, scope: { account: AccountId; pkpId: PkpId }) => string,
  ): Promise<Work> {
    const { pkpId } = wanted;
    const { account, path } = await this.#granted(wanted);
    return this.#used(pkpId, () => {
      this.#parts.keyring.requirePkp(account, path, pkpId);
      return { value: this.#parts.keyring.withEncryptionKey(account, pkpId, (key) => use(key, { account, pkpId })) };
    });
  }

  /** Requires that the deployment allows it, and that a group lists this very action by name. */
  async #privateKey(wanted: Wanted<"getPrivateKey">): Promise<Work> {
    if (!this.#parts.privateKeysAllowed)
      throw denied(
        "getPrivateKey is switched off on this service; use signMessage, signTypedData, signTransaction or signDigest",
      );
    const { account, path, actionByName } = await this.#granted(wanted);
    if (!actionByName) throw denied("getPrivateKey needs a group that lists this action by name, not by the wildcard");
    return this.#used(wanted.pkpId, () => this.#parts.keyring.withPkp(account, path, wanted.pkpId, exposedKey));
  }

  /** Counted under the CID of the code that runs, which the keyholder has computed: no argument can name another. */
  async #spend({ budget: name, window, amount, limit }: OpArguments<"spend">, over?: AbortSignal): Promise<Exposed> {
    const { cid, decision, firedBy } = this.#run;
    const { keyId, key } = firedBy ?? this.#run;
    const action = (this.#actionHash ??= actionHashOf(cid));
    const budget = { account: decision.accountId, action, name, window };
    const payer = { cid, keyId, isAccountKey: key?.isAccountKey ?? false, capCents: key?.capCents ?? 0n };
    const left = await this.#parts.budgets.spend(budget, payer, { amount, limit, over });
    return { value: String(left) };
  }

  /** Asks once per PKP of a run and applies the decision to each op. A failed request is repeated. */
  async #granted({ op, pkpId, over }: Wanted): Promise<Granted> {
    const asked = this.#decisions.get(pkpId) ?? authorizePkp(this.#parts.chain, this.#run, pkpId, over);
    this.#decisions.set(pkpId, asked);
    try {
      const { accountId, derivationPath, actionByName, deniedOps } = await asked;
      if (derivationPath === undefined) throw denied("the key's account has no such PKP");
      if (op !== "getPublicKey" && isDenied(deniedOps, op))
        throw denied(`the account's owner has denied ${op} with this PKP`);
      return { account: accountId, path: derivationPath, actionByName };
    } catch (error) {
      if (!(error instanceof KeywrightError)) throw error;
      // Names the PKP, so that a record of the run tells which one lacked the permission.
      if (!error.retryable) throw denied(`${error.detail} PKP: ${pkpId}`);
      this.#decisions.delete(pkpId);
      throw error;
    }
  }
}

const said = ({ value, exposes }: Exposed): OpAnswer => ({
  ok: true,
  value: JSON.stringify(value),
  ...defined({ exposes }),
});

/**
 * The only place where a key becomes text: the result of getPrivateKey and getActionPrivateKey, which the tripwire
 * watches from here on.
 */
function exposedKey(secret: Buffer): Exposed {
  const value = `0x${secret.toString("hex")}`;
  return { value, exposes: [value] };
}

const RUN_IS_OVER = new OpRefusal("limit_exceeded", "the run is over");

/** A denial by the contract (or the keyring's checks) ends the run; a retryable failure is the service's. */
function asRefusal(error: unknown): OpRefusal | undefined {
  if (error instanceof OpRefusal) return error;
  return error instanceof KeywrightError && !error.retryable ? denied(error.detail) : undefined;
}

function denied(message: string): OpRefusal {
  return new OpRefusal("permission_denied", message);
}

function fieldsOf(args: string): unknown {
  const fields = parseJson(args);
  if (typeof fields === "object" && fields !== null && Object.keys(fields).length > MAX_FIELDS)
    throw new OpRefusal("invalid_arguments", `the arguments have more than ${MAX_FIELDS} fields`);
  return fields;
}
