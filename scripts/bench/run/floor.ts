/** The bare floor: in its own process, a fresh isolate and context for each run of the same code, and nothing else. */
import { execFileSync } from "node:child_process";
import { HELLO } from "./http";

/** Source text, since only one product file may import the engine, and this is a benchmark. */
const PROGRAM = `
const ivm = require("isolated-vm");
const { ecdsaSign } = require("secp256k1");
const [code, count, warmUp] = [process.argv[1], Number(process.argv[2]), Number(process.argv[3])];
const secret = Buffer.alloc(32, 0x11), digest = Buffer.alloc(32, 7);
const signed = () => Buffer.from(ecdsaSign(digest, secret).signature).toString("hex");
async function once(sign) {
  const isolate = new ivm.Isolate({ memoryLimit: 128 });
  const context = await isolate.createContext();
  if (sign) await context.global.set("sign", new ivm.Callback(signed));
  const body = sign ? "async function main() { return sign(); }" : code;
  const script = await isolate.compileScript(body + '; main({ name: "bench" })');
  await script.run(context, { promise: true, copy: true });
  isolate.dispose();
}
async function measure(sign) {
  const times = [];
  for (let i = 0; i < count + warmUp; i++) {
    const start = performance.now();
    await once(sign);
    if (i >= warmUp) times.push(performance.now() - start);
  }
  return times;
}
measure(false).then(async (hello) => console.log(JSON.stringify({ hello, sign: await measure(true) })));
`;

export interface Times {
  hello: number[];
  sign: number[];
}

export function measureFloor(count: number, warmUp: number): Times {
  const output = execFileSync(
    process.execPath,
    ["--no-node-snapshot", "-e", PROGRAM, HELLO, String(count), String(warmUp)],
    {
      encoding: "utf8",
      cwd: process.cwd(),
    },
  );
  return JSON.parse(output) as Times;
}
