/**
 * What flowcell says of a script, in a codemode's words: tools are called by their own names, and what other systems have is not
 * offered where it is not. execute.ts and journal-waits.ts pass results through it.
 *
 * Kept true: only what flowcell itself wrote is changed: warnings, and messages that begin in its way; a script's own texts, its
 * lines and its values stay.
 */

import type { RunError } from "@flowcell/protocol";
import { askNamespace } from "./guest-names.js";
import { lookupNamespace } from "./lookup-functions.js";
import type { ExecuteResult } from "./result.js";

const namespacesListed = 12;
const noNetwork = "there is no network here; call a tool";
const noModules =
  "there are no modules here: a script is the body of an async function, and returns its result";

/** Instead of what is said of these where scripts are modules and may have a network. */
const hints: ReadonlyMap<string, string> = new Map([
  ["XMLHttpRequest", noNetwork],
  ["WebSocket", noNetwork],
  ["EventSource", noNetwork],
  ["__dirname", noModules],
  ["__filename", noModules],
  ["exports", noModules],
  ["module", noModules],
]);

/** The pool speaks of flows, whose activations wait. */
function queueText(message: string): string {
  const waiting = /queue of (\d+) waiting/.exec(message)?.[1];
  if (waiting === undefined) return message;
  return `every worker is busy and ${waiting} executions wait already (queueMax); try again later, or raise queueMax or maxWorkers`;
}

const undefinedName = /^([A-Za-z_$][\w$]{0,99}) is not defined(: .*)?$/;

export class Wording {
  readonly #namespaces: readonly string[];
  readonly #internal: RegExp;

  constructor(namespaces: readonly string[]) {
    this.#namespaces = [...new Set(namespaces)];
    const names = [askNamespace, lookupNamespace, ...this.#namespaces].map((name) =>
      name.replaceAll("$", "[$]"),
    );
    this.#internal = new RegExp(`\\bhost\\.(?=(?:${names.join("|")})\\.)`, "g");
  }

  result(result: ExecuteResult): ExecuteResult {
    const { warnings } = result;
    const reworded =
      warnings.length === 0
        ? warnings
        : warnings.map(({ code, message }) => ({ code, message: this.#own(message) }));
    if (!result.ok) return { ...result, warnings: reworded, error: this.#error(result.error) };
    return warnings.length === 0 ? result : { ...result, warnings: reworded };
  }

  #own(text: string): string {
    return text.replaceAll(this.#internal, "").replaceAll(`${askNamespace}.`, "");
  }

  #error(error: RunError): RunError {
    const message = error.code === "queue_full" ? queueText(error.message) : this.#message(error);
    if (message === error.message) return error;
    const stack = error.stack?.replace(error.message, () => message);
    return { ...error, message, ...(stack === undefined ? {} : { stack }) };
  }

  #message({ name, message }: RunError): string {
    if (name === "HostError") return message.startsWith("host.") ? this.#own(message) : message;
    if (name !== "ReferenceError") return message;
    const found = undefinedName.exec(message);
    const [, missing, hint] = found ?? [];
    if (missing === undefined) return message;
    const own = hints.get(missing);
    if (own !== undefined) return `${missing} is not defined: ${own}`;
    if (hint !== undefined || this.#namespaces.length === 0) return message;
    const shown = this.#namespaces.slice(0, namespacesListed).join(", ");
    const more = this.#namespaces.length - namespacesListed;
    return `${message}; the namespaces of tools are ${shown}${more > 0 ? ` and ${more} more` : ""}`;
  }
}
