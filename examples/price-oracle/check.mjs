// What a consumer does with a report: the same hash, the signer it expects, an age it accepts.
import { readFileSync } from "node:fs";
import { formatUnits, recoverAddress, solidityPackedKeccak256 } from "ethers";

const [, , file, oracle] = process.argv;
const { report, signature } = JSON.parse(readFileSync(file, "utf8"));
const { pair, price, decimals, time } = report;
const hash = solidityPackedKeccak256(["string", "uint256", "uint8", "uint64"], [pair, price, decimals, time]);
if (recoverAddress(hash, signature) !== oracle) throw new Error("the oracle did not sign this");
if (Date.now() / 1000 - time > 300) throw new Error("the report is too old");
console.log(`${pair} ${formatUnits(price, decimals)}, signed by the oracle`);
