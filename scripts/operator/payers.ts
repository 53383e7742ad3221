/** Payers: their addresses and balances, and the contract admin's transactions about them. */
import { formatEther, type JsonRpcProvider } from "ethers";
import { AccountManager__factory, type AccountManager } from "../../typechain-types";
import { callExecutor } from "../dev/payers";
import { carryOut } from "./adminCalls";
import {
  addressArgument,
  contractAddress,
  countArgument,
  setting,
  table,
  withProvider,
  type Command,
  type Invocation,
} from "./command";

type AdminFunction = "addApiPayer" | "removeApiPayer" | "setAdminApiPayer" | "cancelAdminApiPayer";

export const listPayers: Command = {
  args: "[count]",
  help: "derived and registered payers with their balances",
  run: async (invocation) => withProvider((provider) => showPayers(invocation, provider)),
};

export const registerPayers: Command = {
  args: "<count>",
  help: "register the first <count> derived payers and the admin payer, unless they are registered",
  run: async (invocation) =>
    withProvider(async (provider) => {
      const { adminPayer, payers } = await derived(countArgument(invocation));
      const contract = connect(provider);
      const registered = await addedPayers(contract);
      const missing = payers
        .filter((payer) => !registered.has(payer))
        .map((payer): [AdminFunction, string] => ["addApiPayer", payer]);
      const admin: [AdminFunction, string][] = (await adminPayers(contract)).includes(adminPayer)
        ? []
        : [["setAdminApiPayer", adminPayer]];
      if (missing.length + admin.length === 0) return invocation.print("All of them are registered.");
      await carryOut(invocation, provider, connect(provider), [...missing, ...admin]);
    }),
};

export const addPayer = adminCommand("addApiPayer", "let an address act as API payer");
export const removePayer = adminCommand(
  "removeApiPayer",
  "remove an API payer, or cancel its scheduled addition; drain its lane first (resize)",
);
export const setAdminPayer = adminCommand("setAdminApiPayer", "name the address that funds the payers");

export const cancelAdminPayer: Command = {
  args: "",
  help: "cancel the scheduled address that would fund the payers",
  run: async (invocation) =>
    withProvider((provider) => carryOut(invocation, provider, connect(provider), [["cancelAdminApiPayer"]])),
};

/** Active and scheduled payers. */
async function addedPayers(contract: AccountManager): Promise<Set<string>> {
  const [acting, scheduled] = await Promise.all([contract.apiPayers(), contract.scheduledApiPayers()]);
  return new Set([...acting, ...scheduled.map(({ payer }) => payer)]);
}

/** The current and the scheduled address that funds the payers. */
const adminPayers = async (contract: AccountManager): Promise<string[]> => [
  await contract.adminApiPayer(),
  (await contract.scheduledAdminApiPayer()).payer,
];

function adminCommand(functionName: AdminFunction, help: string): Command {
  return {
    args: "<address>",
    help,
    run: async (invocation) =>
      withProvider((provider) =>
        carryOut(invocation, provider, connect(provider), [[functionName, addressArgument(invocation)]]),
      ),
  };
}

async function showPayers({ args, print }: Invocation, provider: JsonRpcProvider): Promise<void> {
  const contract = connect(provider);
  const registered = await addedPayers(contract);
  const activeFrom = new Map(
    [...(await contract.scheduledApiPayers()), await contract.scheduledAdminApiPayer()].map((one) => [
      one.payer,
      one.activeFrom,
    ]),
  );
  const [admin, nextAdmin] = await adminPayers(contract);
  const since = (payer: string): string => {
    const seconds = activeFrom.get(payer);
    return seconds === undefined ? "" : ` from ${new Date(Number(seconds) * 1000).toISOString()}`;
  };
  const adminRole = (payer: string): string => {
    if (payer === admin) return "admin payer";
    return payer === nextAdmin ? `admin payer${since(payer)}` : "admin payer, not set on chain";
  };
  const { adminPayer, payers } = await derived(Number(args[0] ?? registered.size));
  const indexed = [adminPayer, ...payers];
  const others = [...registered].filter((payer) => !indexed.includes(payer));
  const rows = await Promise.all(
    [...indexed.entries(), ...others.map((payer): [string, string] => ["-", payer])].map(async ([index, payer]) => {
      const role =
        index === 0 ? adminRole(payer) : registered.has(payer) ? `registered${since(payer)}` : "not registered";
      return [String(index), payer, formatEther(await provider.getBalance(payer)), role];
    }),
  );
  print(table([["payer", "address", "ether", ""], ...rows]));
  print(`Additions wait for ${await contract.payerDelaySeconds()} seconds once there is a managed account.`);
}

async function derived(count: number): Promise<{ adminPayer: string; payers: string[] }> {
  return callExecutor(setting("EXECUTOR_SOCKET"), "payers", { count });
}

const connect = (provider: JsonRpcProvider): AccountManager =>
  AccountManager__factory.connect(contractAddress(), provider);
