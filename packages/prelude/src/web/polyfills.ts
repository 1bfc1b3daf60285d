/**
 * The parts of core-js that scripts get: URL, URLSearchParams, structuredClone, atob, btoa, Array.fromAsync, the base64 and
 * hexadecimal methods of Uint8Array. They run when they are imported, and need DOMException on the global by then.
 *
 * Their modules are ordinary code that looks intrinsics up: a script that replaces an intrinsic may break them for itself.
 * Nothing of the runtime's core calls them.
 */

import "./dom-exception-global.js";
import "core-js/modules/web.url.js";
import "core-js/modules/web.url.can-parse.js";
import "core-js/modules/web.url.parse.js";
import "core-js/modules/web.url.to-json.js";
import "core-js/modules/web.url-search-params.js";
import "core-js/modules/web.url-search-params.delete.js";
import "core-js/modules/web.url-search-params.has.js";
import "core-js/modules/web.url-search-params.size.js";
import "core-js/modules/web.structured-clone.js";
import "core-js/modules/web.atob.js";
import "core-js/modules/web.btoa.js";
import "core-js/modules/es.array.from-async.js";
import "core-js/modules/es.uint8-array.from-base64.js";
import "core-js/modules/es.uint8-array.from-hex.js";
import "core-js/modules/es.uint8-array.set-from-base64.js";
import "core-js/modules/es.uint8-array.set-from-hex.js";
import "core-js/modules/es.uint8-array.to-base64.js";
import "core-js/modules/es.uint8-array.to-hex.js";
import { removeGlobals } from "../define.js";

/** Takes away what core-js leaves on the global object. */
export function installPolyfills(): void {
  removeGlobals(["__core-js_shared__", "self"]);
}
