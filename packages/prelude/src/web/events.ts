/** Event and EventTarget, from event-target-shim; CustomEvent, which it lacks. What listeners throw goes to the console. */

import { Event, EventTarget, setErrorHandler, setWarningHandler } from "event-target-shim";
import { logError } from "../console.js";
import { defineClasses } from "../define.js";

class CustomEvent extends Event {
  readonly #detail: unknown;

  constructor(
    type: string,
    init?: { bubbles?: boolean; cancelable?: boolean; composed?: boolean; detail?: unknown },
  ) {
    super(type, init);
    this.#detail = init?.detail ?? null;
  }

  get detail(): unknown {
    return this.#detail;
  }
}

export function installEvents(): void {
  setErrorHandler(logError);
  // They are about misuse that browsers do not mention either.
  setWarningHandler(() => {});
  defineClasses({ Event, EventTarget, CustomEvent });
}
