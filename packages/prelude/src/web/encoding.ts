/** TextEncoder and TextDecoder, from @exodus/bytes: UTF-8, UTF-16 and latin1, not the legacy encodings. */

import { TextDecoder, TextEncoder } from "@exodus/bytes/encoding-lite.js";
import { defineClasses } from "../define.js";

export function installEncoding(): void {
  defineClasses({ TextDecoder, TextEncoder });
}
