import { expect } from "chai";
import { run } from "../../support/sandbox";

/** js_params come from the caller: data in the guest, never evaluated in the host. */
describe("attack: parameters that pollute prototypes", () => {
  const outcomeOf = (params: string, code: string) =>
    run(code, { params: JSON.parse(params) as Record<string, unknown> });

  it("`__proto__` stays a field", async () => {
    const outcome = await outcomeOf(
      `{"__proto__": {"polluted": 1}, "constructor": {"prototype": {"polluted": 2}}}`,
      `async function main(params) {
        return [Object.keys(params), {}.polluted === undefined, Object.getPrototypeOf(params) === Object.prototype];
      }`,
    );
    expect(outcome.response).to.equal(`[["__proto__","constructor"],true,true]`);
    expect(({} as Record<string, unknown>).polluted).to.equal(undefined);
  });

  it("parameters of code without main replace no existing global", async () => {
    const outcome = await outcomeOf(
      `{"fetch": "mine", "Actions": "mine", "__proto__": {"a": 1}, "toString": "mine", "own": "yes"}`,
      `Actions.setResponse({
        response: [typeof fetch, typeof Actions, typeof a, typeof toString, own, jsParams.fetch],
      });`,
    );
    expect(outcome.response).to.equal(`["function","object","undefined","function","yes","mine"]`);
  });
});
