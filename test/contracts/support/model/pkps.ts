import { ANY_PKP } from "../state";
import { UsageKeys } from "./usageKeys";

const LOW_16_BYTES = (1n << 128n) - 1n;

export class Pkps extends UsageKeys {
  registerWalletDerivation(actor: bigint, wallet: string, path: bigint, name: string, description: string): void {
    const account = this.authorize(actor, "createPkps");
    const id = this.accountOf(actor);
    this.require(wallet !== ANY_PKP, "ZeroAddress");
    const kind = path >> 248n;
    this.require(kind === 1n || kind === 2n, "UnknownPathKind", kind);
    this.require((path & LOW_16_BYTES) === (id & LOW_16_BYTES), "ForeignDerivationPath", path, id);
    this.shortEnough({ name, description });
    const known = account.paths.get(wallet);
    if (known !== undefined) {
      const labels = account.pkps.get(wallet);
      this.require(
        known === path && (!labels || (labels.name === name && labels.description === description)),
        "PkpTaken",
        wallet,
      );
      return;
    }
    account.paths.set(wallet, path);
    if (kind === 1n) account.pkps.set(wallet, { name, description, deniedOps: 0n });
    this.emit("WalletDerivationRegistered", id, wallet, path, name, description, actor);
  }

  updatePkpMetadata(id: bigint, wallet: string, name: string, description: string): void {
    const pkp = this.authorize(id, "ownerOnly").pkps.get(wallet);
    this.require(pkp !== undefined, "UnknownPkp", wallet);
    if (this.relabel(pkp, name, description)) this.emit("PkpUpdated", id, wallet, name, description, id);
  }

  setPkpOps(id: bigint, wallet: string, deniedOps: bigint): void {
    const pkp = this.authorize(id, "ownerOnly").pkps.get(wallet);
    this.require(pkp !== undefined, "UnknownPkp", wallet);
    this.atMost(deniedOps, 128n);
    if (pkp.deniedOps !== deniedOps) this.emit("PkpOpsSet", id, wallet, deniedOps, id);
    pkp.deniedOps = deniedOps;
  }
}
