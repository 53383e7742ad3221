import { ethers } from "hardhat";
import type { AccountManager, Budgets } from "../../typechain-types";
import type { Row } from "./accountManager";
import { measure, must } from "./measure";

/** The rows of Budgets; there is nothing to compare them with. */
export async function budgetRows(): Promise<Row[]> {
  const [admin, payer] = await ethers.getSigners();
  const forwarder = await ethers.deployContract("ERC2771Forwarder", ["Keywright Forwarder"]);
  const terms = [must(admin).address, 0, forwarder, ethers.id("root")];
  const deployedManager = await ethers.deployContract("AccountManager", terms);
  const manager = deployedManager as unknown as AccountManager;
  await (await manager.addApiPayer(must(payer).address)).wait();
  const deployed = await ethers.deployContract("Budgets", [await manager.getAddress()]);
  const budgets = (deployed as unknown as Budgets).connect(must(payer));
  const lease = (name: string, id: string): ReturnType<Budgets["lease"]> =>
    budgets.lease(
      ethers.id("account"),
      ethers.id("action"),
      ethers.encodeBytes32String(name),
      1,
      125_000_000n,
      1_000_000_000n,
      ethers.id(id),
    );
  const row = async (name: string, call: Parameters<typeof measure>[0]): Promise<Row> => ({
    name: `budgets: ${name}`,
    gas: await measure(call),
    group: "alone",
  });
  const deployment = Number(must(await must(deployed.deploymentTransaction()).wait()).gasUsed);
  return [
    { name: "budgets: deployment", gas: deployment, group: "alone" },
    await row("lease, first of its payer", lease("usdc-daily", "first")),
    await row("lease, first of its window", lease("usdc-weekly", "second")),
    await row("lease again", lease("usdc-daily", "third")),
  ];
}
