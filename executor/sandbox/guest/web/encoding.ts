import base64 from "base-64";
import { TextDecoder, TextEncoder } from "@sinonjs/text-encoding";

export { TextDecoder, TextEncoder };

/** Base64 to a string of bytes, and back; as in browsers. */
export const atob = (text: unknown): string => base64.decode(String(text));
export const btoa = (text: unknown): string => base64.encode(String(text));
