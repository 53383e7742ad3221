import { readFileSync } from "node:fs";
import { time } from "@nomicfoundation/hardhat-network-helpers";
import { ethers } from "hardhat";
import type { EventFragment, LogDescription, ParamType } from "ethers";
import { packedId } from "./model";
import { ALICE_ID, ALICE_KEY, ALICE_PKP, executeKey, settled } from "./stages";
import { World, cid, number, walletOf } from "./world";

const SOURCES = [
  "contracts/interfaces/IAccountCore.sol",
  "contracts/interfaces/IApiPayers.sol",
  "contracts/interfaces/ITwoStepAdmin.sol",
];

const START = 2_000_000_000; // shown on the page as times
const PAYER_DELAY = 7 * 86_400;

/** A short history in which every event occurs once. */
export async function everyEvent(): Promise<World> {
  await time.increaseTo(START);
  const world = await World.create(PAYER_DELAY);
  const { admin, payer, otherPayer, bob, carol } = world.cast;
  await world.do(admin, "setAdminApiPayer", walletOf("funding"));
  await settled(world);
  await world.do(payer, "updateAccountMetadata", ALICE_ID, "acme", "card payments");
  await world.do(payer, "updateUsageApiKeyMetadata", ALICE_ID, ALICE_KEY, "web shop", "");
  await world.do(payer, "updatePkpMetadata", ALICE_ID, ALICE_PKP, "hot wallet", "");
  await world.do(payer, "addAction", ALICE_ID, "sign order", "", cid(2));
  await world.do(payer, "updateActionMetadata", ALICE_ID, cid(2), 0n, "sign order v2", "");
  await world.do(payer, "updateGroupMetadata", ALICE_ID, 1n, "orders", "");
  await world.do(payer, "changeGroupMembers", ALICE_ID, 1n, [cid(2)], [cid(1)], [], [ALICE_PKP]);
  await world.do(payer, "removeAction", ALICE_ID, cid(2));
  await world.do(payer, "setPkpOps", ALICE_ID, ALICE_PKP, 64n);
  await world.do(payer, "setAccountFrozen", ALICE_ID, true);
  await world.do(payer, "removeUsageApiKey", ALICE_ID, ALICE_KEY);
  await world.do(payer, "setUsageApiKey", ...executeKey(ALICE_ID, number("another key"), [1n]));
  await world.do(payer, "revokeAllUsageApiKeys", ALICE_ID);
  const unknownGroup = world.manager.interface.encodeFunctionData("removeGroup", [ALICE_ID, 9n]);
  await world.manager.connect(payer).tryMulticall([unknownGroup], { gasLimit: 2_000_000 });
  await world.do(payer, "removeGroup", ALICE_ID, 1n);
  await world.do(payer, "convertToChainSecuredAccount", ALICE_ID, carol.address);
  await world.do(bob, "transferOwnership", packedId(bob.address), carol.address);
  await world.do(admin, "removeApiPayer", payer.address);
  await world.do(admin, "addApiPayer", otherPayer.address);
  await world.do(admin, "setAdminApiPayer", otherPayer.address);
  await world.do(admin, "cancelAdminApiPayer");
  await world.do(admin, "proposeAdmin", bob.address);
  await world.do(admin, "cancelAdminProposal");
  await world.do(admin, "proposeAdmin", carol.address);
  await world.do(carol, "acceptAdmin");
  return world;
}

const hex = (value: bigint): string => ethers.toBeHex(value, 32);
const isHash = (param: ParamType): boolean => /^(id|keyId|action|actor|derivationPath)$/.test(param.name);

function shown(param: ParamType, value: unknown): unknown {
  if (Array.isArray(value)) return (value as unknown[]).map(String);
  if (typeof value === "bigint") return isHash(param) ? hex(value) : String(value);
  return value;
}

const sample = ({ fragment, args }: LogDescription): string =>
  JSON.stringify(Object.fromEntries(fragment.inputs.map((param, i) => [param.name, shown(param, args[i])])), null, 2);

/** An indexed field can be given, or left null to match any value. */
function filter(fragment: EventFragment): string {
  const indexed = fragment.inputs.filter((param) => param.indexed).map((param) => param.name);
  return `manager.filters.${fragment.name}(${indexed.join(", ")})`;
}

/** The sentence above an event in the interface. */
function meaning(name: string): string {
  const source = SOURCES.map((file) => readFileSync(file, "utf8")).join("\n");
  const above = new RegExp(`((?: *///.*\\n)+) *event ${name}\\(`).exec(source)?.[1];
  if (!above) throw new Error(`The event ${name} has no description.`);
  const lines = above.split("\n").map((line) => line.trim().replace(/^\/\/\/ ?/, ""));
  return lines
    .join(" ")
    .replace("@notice ", "")
    .replace(/ @param (\w+) /, " `$1`: ")
    .trim();
}

