/**
 * Gives large bytes back to the system at once: a process that does little else collects its garbage after minutes.
 * They are empty afterwards; a part of a larger buffer stays as it is.
 */
export function free({ buffer, byteLength }: Uint8Array): void {
  const isWhole = buffer instanceof ArrayBuffer && !buffer.detached && buffer.byteLength === byteLength;
  if (isWhole) buffer.transfer(0);
}
