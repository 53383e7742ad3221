/** Messages of failed runs that were made in this tab, by request id: the service does not store them. */
const told = new Map<string, string>();

export function tell(receipt: string | undefined, message: string | undefined): void {
  const id = requestOf(receipt);
  if (id !== undefined && message !== undefined) told.set(id.request_id, message);
}

export const toldOf = (requestId: string): string | undefined => told.get(requestId);

/** What a receipt says, not checked here. */
export function requestOf(
  receipt: string | undefined,
): { readonly request_id: string; readonly started_at_ms: number } | undefined {
  const [, payload = ""] = receipt?.split(".") ?? [];
  try {
    const bytes = Uint8Array.from(atob(payload.replaceAll("-", "+").replaceAll("_", "/")), (one) => one.charCodeAt(0));
    return JSON.parse(new TextDecoder().decode(bytes)) as { request_id: string; started_at_ms: number };
  } catch {
    return undefined;
  }
}
