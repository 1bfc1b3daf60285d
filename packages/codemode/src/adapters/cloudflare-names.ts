/**
 * From the providers and connectors of one `execute` to namespaces of a script: which names are refused, in the words of
 * @cloudflare/codemode, and what each function is called on the wire. cloudflare.ts calls it.
 *
 * Kept true: functions are own properties, read once; two of them never share a name, in the script or on the wire; what is
 * refused here has run nothing.
 */

import { parse } from "acorn";
import type { ConnectorBinding, ProviderFunctions, ResolvedProvider } from "./cloudflare-types.js";

export type HostCallee =
  | { readonly kind: "function"; call(...args: unknown[]): unknown }
  | { readonly kind: "connector"; callTool(method: string, args: unknown): unknown };

export interface ProviderNames {
  readonly name: string;
  /** What a script calls a function → what it is on the wire. */
  readonly functions: ReadonlyMap<string, string>;
  readonly prelude: string | undefined;
}

export interface ConnectorNames {
  readonly name: string;
  readonly wire: string;
}

export interface Bindings {
  readonly providers: readonly ProviderNames[];
  readonly connectors: readonly ConnectorNames[];
  /** By name on the wire. */
  readonly callees: ReadonlyMap<string, HostCallee>;
}

export type BindingsResult =
  | { readonly ok: true; readonly bindings: Bindings }
  | { readonly ok: false; readonly error: string };

const identifier = /^[a-zA-Z_$][a-zA-Z0-9_$]*$/;
/** Names in the module that the reference executor generates; scripts rely on the last four. */
const reservedThere =
  "__dispatchers __connectors __logs __CODEMODE_BINARY_TAG __bytesToBase64 __base64ToBytes __encodeCodemodeValue " +
  "__decodeCodemodeValue __stringifyForCodemode __parseForCodemode WorkerEntrypoint CodeExecutor Promise setTimeout Error console";
/** What cannot be a parameter in strict code. */
const reservedWords =
  "arguments await break case catch class const continue debugger default delete do else enum eval export extends false finally " +
  "for function if implements import in instanceof interface let new null package private protected public return static super " +
  "switch this throw true try typeof var void while with yield";
/** Further words that the package's `sanitizeToolName` does not leave as they are. */
const avoidedWords =
  "abstract boolean byte char double final float goto int long native short synchronized throws transient undefined volatile";

const reserved: ReadonlySet<string> = new Set(`${reservedThere} ${reservedWords}`.split(" "));
const unsuitable: ReadonlySet<string> = new Set(`${reservedWords} ${avoidedWords}`.split(" "));

const namesMost = 4096;

export function bind(
  providers: readonly ResolvedProvider[],
  connectors: readonly ConnectorBinding[],
): BindingsResult {
  const error = nameError(providers, connectors);
  if (error !== undefined) return { ok: false, error };
  const wires = new Wires();
  const bound: ProviderNames[] = [];
  for (const provider of providers) {
    const { name, prelude } = provider;
    const read = readFunctions(name, provider.fns);
    if (!read.ok) return read;
    if (prelude !== undefined && prelude !== "" && !isBody(prelude))
      return { ok: false, error: `Prelude of provider "${name}" is not valid JavaScript` };
    const functions = new Map<string, string>();
    for (const [key, call] of read.functions)
      functions.set(key, wires.add(`${name}.${key}`, { kind: "function", call }));
    bound.push({ name, functions, prelude: prelude === "" ? undefined : prelude });
  }
  const named = connectors.map(({ name, binding }) => ({
    name,
    wire: wires.add(`${name}.callTool`, {
      kind: "connector",
      callTool: (method, args) => binding.callTool(method, args),
    }),
  }));
  if (wires.callees.size > namesMost)
    return { ok: false, error: `More than ${namesMost} tools; pass fewer providers` };
  return { ok: true, bindings: { providers: bound, connectors: named, callees: wires.callees } };
}

/** Gives each function a name that a host function may have: the script's own where that is one. */
class Wires {
  readonly callees = new Map<string, HostCallee>();

  add(wanted: string, callee: HostCallee): string {
    let name = wanted;
    for (let n = this.callees.size; !isWireName(name) || this.callees.has(name); n++) name = `other.n${n}`;
    this.callees.set(name, callee);
    return name;
  }
}

/** What the worker's host object answers without asking: what the language looks up on any object, and the console. */
const neverWired: ReadonlySet<string> = new Set([
  ...Object.getOwnPropertyNames(Object.prototype),
  ..."then catch toJSON inspect prototype nodeType tagName $$typeof asymmetricMatch".split(" "),
]);

function isWireName(name: string): boolean {
  const parts = name.split(".");
  if (parts[0] === "log" || name.length > 128) return false;
  return parts.every((part) => part.length <= 64 && !neverWired.has(part));
}

function nameError(
  providers: readonly ResolvedProvider[],
  connectors: readonly ConnectorBinding[],
): string | undefined {
  const seen = new Set<string>();
  for (const { name } of providers) {
    const problem = nameProblem(name);
    if (problem !== undefined) return `Provider name "${name}" ${problem}`;
    if (seen.has(name)) return `Duplicate provider name "${name}"`;
    seen.add(name);
  }
  for (const { name } of connectors) {
    const problem = nameProblem(name);
    if (problem !== undefined) return `Connector name "${name}" ${problem}`;
    if (seen.has(name)) return `Duplicate name "${name}" (connector clashes with provider)`;
    seen.add(name);
  }
  return undefined;
}

function nameProblem(name: string): string | undefined {
  if (reserved.has(name)) return "is reserved";
  return identifier.test(name) ? undefined : "is not a valid JavaScript identifier";
}

type FunctionsResult =
  | { readonly ok: true; readonly functions: ReadonlyMap<string, (...args: unknown[]) => unknown> }
  | { readonly ok: false; readonly error: string };

function readFunctions(provider: string, fns: ProviderFunctions): FunctionsResult {
  const functions = new Map<string, (...args: unknown[]) => unknown>();
  const originals = new Map<string, string>();
  for (const [original, call] of Object.entries(fns)) {
    const name = sanitizeToolName(original);
    const other = originals.get(name);
    if (other !== undefined) {
      const error = `Tool names "${other}" and "${original}" both sanitize to "${name}" in provider "${provider}"`;
      return { ok: false, error };
    }
    if (typeof call !== "function") continue;
    originals.set(name, original);
    functions.set(name, call);
  }
  return { ok: true, functions };
}

/** As the package makes them, so that the types it shows to a model and the names here are the same. */
export function sanitizeToolName(original: string): string {
  const letters = original.replaceAll(/[-.\s]/g, "_").replaceAll(/[^a-zA-Z0-9_$]/g, "");
  if (letters === "") return "_";
  const name = /^[0-9]/.test(letters) ? `_${letters}` : letters;
  return unsuitable.has(name) ? `${name}_` : name;
}

/** Whether the text is whole statements of an async function: it cannot end the function that it becomes part of. */
function isBody(text: string): boolean {
  try {
    const { body } = parse(text, {
      ecmaVersion: 2025,
      sourceType: "module",
      allowAwaitOutsideFunction: true,
    });
    return !body.some(({ type }) => type.startsWith("Import") || type.startsWith("Export"));
  } catch {
    return false;
  }
}
