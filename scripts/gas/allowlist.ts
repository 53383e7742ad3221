import { ethers } from "hardhat";
import type { ApplicationAllowlist } from "../../typechain-types";
import { must, rowsInto, type Row } from "./measure";

/** The rows of ApplicationAllowlist; there is nothing to compare them with. */
export async function allowlistRows(): Promise<Row[]> {
  const [admin] = await ethers.getSigners();
  const [first, second, device] = ["first", "second", "device"].map((text) => ethers.id(text)) as [
    string,
    string,
    string,
  ];
  const deployed = await ethers.deployContract("ApplicationAllowlist", [must(admin).address, 0, [first], [device]]);
  const list = deployed as unknown as ApplicationAllowlist;
  const rows: Row[] = [];
  const add = rowsInto(rows, "alone");
  const bootInfo = [ethers.ZeroAddress, first, ethers.ZeroAddress, device, first, first, first, "UpToDate", []];
  const data = list.interface.encodeFunctionData("isAppAllowed", [bootInfo as never]);
  await add("allow-list: deployment", must(deployed.deploymentTransaction()));
  await add("allow-list: addComposeHash", list.addComposeHash(second));
  await add("allow-list: removeComposeHash", list.removeComposeHash(second));
  await add("allow-list: addDevice", list.addDevice(second));
  await add("allow-list: removeDevice", list.removeDevice(second));
  await add("allow-list: isAppAllowed", must(admin).sendTransaction({ to: await list.getAddress(), data }));
  return rows;
}
