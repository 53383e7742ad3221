import { ethers } from "hardhat";
import type { AccountManager, Budgets } from "../../typechain-types";
import { must, rowsInto, type Row } from "./measure";

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
  const rows: Row[] = [];
  const add = rowsInto(rows, "alone");
  await add("budgets: deployment", must(deployed.deploymentTransaction()));
  await add("budgets: lease, first of its payer", lease("usdc-daily", "first"));
  await add("budgets: lease, first of its window", lease("usdc-weekly", "second"));
  await add("budgets: lease again", lease("usdc-daily", "third"));
  return rows;
}
