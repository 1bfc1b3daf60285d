/** Puts DOMException on the global before the polyfills run, which look for it there. */

import { defineClasses } from "../define.js";
import { DOMException } from "./dom-exception.js";

defineClasses({ DOMException });
