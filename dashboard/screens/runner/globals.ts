/** The globals of actions beyond the language, for the editor's completion. Details: docs/actions.md. */
import { OP_NAMES, opRow } from "../../../protocol/ops";

export interface Ability {
  readonly name: string;
  readonly detail: string;
  readonly info: string;
}

const ops = OP_NAMES.map((name): Ability => {
  const { purpose, required, optional = [] } = opRow(name);
  const fields = [...required, ...optional.map((field) => `${field}?`)].join(", ");
  return { name, detail: fields === "" ? "()" : `({ ${fields} })`, info: purpose };
});

export const ABILITIES: readonly Ability[] = [
  ...ops,
  { name: "setResponse", detail: "({ response })", info: "Sets the response without returning it." },
  { name: "showImportDetails", detail: "()", info: "What the imports resolved to." },
];

export const GLOBALS: readonly Ability[] = [
  { name: "Actions", detail: "", info: "What only the service can do: sign, encrypt, decrypt." },
  { name: "ethers", detail: "", info: "The ethers library, version 6." },
  { name: "fetch", detail: "(url, options)", info: "HTTP requests to the outside." },
  { name: "crypto", detail: "", info: "Web cryptography." },
  { name: "console", detail: "", info: "Each call is a line of the logs." },
  { name: "jsParams", detail: "", info: "The parameters of the run." },
  { name: "TextEncoder", detail: "", info: "Text to bytes." },
  { name: "TextDecoder", detail: "", info: "Bytes to text." },
  { name: "URL", detail: "", info: "Addresses taken apart." },
];
