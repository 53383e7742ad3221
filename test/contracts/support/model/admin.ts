import { ANY_PKP, settleAdminPayer } from "../state";
import { Groups } from "./groups";

/** The contract's admin, and the payers it appoints. */
export class Admin extends Groups {
  #onlyAdmin(): void {
    this.require(this.sender === this.state.admin, "NotAdmin", this.sender);
  }

  proposeAdmin(next: string): void {
    this.#onlyAdmin();
    this.mayHaveRole(next);
    if (next !== this.state.pendingAdmin) this.emit("AdminProposed", next);
    this.state.pendingAdmin = next;
  }

  cancelAdminProposal(): void {
    this.#onlyAdmin();
    this.require(this.state.pendingAdmin !== ANY_PKP, "NothingToCancel");
    this.emit("AdminProposalCancelled", this.state.pendingAdmin);
    this.state.pendingAdmin = ANY_PKP;
  }

  acceptAdmin(): void {
    this.require(this.sender === this.state.pendingAdmin, "NotPendingAdmin", this.sender);
    this.emit("AdminChanged", this.state.admin, this.sender);
    [this.state.admin, this.state.pendingAdmin] = [this.sender, ANY_PKP];
  }

  addApiPayer(payer: string): void {
    this.#onlyAdmin();
    this.mayHaveRole(payer);
    if (this.state.payers.has(payer)) return;
    const activeFrom = this.#activeFrom();
    this.state.payers.set(payer, activeFrom);
    if (activeFrom === this.now) this.emit("ApiPayerAdded", payer);
    else this.emit("ApiPayerScheduled", payer, activeFrom);
  }

  /** New payers wait once the first managed account exists. */
  #activeFrom(): bigint {
    return this.state.managedAccountExisted ? this.now + this.state.payerDelay : this.now;
  }

  removeApiPayer(payer: string): void {
    this.#onlyAdmin();
    this.require(this.state.payers.delete(payer), "UnknownApiPayer", payer);
    this.emit("ApiPayerRemoved", payer);
  }

  setAdminApiPayer(payer: string): void {
    this.#onlyAdmin();
    this.mayHaveRole(payer);
    settleAdminPayer(this.state, this.now);
    if (payer === this.state.adminApiPayer || payer === this.state.nextAdminApiPayer?.payer) return;
    const activeFrom = this.#activeFrom();
    if (activeFrom === this.now) {
      this.state.adminApiPayer = payer;
      this.emit("AdminApiPayerSet", payer);
    } else {
      this.state.nextAdminApiPayer = { payer, activeFrom };
      this.emit("AdminApiPayerScheduled", payer, activeFrom);
    }
  }

  cancelAdminApiPayer(): void {
    this.#onlyAdmin();
    settleAdminPayer(this.state, this.now);
    this.require(this.state.nextAdminApiPayer !== undefined, "NothingToCancel");
    this.emit("AdminApiPayerCancelled", this.state.nextAdminApiPayer.payer);
    this.state.nextAdminApiPayer = undefined;
  }
}
