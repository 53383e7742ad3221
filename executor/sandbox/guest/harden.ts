/** Removes what an action must not have: code from strings, shared memory, engine hooks. */

/**
 * Only the code that the CID names may run, so the guest cannot create code from text or bytes. The engine's own switch
 * for this does not affect isolates, and deleting `eval` alone leaves `(() => {}).constructor`: the four function
 * constructors are reachable only through their prototypes' `constructor`, which is permanently shadowed here.
 */
export function harden(): void {
  const refuse = (name: string) =>
    function () {
      throw new TypeError(`${name} is not available: an action's code is exactly the code its CID names`);
    };
  const kinds: [object, string][] = [
    [function () {}, "Function"],
    [async function () {}, "AsyncFunction"],
    [function* () {}, "GeneratorFunction"],
    [async function* () {}, "AsyncGeneratorFunction"],
  ];
  for (const [sample, name] of kinds) shadowConstructor(Object.getPrototypeOf(sample) as object, refuse(name), name);
  remove("eval");
  // `instanceof Function` still works; the constructor itself is gone.
  defineGlobal("Function", Function.prototype.constructor);
  // WebAssembly would be another way to run remote code, and its memory is not counted against the heap.
  for (const name of ["WebAssembly", "SharedArrayBuffer", "Atomics"]) remove(name);
  fixBufferSizes();
}

/**
 * Removes resizable buffers, whose memory is not counted against the heap. The constructor ignores the option, like
 * engines that do not know it.
 */
function fixBufferSizes(): void {
  const Growing = ArrayBuffer;
  const { prototype } = Growing;
  const Fixed = function (this: unknown, length?: number): ArrayBuffer {
    if (!new.target) throw new TypeError("Constructor ArrayBuffer requires 'new'");
    return Reflect.construct(Growing, [length], new.target) as ArrayBuffer;
  };
  const { prototype: _own, ...statics } = Object.getOwnPropertyDescriptors(Growing);
  Object.defineProperties(Fixed, statics);
  Object.defineProperty(Fixed, "prototype", {
    value: prototype,
    writable: false,
    enumerable: false,
    configurable: false,
  });
  Object.defineProperty(prototype, "constructor", {
    value: Fixed,
    writable: true,
    enumerable: false,
    configurable: true,
  });
  for (const name of ["resize", "resizable", "maxByteLength"]) Reflect.deleteProperty(prototype, name);
  Object.defineProperty(globalThis, "ArrayBuffer", {
    value: Fixed,
    writable: true,
    enumerable: false,
    configurable: true,
  });
}

function shadowConstructor(prototype: object, stub: () => never, name: string): void {
  Object.defineProperty(stub, "name", { value: name });
  Object.defineProperty(stub, "prototype", { value: prototype, writable: false });
  Object.defineProperty(prototype, "constructor", { value: Object.freeze(stub), writable: false, configurable: false });
}

function remove(name: string): void {
  Reflect.deleteProperty(globalThis, name);
}

/**
 * A global that the guest cannot overwrite by accident. Configurable, because a guest may declare a top-level `const`
 * of the same name, which the language allows only over configurable ones; it affects only that guest.
 */
export function defineGlobal(name: string, value: unknown): void {
  Object.defineProperty(globalThis, name, { value, writable: false, enumerable: false, configurable: true });
}

/**
 * Web globals, read from `from` at their first read (most actions read none) and writable, as libraries that patch
 * globals expect.
 */
export function defineLazyGlobals(names: readonly string[], from: () => object): void {
  for (const name of names)
    Object.defineProperty(globalThis, name, {
      enumerable: false,
      configurable: true,
      get: () => settle(name, (from() as Record<string, unknown>)[name]),
      set: (value: unknown) => settle(name, value),
    });
}

function settle(name: string, value: unknown): unknown {
  Object.defineProperty(globalThis, name, { value, writable: true, enumerable: false, configurable: true });
  return value;
}
