/**
 * Options of Node for the services, in images and in development.
 *
 * The keyholder: with larger young generations its resident memory creeps up under load although its heap is flat.
 * While guests keep all cores busy, a garbage collection that is shared with other threads waits for them longer than
 * it takes alone. A full collection marks in small steps while requests are served; guests that send megabytes filled
 * what V8 leaves free for that time, and it then marked the rest at once, for up to 140 ms. So the heap may grow to six
 * times what was in use, and marking begins when two fifths of that room are taken.
 *
 * The relayer: half of Node's young generation, whose collection holds up one request in three hundred for 3.4 ms; now
 * it is 1.6. Smaller ones are collected so often that it costs more than it saves.
 */
export const NODE_OPTIONS = {
  executor: [
    ...["--max-semi-space-size=8", "--single-threaded-gc"],
    ...["--heap-growing-percent=500", "--incremental-marking-soft-trigger=40"],
  ],
  relayer: ["--max-semi-space-size=16"],
} as const;
