/**
 * Options of Node for the keyholder, in images and in development: with larger young generations its resident memory
 * creeps up under load although its heap is flat.
 */
export const KEYHOLDER_OPTIONS = ["--max-semi-space-size=8"] as const;
