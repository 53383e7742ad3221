import { attack } from "../../support/attack";

attack("an endless chain of microtasks", {
  code: `console.log("before"); (function next() { Promise.resolve().then(next); })();`,
  ends: "timed_out",
});
