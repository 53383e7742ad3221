import { packedId } from "./model";
import { World, cid, number, pathFor, walletOf } from "./world";

/** A managed account of Alice's, group 1 listing action 1 and her PKP, and a key that may run there. */
export const ALICE_ID = number("alice's account key");
export const ALICE_KEY = number("alice's usage key");
export const ALICE_PKP = walletOf("alice's pkp");
export const BOB_PKP = walletOf("bob's pkp");

export const ALL = [0n];
export const NONE: bigint[] = [];

/** The 13 arguments of setUsageApiKey for a key that may only execute. */
export const executeKey = (id: bigint, key: bigint, groups: bigint[], expiration = 0n) =>
  [id, key, expiration, 0n, "key", "", false, false, false, NONE, NONE, NONE, groups] as const;

/** The same for a key with every scope. */
export const fullKey = (id: bigint, key: bigint, groups: bigint[], expiration = 0n) =>
  [id, key, expiration, 0n, "key", "", true, true, true, groups, groups, groups, groups] as const;

export interface Stage {
  world: World;
  bobId: bigint;
}

/** Alice's managed account beside Bob's ChainSecured one, with the same contents. */
export const twoAccounts = async (): Promise<Stage> => settled(await World.create());

export async function settled(world: World): Promise<Stage> {
  const { admin, payer, alice, bob } = world.cast;
  const bobId = packedId(bob.address);
  await world.do(admin, "addApiPayer", payer.address);
  await world.do(payer, "newAccount", ALICE_ID, true, "alice", "", alice.address);
  await world.do(bob, "newChainSecuredAccount", "bob", "");
  await world.do(payer, "registerWalletDerivation", ALICE_ID, ALICE_PKP, pathFor(ALICE_ID, "pkp"), "", "");
  await world.do(bob, "registerWalletDerivation", bobId, BOB_PKP, pathFor(bobId, "pkp"), "", "");
  await world.do(payer, "addGroup", ALICE_ID, "group", "", [cid(1)], [ALICE_PKP]);
  await world.do(bob, "addGroup", bobId, "group", "", [cid(1)], [BOB_PKP]);
  await world.do(payer, "setUsageApiKey", ...executeKey(ALICE_ID, ALICE_KEY, [1n]));
  return { world, bobId };
}
