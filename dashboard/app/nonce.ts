/**
 * The CSP nonce of this page load. Style sheets that libraries add at run time must carry it, or the browser refuses
 * them.
 */
export const styleNonce = document.querySelector<HTMLMetaElement>('meta[property="csp-nonce"]')?.nonce ?? "";
window.__webpack_nonce__ = styleNonce;
