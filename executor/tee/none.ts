import { KeywrightError } from "../../protocol/errors";
import { TeeError, type TeeSource } from "./types";

/**
 * Without a TEE endpoint attestation answers 503 and says why. The root key must come from elsewhere, which is allowed
 * in development only.
 */
export const noTee: TeeSource = {
  kind: "none",
  async rootKey() {
    throw new TeeError(
      "not_configured",
      "TEE=none has no root key; give ROOT_KEY_FILE (development only) or set TEE=dstack",
    );
  },
  async quote() {
    throw new KeywrightError("attestation_unavailable", "this deployment runs without a TEE and has no attestation.");
  },
  async info() {
    return undefined;
  },
  async close() {
    return undefined;
  },
};
