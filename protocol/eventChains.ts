/** The setting that names further chains whose logs may fire triggers: relayer and keyholder read it alike. */
import { z } from "zod";

/** Endpoints by chain id. */
export type EventChains = ReadonlyMap<number, readonly string[]>;

const URL_OF_ENDPOINT = z.url({ protocol: /^https?$/ });

/** `10=https://one,https://two 8453=https://three,https://four` */
export const eventChainsSchema = z
  .string()
  .default("")
  .transform((text, ctx): EventChains => {
    const chains = new Map<number, readonly string[]>();
    for (const part of text.split(/\s+/).filter((one) => one !== "")) {
      const [, id, list = ""] = /^([1-9][0-9]{0,14})=(.+)$/.exec(part) ?? [];
      const urls = list.split(",");
      const isGood =
        id !== undefined && !chains.has(Number(id)) && urls.every((url) => URL_OF_ENDPOINT.safeParse(url).success);
      if (!isGood) {
        ctx.issues.push({ code: "custom", message: "must be <chain id>=<URL>,<URL> …, each chain once", input: text });
        return z.NEVER;
      }
      chains.set(Number(id), urls);
    }
    return chains;
  });
