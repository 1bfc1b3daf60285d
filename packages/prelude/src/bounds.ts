/**
 * Bounds that the parent enforces on what the prelude sends, so that the prelude cuts or refuses first. They are declared
 * in the protocol package; it cannot be compiled into the image (it is made for Node), and `bounds.test.ts` holds the two
 * equal.
 */

export const headerBounds = {
  errorNameChars: 256,
  errorCodeChars: 256,
  errorMessageChars: 8192,
  errorStackChars: 16384,
  errorDepth: 8,
  errorMembers: 32,
  warnings: 32,
  warningMessageChars: 1024,
} as const;

export const valueBounds = {
  depth: 1000,
  nodes: 1024 * 1024,
  bigintDigits: 10_000,
  regExpChars: 4096,
  numericKeys: 4096,
  attachments: 1024,
} as const;
