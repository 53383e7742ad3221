import { builtFile } from "../protocol/built";

/** The path of a built file of the executor, relative to its folder. */
export const built = (path: string): string => builtFile(__dirname, path);
