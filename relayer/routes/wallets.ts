/** PKP routes: minted in the executor, registered on chain. */
import { KeywrightError } from "../../protocol/errors";
import type { ContractWrite } from "../../protocol/executor";
import { ZERO_HASH, type ActionHash, type KeyId } from "../../protocol/ids";
import { opBits } from "../../protocol/ops";
import type { walletRoutes as routes } from "../../protocol/http/wallets";
import type { HandlersOf } from "../middleware/call";
import type { RouteDeps } from "./deps";
import type { PkpView } from "../chain/types";
import { foundPage, matcher } from "./found";
import { pageOf, walletItem } from "./pages";
import { pkpAddress, writeWithPkps } from "./references";
import { done, write, type Writes } from "./writes";

export function walletRoutes({ chain, executor }: RouteDeps, writes: Writes): HandlersOf<keyof typeof routes> {
  return {
    createWallet: async (call) => {
      const { accountId, actorId } = call.caller;
      const minted = await executor.call("mintPkp", { accountId }, call);
      const register = write(
        "registerWalletDerivation",
        actorId,
        minted.walletAddress,
        minted.derivationPath,
        call.body.name,
        call.body.description,
      );
      const written = await writes.send(call, register);
      const { wallet_address = minted.walletAddress, derivation_path = minted.derivationPath } = written.result;
      return { ...done(written), wallet_address, pkp_id: wallet_address, derivation_path };
    },

    updateWallet: async (call) => {
      const { pkp_id: pkp, name, description } = call.body;
      const { accountId } = call.caller;
      const update = (): Promise<ContractWrite> =>
        writeWithPkps(chain, call.caller, [pkp], ([address = ""]) =>
          write("updatePkpMetadata", accountId, address, name, description),
        );
      return done(await writes.send(call, update));
    },

    setWalletOps: async (call) => {
      const { pkp_id: pkp, denied_ops: denied } = call.body;
      const { accountId } = call.caller;
      const set = (): Promise<ContractWrite> =>
        writeWithPkps(chain, call.caller, [pkp], ([address = ""]) =>
          write("setPkpOps", accountId, address, String(opBits(denied))),
        );
      return done(await writes.send(call, set));
    },

    listWallets: async ({ caller, query, setTotal }) => {
      const isFound = matcher(query.search, ({ name, description, walletAddress }: PkpView) => [
        name,
        description,
        walletAddress,
      ]);
      const { items, total } = await foundPage((page) => chain.pkps(caller.accountId, page), pageOf(query), isFound);
      setTotal(total);
      return items.map(walletItem);
    },

    listWalletsInGroup: async ({ caller, query, setTotal }) => {
      const { items, total } = await chain.pkpsInGroup(caller.accountId, query.group_id, pageOf(query));
      setTotal(total);
      return items.map(walletItem);
    },

    publicKeys: async (call) => {
      const { accountId, actorId } = call.caller;
      const pkpId = await pkpAddress(chain, accountId, call.query.pkp_id);
      // Independent of what the key may run: the decision includes the derivation path of any PKP of its account.
      const { derivationPath } = await chain.explainExecution(
        actorId as KeyId,
        ZERO_HASH as string as ActionHash,
        pkpId,
      );
      if (derivationPath === undefined) throw new KeywrightError("unknown_pkp", `The account has no PKP ${pkpId}.`);
      return executor.call("publicKeys", { accountId, pkpId, derivationPath }, call);
    },
  };
}