/** Where the interfaces declare an event: the order of the page. */
const place = (name: string): number =>
  SOURCES.map((file) => readFileSync(file, "utf8"))
    .join("")
    .search(new RegExp(`event ${name}\\(`));

const section = (log: LogDescription): string =>
  [
    `### ${log.name}`,
    "",
    meaning(log.name),
    "",
    "```",
    log.fragment.format("full"),
    "```",
    "",
    `Filter: \`${filter(log.fragment)}\`. Decoded:`,
    "",
    "```json",
    sample(log),
    "```",
    "",
  ].join("\n");

const INTRODUCTION = `# Events of the account contract

For integrators who follow accounts on chain. The events are complete: names, owners, members, scopes and expirations
of every account can be rebuilt from them alone, in the order of the logs (a contract test does so). A call that changes
nothing emits nothing.

- \`id\` is the account id and always the first indexed field; the second is the object that changed.
- \`actor\`, the last field, is the id the contract accepted for the call: the account id (the owner, or an API payer
  acting for it) or a usage key id. Who called is the transaction's sender, or, through \`trustedForwarder()\`, the
  \`signer\` of the \`ExecutedForwardRequest\` that the forwarder logs right after: the transaction's sender then only
  paid for it.
- An id of an account and of a usage key at once means the account, from its \`AccountCreated\` on: a managed account
  under the id of somebody's usage key (a payer can create one) takes that key over. It no longer acts in the account
  of its \`UsageApiKeySet\`, and acts with every right in the new account.
- A string is bytes that nobody checks: at most 128 of a name and 1,024 of a description. Anybody can create an account
  whose name is no UTF-8, or contains U+0000, which PostgreSQL's \`text\` and \`jsonb\` refuse. ethers then throws
  where such a member is read (\`args.name\`, \`toObject()\`): decode strings as bytes, as below, or one account
  stops your follower.
- One call may emit several events: a group with members is \`GroupAdded\` and one event for each member.
- \`GroupRemoved\` and \`ActionRemoved\` end memberships without an event for each of them.
- An action first seen in \`ActionAddedToGroup\` is an action of the account with an empty name and description.
- \`AllUsageApiKeysRevoked\` ends every usage key set before it. A usage key that was not set before
  \`UsageApiKeySet\` starts with empty lists.
- A usage key expires, and a scheduled payer becomes active, without an event: compare their times with the block's. A
  newly scheduled payer of the payers replaces one that is still waiting.
- \`CallFailed\` reports one failed call of a \`tryMulticall\`, which changed nothing.
- The allow-list of images is another contract, with \`ComposeHashAdded\`, \`ComposeHashRemoved\`, \`DeviceAdded\`,
  \`DeviceRemoved\` (\`IApplicationAllowlist\`).

\`\`\`ts
import { AbiCoder, getBytes, type EventLog } from "ethers";
import { AccountManager__factory } from "./typechain-types";

const textOf = (bytes: string) => new TextDecoder().decode(getBytes(bytes)).replaceAll("\\0", "\\ufffd");

// What an event has besides its indexed fields. Strings are encoded as bytes are, and any bytes can be decoded.
function membersOf({ fragment, data }: Pick<EventLog, "fragment" | "data">) {
  const inputs = fragment.inputs.filter(({ indexed }) => indexed !== true);
  const types = inputs.map(({ type }) => (type === "string" ? "bytes" : type));
  const values = AbiCoder.defaultAbiCoder().decode(types, data);
  const members = inputs.map(({ name, type }, i) => [name, type === "string" ? textOf(values[i]) : values[i]]);
  return Object.fromEntries(members);
}

// contractAddress: from GET /core/v1/get_node_chain_config. provider: your own node.
const manager = AccountManager__factory.connect(contractAddress, provider);
const logs = await manager.queryFilter(manager.filters.GroupAdded(accountId), deploymentBlock);
for (const log of logs) console.log(log.args.groupId, membersOf(log).name);
\`\`\`

This page is written by \`KEYWRIGHT_WRITE_DOCS=1 npx hardhat test test/contracts/eventsDoc.test.ts\`, from a scenario
that emits every event; without the variable the test fails if the page is stale.
`;

/** The page, one section for each event in the order of the interface. */
export async function eventsPage(world: World): Promise<string> {
  const logs = await world.allLogs();
  const sections = world.manager.interface.fragments
    .filter((fragment): fragment is EventFragment => fragment.type === "event")
    .map((fragment) => logs.findLast((log) => log.name === fragment.name) ?? missing(fragment.name))
    .sort((a, b) => place(a.name) - place(b.name))
    .map(section);
  return `${INTRODUCTION}\n## Events\n\n${sections.join("\n")}`;
}

function missing(name: string): never {
  throw new Error(`Nothing emitted the event ${name}.`);
}
