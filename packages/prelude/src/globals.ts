/** The globals of the guest realm, compared with the engine's own. `surface.test.ts` holds the real realm to these lists. */

/** Names that scripts have beside the language's. */
export const globalsAdded = [
  "AbortController",
  "AbortSignal",
  "Crypto",
  "CustomEvent",
  "DOMException",
  "Event",
  "EventTarget",
  "Headers",
  "HostError",
  "Intl",
  "Performance",
  "Request",
  "Response",
  "TextDecoder",
  "TextEncoder",
  "URL",
  "URLSearchParams",
  "atob",
  "btoa",
  "clearInterval",
  "clearTimeout",
  "console",
  "crypto",
  "fetch",
  "performance",
  "process",
  "queueMicrotask",
  "require",
  "setInterval",
  "setTimeout",
  "structuredClone",
] as const;

/** Names of the language that scripts do not have. */
export const globalsRemoved = ["Atomics", "FinalizationRegistry", "SharedArrayBuffer", "WeakRef"] as const;
