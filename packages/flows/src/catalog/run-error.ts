/**
 * An error of a run as callers get it: what the pool says, moved to the author's files by the version's map. One
 * `errorMapper` for each version; the engine calls it when an activation ends.
 *
 * TRUST: names, messages, stacks and causes are a script's. The wire bounds their depth, number and length; here stacks are
 * read by `mapStack`, which believes positions of the map only, and nothing is added but names of the author's files.
 */

import { mapStack, type ScriptMap } from "@flowcell/bundle";
import type { ScriptErrorData, Status } from "@flowcell/protocol";
import type { CellResult, RunErrorData } from "../ports.js";

type CellError = NonNullable<CellResult["error"]>;

/** `map` is asked for the first time when a script has failed: most never do. */
export function errorMapper(map: () => ScriptMap): (error: CellError) => RunErrorData {
  let known: ScriptMap | undefined;
  return (error) => {
    const figures = {
      ...(error.limit === undefined ? {} : { limit: error.limit }),
      ...(error.used === undefined ? {} : { used: error.used }),
      ...(error.fact === undefined ? {} : { fact: error.fact }),
    };
    if (error.name === undefined) {
      return { code: error.code, name: "Error", message: error.message, ...figures };
    }
    known ??= map();
    const { cause, errors } = error;
    const data: ScriptErrorData = {
      name: error.name,
      message: error.message,
      stack: error.stack ?? "",
      ...(cause === undefined ? {} : { cause }),
      ...(errors === undefined ? {} : { errors }),
    };
    const ownCode = error.ownCode === undefined ? {} : { ownCode: error.ownCode };
    return { ...scriptError(data, error.code, known), ...ownCode, ...figures };
  };
}

/** Depth and number of what is inside are bounded by the wire format. */
function scriptError(data: ScriptErrorData, code: string, map: ScriptMap): RunErrorData {
  const message = engineMessage(data);
  const { stack, place } = mapStack(data.stack, map);
  const heading = message === "" ? data.name : `${data.name}: ${message}`;
  const inner = (one: ScriptErrorData): RunErrorData => scriptError(one, one.code ?? "uncaught", map);
  return {
    code,
    name: data.name,
    message,
    stack: stack === "" ? heading : `${heading}\n${stack}`,
    ...(place === undefined ? {} : { place }),
    ...(data.cause === undefined ? {} : { cause: inner(data.cause) }),
    ...(data.errors === undefined ? {} : { errors: data.errors.map(inner) }),
  };
}

/** The engine puts the name in quotes, where every other engine and every guide writes `x is not defined`. */
function engineMessage({ name, message }: ScriptErrorData): string {
  if (name !== "ReferenceError") return message;
  return message.replace(/^'([^']+)' is not (defined|initialized)$/, "$1 is not $2");
}

/** An error that flowcell itself words. */
export function plainError(status: Status, reason: string, message: string): RunErrorData {
  return { code: reason, name: status, message };
}
