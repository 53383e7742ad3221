/** The allow-list of images and devices: what counts, what waits, and the admin's transactions about it. */
import type { JsonRpcProvider } from "ethers";
import { parseAddress, parseHash32 } from "../../protocol/ids";
import { ApplicationAllowlist__factory, type ApplicationAllowlist } from "../../typechain-types";
import { carryOut } from "./adminCalls";
import { deploymentFile, table, usageError, withProvider, type Command, type Invocation } from "./command";

const ANY_DEVICE = `0x${"00".repeat(32)}`;

export const showAllowlist: Command = {
  args: "",
  help: "the images and devices that may run, and from when",
  run: async ({ print }) => withProvider(async (provider) => print(await described(connect(provider)))),
};

export const allowImage = listCommand("addComposeHash", "compose hash", "list an image; it counts after the delay");
export const revokeImage = listCommand("removeComposeHash", "compose hash", "end an image at once, or its waiting");
export const allowDevice = listCommand("addDevice", "device", "list a device (any: every device), after the delay");
export const revokeDevice = listCommand("removeDevice", "device", "end a device at once, or its waiting");

function listCommand(functionName: string, what: "compose hash" | "device", help: string): Command {
  return {
    args: `<${what}>`,
    help,
    run: async (invocation) => {
      const value = valueOf(invocation, what);
      await withProvider((provider) => carryOut(invocation, provider, connect(provider), [[functionName, value]]));
    },
  };
}

/** With or without 0x, as `/info` and dstack give it. */
function valueOf({ args: [text = ""] }: Invocation, what: string): string {
  if (what === "device" && text === "any") return ANY_DEVICE;
  return (
    parseHash32(text.startsWith("0x") ? text : `0x${text}`) ??
    usageError(`This command takes a ${what}: 64 hex digits.`)
  );
}

async function described(list: ApplicationAllowlist): Promise<string> {
  const [images, devices, delay, admin] = await Promise.all([
    list.composeHashes(),
    list.devices(),
    list.delaySeconds(),
    list.admin(),
  ]);
  const since = (activeFrom: bigint): string => {
    const time = new Date(Number(activeFrom) * 1_000);
    return `${time.getTime() > Date.now() ? "waits until" : "counts since"} ${time.toISOString()}`;
  };
  const rows = [
    ...images.map(({ value, activeFrom }) => ["image", value, since(activeFrom)]),
    ...devices.map(({ value, activeFrom }) => ["device", value === ANY_DEVICE ? "any" : value, since(activeFrom)]),
  ];
  const terms = `Admin ${admin}. An addition waits for ${delay} seconds.`;
  return `${table([["", await list.getAddress(), ""], ...rows])}\n${terms}`;
}

function connect(provider: JsonRpcProvider): ApplicationAllowlist {
  const found = parseAddress(process.env.ALLOWLIST_ADDRESS ?? deploymentFile()?.allowlistAddress ?? "");
  if (found === undefined)
    return usageError("ALLOWLIST_ADDRESS (or DEPLOYMENT_FILE) does not name the allow-list: the application's id.");
  return ApplicationAllowlist__factory.connect(found, provider);
}
