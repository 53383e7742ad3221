import { Admin } from "./model/admin";
import { Broken, isBatch, type Inner } from "./model/calls";

export { Broken, SCOPES, isBatch, packedId, type Emitted, type Inner } from "./model/calls";

/**
 * An independent specification of the contract, without its optimisations: takes one call, returns a named error or the
 * expected events.
 */
export class Model extends Admin {
  multicall(calls: readonly Inner[]): void {
    for (const call of calls) this.atomically(call);
  }

  tryMulticall(calls: readonly Inner[]): void {
    for (const [index, call] of calls.entries()) {
      this.require(!isBatch(call[0]), "NestedBatch");
      try {
        this.atomically(call);
      } catch (error) {
        if (!(error instanceof Broken)) throw error;
        this.emit("CallFailed", BigInt(index), [error.message, ...error.args]);
      }
    }
  }
}
