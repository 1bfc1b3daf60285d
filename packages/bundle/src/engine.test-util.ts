/**
 * Runs scripts for this package's tests in the engine that the worker is made from, as WebAssembly inside this process.
 * It evaluates the expression and calls the default export the way the worker's prelude does, without any of its comforts.
 */

import { getQuickJS } from "quickjs-emscripten";
import { scriptFileName } from "./stack.js";

export type EngineOutcome =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly name: string; readonly message: string; readonly stack: string };

/** `input` and the value are plain JSON. */
export async function runInEngine(script: string, input: unknown = null): Promise<EngineOutcome> {
  const engine = await getQuickJS();
  const context = engine.newContext();
  try {
    context.setProp(context.global, "input", context.newString(JSON.stringify(input)));
    const loaded = context.evalCode(script, scriptFileName);
    if (loaded.error !== undefined) return failure(context.dump(loaded.error));
    context.setProp(context.global, "start", loaded.value);
    const driver = `globalThis.outcome = undefined;
      const settle = (outcome) => { globalThis.outcome = JSON.stringify(outcome); };
      const fail = (e) => settle({ ok: false, name: String(e.name), message: String(e.message), stack: String(e.stack) });
      try { Promise.resolve(start().default(JSON.parse(input), {})).then((value) => settle({ ok: true, value }), fail); }
      catch (e) { fail(e); }`;
    context.unwrapResult(context.evalCode(driver, "driver.js")).dispose();
    context.runtime.executePendingJobs();
    const outcome: unknown = JSON.parse(context.getString(context.getProp(context.global, "outcome")));
    return outcome as EngineOutcome; // written by the driver above in this shape
  } finally {
    // The test's contexts are few and small; disposing one with live handles would abort the engine.
  }
}

function failure(error: { name: string; message: string; stack: string }): EngineOutcome {
  return { ok: false, name: error.name, message: error.message, stack: error.stack };
}
