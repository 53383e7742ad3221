/** The nonce of this copy of the page. Libraries that add a style sheet while the page runs must carry it, or the browser refuses it. */
export const styleNonce = document.querySelector<HTMLMetaElement>('meta[property="csp-nonce"]')?.nonce ?? "";
window.__webpack_nonce__ = styleNonce;
