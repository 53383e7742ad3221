/** The thread behind CidComputer. */
import { parentPort } from "node:worker_threads";
import { cidOfCode } from "./cid";

parentPort?.on("message", ({ id, code }: { id: number; code: Uint8Array }) => {
  cidOfCode(code).then(
    (cid) => parentPort?.postMessage({ id, cid }),
    () => parentPort?.postMessage({ id }),
  );
});
