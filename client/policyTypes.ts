/** The types of ABI and EIP-712 that rules of a policy are about, and which rules fit them. */
import { isAddress } from "ethers";

export interface Rule {
  readonly in?: readonly string[];
  readonly min?: string;
  readonly max?: string;
}

/** Elementary types in their canonical form: `uint` and `int` are none, since selectors are made of `uint256`. */
export function isElementary(type: string): boolean {
  const [, name, digits] = /^(u?int|bytes)([1-9]\d{0,2})$/.exec(type) ?? [];
  if (name === undefined) return ["address", "bool", "string", "bytes"].includes(type);
  const size = Number(digits);
  return name === "bytes" ? size <= 32 : size <= 256 && size % 8 === 0;
}

/** `(address,uint256)[]` → the types of a function's arguments as text; undefined for anything that is no signature. */
export function argumentTypes(called: string): readonly string[] | undefined {
  const [, inner] = /^[A-Za-z_$][A-Za-z0-9_$]*\((.*)\)$/.exec(called) ?? [];
  if (inner === undefined) return undefined;
  const types = inner === "" ? [] : split(inner);
  return types.every(isType) ? types : undefined;
}

/** At the commas outside inner brackets. */
function split(list: string): string[] {
  let depth = 0;
  return [...list].reduce<string[]>(
    (parts, letter) => {
      depth += letter === "(" ? 1 : letter === ")" ? -1 : 0;
      if (letter === "," && depth === 0) return [...parts, ""];
      return [...parts.slice(0, -1), `${parts.at(-1) ?? ""}${letter}`];
    },
    [""],
  );
}

function isType(text: string): boolean {
  const [, element = "", tuple] = /^([a-z0-9]+|\((.+)\))(?:\[(?:[1-9]\d{0,8})?\])*$/.exec(text) ?? [];
  return tuple === undefined ? isElementary(element) : split(tuple).every(isType);
}

/**
 * The rule in its canonical form for values of this type; `wrong` throws. A text is compared as it is, every other
 * value as the chain sees it.
 */
export function ruleFor(type: string, rule: Rule, wrong: (why: string) => never): Rule {
  if (Object.keys(rule).length === 0) return rule;
  if (!isElementary(type)) wrong(`is a rule for ${type}, and rules are for plain types`);
  const number = /^(u?)int(\d+)$/.exec(type);
  if (number === null && (rule.min !== undefined || rule.max !== undefined))
    wrong(`has min or max, which ${type} does not have`);
  if (number !== null) requireRange(rule, number[1] === "u", Number(number[2]), wrong);
  if (rule.in === undefined) return rule;
  const texts = rule.in.map((text) => canonical(type, text) ?? wrong(`lists "${text}", which is no ${type}`));
  return { ...rule, in: [...new Set(texts)].sort() };
}

function requireRange(rule: Rule, unsigned: boolean, bits: number, wrong: (why: string) => never): void {
  const { min, max } = rule;
  const [lowest, highest] = unsigned
    ? [0n, 2n ** BigInt(bits) - 1n]
    : [-(2n ** BigInt(bits - 1)), 2n ** BigInt(bits - 1) - 1n];
  for (const bound of [min, max, ...(rule.in ?? []).filter((text) => WHOLE.test(text))])
    if (bound !== undefined && (BigInt(bound) < lowest || BigInt(bound) > highest))
      wrong(`states ${bound}, which the type cannot hold`);
  if (min !== undefined && max !== undefined && BigInt(min) > BigInt(max)) wrong("has a min above its max");
  if (!unsigned && (min === undefined) !== (max === undefined))
    wrong("is for a signed type and needs both min and max: below every max there are negative numbers");
}

const WHOLE = /^(0|-?[1-9]\d{0,77})$/;

/** A value as templates compare it; undefined for a text that is no value of the type. */
function canonical(type: string, text: string): string | undefined {
  if (type === "string") return text;
  if (type === "address") return /^0x/.test(text) && isAddress(text) ? text.toLowerCase() : undefined;
  if (type === "bool") return text === "true" || text === "false" ? text : undefined;
  if (/int/.test(type)) return WHOLE.test(text) ? text : undefined;
  const bytes = type === "bytes" ? "*" : `{${type.slice("bytes".length)}}`;
  return new RegExp(`^0x([0-9a-fA-F]{2})${bytes}$`).test(text) ? text.toLowerCase() : undefined;
}
