declare module "*.css";
declare module "*.js?raw" {
  const text: string;
  export default text;
}
declare module "*.svg" {
  const url: string;
  export default url;
}
interface Window {
  /** Read by libraries that add styles to the page. */
  __webpack_nonce__?: string;
}
