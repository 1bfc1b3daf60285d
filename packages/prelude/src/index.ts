/**
 * What the rest of flowcell may know of the prelude without loading it: the globals that scripts find. The prelude itself
 * is no module of Node; scripts/native/prelude.mjs makes one script of `main.ts`.
 */

export { globalsAdded, globalsRemoved } from "./globals.js";
