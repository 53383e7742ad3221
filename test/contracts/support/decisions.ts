/** Every decision of the contract against the model's. */
import { ethers } from "hardhat";
import { SCOPES } from "./model";
import { expectSame } from "./same";
import { ANY_PKP } from "./state";
import { cid, number, walletOf, type World } from "./world";
import { must } from "../../support/must";

const NOBODY = number("nobody");
/** In the order of the contract's enum. Not imported from protocol/decision.ts: this oracle is independent of it. */
const REASONS = [
  "None",
  "UnknownKey",
  "KeyExpired",
  "AccountChainSecured",
  "NoExecuteScope",
  "ActionNotPermitted",
  "UnknownPkp",
  "PkpNotPermitted",
  "AccountFrozen",
];

/** The model's `getKey`. */
async function expectKey({ manager, model }: World, key: bigint): Promise<void> {
  const info = await manager.getKey(key, { blockTag: "latest" });
  const account = model.state.accounts.get(model.accountOf(key));
  const usageKey = model.state.accounts.has(key) ? undefined : model.state.keys.get(key);
  const whose = [
    model.accountOf(key),
    model.state.accounts.has(key),
    model.acts(key),
    account?.managed ?? false,
    account?.owner ?? ANY_PKP,
  ];
  const terms = [usageKey?.expiration ?? 0n, usageKey?.balance ?? 0n, account?.frozen ?? false];
  expectSame(Array.from(info as unknown as unknown[]), [...whose, ...terms]);
}

/** Every key × action × PKP, and every key × scope × group. */
export async function expectDecisions(world: World, usageKeys: readonly bigint[]): Promise<void> {
  const { manager, model } = world;
  const { number, timestamp } = must(await ethers.provider.getBlock("latest"));
  model.at(BigInt(timestamp));
  const keys = [...usageKeys, ...model.state.accounts.keys(), NOBODY];
  const at = { blockTag: "latest" } as const;
  for (const key of keys) {
    await expectKey(world, key);
    for (const action of [cid(1), cid(2), cid(9), 0n]) {
      for (const pkp of [walletOf("pkp 1"), walletOf("pkp 2"), walletOf("none"), ANY_PKP]) {
        const wanted = model.explain(key, action, pkp);
        const answer = await manager.explainExecution(key, action, pkp, at);
        const got = {
          reason: REASONS[Number(answer.reason)],
          byName: answer.actionByName,
          path: answer.derivationPath,
          deniedOps: answer.deniedOps,
        };
        expectSame([answer.blockNumber, answer.blockTimestamp], [BigInt(number), BigInt(timestamp)]);
        expectSame(got, wanted, `explainExecution ${key} ${action} ${pkp}`);
        expectSame(answer.allowed, wanted.reason === "None");
        expectSame(answer.accountId, model.accountOf(key));
        const expected = wanted.reason === "None";
        if (pkp === ANY_PKP) expectSame(await manager.canExecuteAction(key, action, at), expected);
        expectSame(await manager.canUseWalletInAction(key, action, pkp, at), expected && pkp !== ANY_PKP);
      }
    }
    for (const [scope, name] of SCOPES.entries()) {
      for (const groupId of [0n, 1n, 2n, 3n, 9n])
        expectSame(
          await manager.hasScope(key, scope, groupId, at),
          model.hasScope(key, name, groupId),
          `hasScope ${name} ${groupId}`,
        );
    }
  }
}
