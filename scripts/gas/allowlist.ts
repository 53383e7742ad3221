import { ethers } from "hardhat";
import type { ApplicationAllowlist } from "../../typechain-types";
import type { Row } from "./accountManager";
import { measure, must } from "./measure";

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
  const row = async (name: string, call: Parameters<typeof measure>[0]): Promise<Row> => ({
    name,
    gas: await measure(call),
    group: "alone",
  });
  const bootInfo = [ethers.ZeroAddress, first, ethers.ZeroAddress, device, first, first, first, "UpToDate", []];
  const data = list.interface.encodeFunctionData("isAppAllowed", [bootInfo as never]);
  return [
    {
      name: "allow-list: deployment",
      gas: Number(must(await must(deployed.deploymentTransaction()).wait()).gasUsed),
      group: "alone",
    },
    await row("allow-list: addComposeHash", list.addComposeHash(second)),
    await row("allow-list: removeComposeHash", list.removeComposeHash(second)),
    await row("allow-list: addDevice", list.addDevice(second)),
    await row("allow-list: removeDevice", list.removeDevice(second)),
    await row("allow-list: isAppAllowed", must(admin).sendTransaction({ to: await list.getAddress(), data })),
  ];
}
