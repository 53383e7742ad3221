/**
 * Options of Node for the keyholder, in images and in development. With larger young generations its resident memory
 * creeps up under load although its heap is flat. While guests keep all cores busy, a garbage collection that is shared
 * with other threads waits for them longer than it takes alone.
 */
export const KEYHOLDER_OPTIONS = ["--max-semi-space-size=8", "--single-threaded-gc"] as const;
