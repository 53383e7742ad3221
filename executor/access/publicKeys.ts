/**
 * Signed statements about public keys. Needs no chain read: only one path derives a PKP's address, so it suffices to
 * check that path and address match. The statement key is in the config document, which quotes cover.
 */
import { CURVES } from "../../protocol/curves";
import type { ExecutorAnswer, ExecutorRequest } from "../../protocol/executor";
import { parseAddress, type AccountId, type DerivationPath, type Hash32, type PkpId } from "../../protocol/ids";
import { statementBytes } from "../../protocol/publicKeys";
import type { Keyring } from "../keys/keyring";
import { publicKeyEntry } from "../keys/curves";
import type { StatementKey } from "../keys/statementKey";
import { inTurn } from "../loop";

export class PublicKeys {
  readonly #keyring: Keyring;
  readonly #keyNamespace: Hash32;
  readonly #statementKey: StatementKey;

  constructor(keyring: Keyring, keyNamespace: Hash32, statementKey: StatementKey) {
    this.#keyring = keyring;
    this.#keyNamespace = keyNamespace;
    this.#statementKey = statementKey;
  }

  /**
   * On the account's next turn of the loop.
   * @throws KeywrightError `unknown_path_kind`, `foreign_derivation_path`, `unknown_pkp` when account, path and address
   * do not match.
   */
  state(
    { accountId, pkpId, derivationPath }: ExecutorRequest<"publicKeys">,
    signal?: AbortSignal,
  ): Promise<ExecutorAnswer<"publicKeys">> {
    const account = accountId.toLowerCase() as AccountId;
    const path = derivationPath.toLowerCase() as DerivationPath;
    const pkp = parseAddress(pkpId) as PkpId;
    return inTurn(account, () => this.#statement(account, path, pkp), signal);
  }

  #statement(account: AccountId, path: DerivationPath, pkp: PkpId): ExecutorAnswer<"publicKeys"> {
    const keys = CURVES.map((curve) =>
      this.#keyring.withPkpOn(curve, account, path, pkp, (secret) => publicKeyEntry(curve, secret)),
    );
    const statement = { key_namespace: this.#keyNamespace, pkp_id: pkp, derivation_path: path, keys };
    const signature = `0x${this.#statementKey.sign(statementBytes(statement)).toString("hex")}`;
    return { ...statement, attestation: { public_key: this.#statementKey.publicKey, signature } };
  }
}
