/** Every count of the property tests has two values: quick for `npm test`, deep for `npm run test:deep`. */
export const deep = process.env.KEYWRIGHT_DEEP === "1";

export function count(quick: number, deepCount: number): number {
  return deep ? deepCount : quick;
}

/** The fixed seed of every property test, so that a failure is repeatable. */
export const SEED = 20_261_120;

/** Numbers from 0 to 1 that are the same in every run with this seed. */
export function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

/** `KEYWRIGHT_SLICE=3/10` runs the third tenth of very long tests, with its own seed. */
const [slice = 1, slices = 1] = (process.env.KEYWRIGHT_SLICE ?? "1/1").split("/").map(Number);

export const ofSlice = (total: number): number => Math.ceil(total / slices);

export const seedOfSlice = (): number => SEED + slice - 1;
