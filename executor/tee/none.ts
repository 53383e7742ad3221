import { KeywrightError } from "../../protocol/errors";
import { TeeError, type TeeSource } from "./types";

/** No TEE endpoint: attestation answers 503 and says so; the root key has to come from elsewhere, which only development allows. */
export const noTee: TeeSource = {
  kind: "none",
  async rootKey() {
    throw new TeeError("not_configured", "TEE=none has no root key; give ROOT_KEY_FILE (development only) or set TEE=dstack");
  },
  async quote() {
    throw new KeywrightError("attestation_unavailable", "this deployment runs without a TEE; there is nothing to attest.");
  },
  async info() {
    return undefined;
  },
  async close() {
    return undefined;
  },
};
