import { getCreateAddress } from "ethers";
import { newAccountState, type Labels } from "../state";
import { packedId } from "./calls";
import { Rules } from "./rules";

/** Accounts: their creation, owner, names and freeze. */
export class Accounts extends Rules {
  newAccount(id: bigint, managed: boolean, name: string, description: string, owner: string): void {
    this.require(managed ? this.isPayer() : this.sender === owner, "NotAuthorized", this.sender);
    this.require(managed || id === packedId(this.sender), "ForeignAccountId", id, packedId(this.sender));
    this.#create(id, managed, { name, description }, owner);
  }

  newChainSecuredAccount(name: string, description: string): void {
    this.#create(packedId(this.sender), false, { name, description }, this.sender);
  }

  #create(id: bigint, managed: boolean, labels: Labels, owner: string): void {
    this.require(id !== 0n, "ZeroId");
    this.#ownable(owner);
    this.require(!this.state.accounts.has(id), "AccountIdTaken", id);
    this.shortEnough(labels);
    this.state.accounts.set(id, newAccountState(owner, managed, labels));
    this.state.managedAccountExisted ||= managed;
    this.emit("AccountCreated", id, owner, managed, labels.name, labels.description, id);
  }

  #ownable(owner: string): void {
    const payers = getCreateAddress({ from: this.places.contract, nonce: 1 });
    const lists = getCreateAddress({ from: payers, nonce: 1 });
    this.require(![this.places.contract, payers, lists].includes(owner), "OwnerIsThisContract");
    this.mayHaveRole(owner);
  }

  convertToChainSecuredAccount(id: bigint, newOwner: string): void {
    const account = this.authorize(id, "ownerOnly");
    this.require(account.managed, "AccountChainSecured", id);
    this.#ownable(newOwner);
    const isTransfer = this.sender === account.owner && newOwner !== account.owner;
    const event = isTransfer ? "AccountOwnershipTransferred" : "AccountConvertedToChainSecured";
    this.emit(event, id, account.owner, newOwner, id);
    Object.assign(account, { owner: newOwner, managed: false });
  }

  transferOwnership(id: bigint, newOwner: string): void {
    const account = this.authorize(id, "ownerOnly");
    this.#ownable(newOwner);
    this.require(newOwner !== account.owner, "SameOwner", newOwner);
    this.emit("AccountOwnershipTransferred", id, account.owner, newOwner, id);
    Object.assign(account, { owner: newOwner, managed: false });
  }

  updateAccountMetadata(id: bigint, name: string, description: string): void {
    const account = this.authorize(id, "ownerOnly");
    if (this.relabel(account, name, description)) this.emit("AccountUpdated", id, name, description, id);
  }

  setAccountFrozen(id: bigint, frozen: boolean): void {
    const account = this.authorize(id, "ownerOnly");
    if (account.frozen !== frozen) this.emit("AccountFreezeSet", id, frozen, id);
    account.frozen = frozen;
  }
}
