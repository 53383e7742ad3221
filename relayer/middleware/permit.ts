/**
 * Refusals that follow from the caller's role alone, before anything is minted, simulated or reserved. Scopes and
 * groups are checked by the contract.
 */
import type { Route } from "../../protocol/http";
import { KeywrightError } from "../../protocol/errors";
import type { Caller } from "./call";

export function permit(route: Route, caller: Caller | undefined): void {
  if (caller === undefined) return;
  if (caller.retired)
    throw chainSecured(
      "This key is no longer a credential: the account was converted or handed over, and " +
        "its owner's wallet decides now.",
    );
  const isWrite = route.price === "managementWrite" || route.price === "writeIfFunded";
  if (isWrite && route.bothModes !== true && !caller.managed && caller.identityWallet === undefined)
    throw chainSecured("The account is ChainSecured: its owner's wallet sends this write to the contract itself.");
  if (!ownerRoute(route)) return;
  if (!caller.isOwner)
    throw new KeywrightError(
      "owner_only",
      "Only the account's owner may do this; no usage key can be given the right.",
    );
  if (route.auth === "accountKey" && caller.key === undefined)
    throw new KeywrightError("owner_only", "Conversion needs the account key itself.");
}

const ownerRoute = ({ auth }: Route): boolean =>
  auth === "ownerKey" || auth === "accountKey" || auth === "ownerOrWallet";

const chainSecured = (detail: string): KeywrightError => new KeywrightError("account_chain_secured", detail);
