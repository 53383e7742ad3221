/**
 * Gives large bytes back to the system at once: a process that does little else collects its garbage after minutes.
 * They are empty afterwards; a part of a larger buffer stays as it is.
 */
export function free({ buffer, byteLength }: Uint8Array): void {
  if (buffer instanceof ArrayBuffer && buffer.byteLength === byteLength) buffer.transfer(0);
}
