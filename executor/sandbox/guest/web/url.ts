export { URL, URLSearchParams } from "whatwg-url";
