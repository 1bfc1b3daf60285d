/**
 * The prelude: everything that a script finds around it, evaluated once while the worker's image is made, under the file
 * name prelude.js. The order matters: intrinsics are captured first, then polyfills run, then the surface is put in place
 * and what must not be there is removed. C keeps the functions of `exports` and calls nothing else of it.
 *
 * What it may trust: texts from the parent (through C). What it keeps true: nothing that a script does to its realm changes
 * what the runtime sends, but for the script's own values; no state of the runtime is reachable from the script.
 */

import "./primordials.js";
import "./native.js";
import { activate, deliver, idle, refuse, start } from "./activation.js";
import { installSurface } from "./surface.js";
import { trackRejection } from "./warnings.js";

installSurface();

export const exports = {
  activate,
  start,
  refuse,
  deliver,
  idle,
  rejection: trackRejection,
};
