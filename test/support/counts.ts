/** Every count of the property tests has two values: quick for `npm test`, deep for `npm run test:deep`. */
export const deep = process.env.KEYWRIGHT_DEEP === "1";

export function count(quick: number, deepCount: number): number {
  return deep ? deepCount : quick;
}

/** The fixed seed of every property test, so that a failure is repeatable. */
export const SEED = 20_261_120;
