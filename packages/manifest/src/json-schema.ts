/**
 * JSON Schema at the door: compiles a schema once and checks values against it, with one clear message for the first thing
 * that is wrong. Called when a manifest is read, when a run's input arrives and when its result leaves.
 *
 * TRUST: the schema is a manifest's, the value a caller's or a script's; both can be made to cost. What that means is in
 * schema-check.ts for schemas and in schema-evaluate.ts for values. Nothing is fetched, nothing is generated as code, and
 * neither schema nor value is changed.
 * Kept true: messages name places and parts of the schema, never the value, which may hold a secret.
 */

import { type Finding, type Path, pathText } from "./problem.js";
import { checkSchema, type JsonSchema } from "./schema-check.js";
import { Evaluation } from "./schema-evaluate.js";
import { stepsTo } from "./schema-failure.js";

export type SchemaVerdict =
  | { readonly ok: true }
  /**
   * `message` is whole: "input.items[3].quantity must be an integer, not a string". `path` is where, as text with the
   * label; `steps` is the same without it.
   */
  | { readonly ok: false; readonly message: string; readonly path: string; readonly steps: Path };

export interface CompiledSchema {
  readonly schema: JsonSchema;
  /** `label` names the value in messages, such as "input". */
  check(value: unknown, label?: string): SchemaVerdict;
}

export type CompileResult =
  | { readonly ok: true; readonly compiled: CompiledSchema }
  | { readonly ok: false; readonly findings: readonly Finding[] };

/** `schema` must be JSON and is not changed afterwards. The findings' paths begin at the schema. */
export function compileSchema(schema: unknown): CompileResult {
  const result = checkSchema(schema);
  if (!result.ok) return result;
  const { checked } = result;
  const check = (value: unknown, label = "value"): SchemaVerdict => {
    const failure = new Evaluation(checked).run(value);
    if (failure === undefined) return { ok: true };
    const steps = stepsTo(failure.at);
    const path = pathText([label, ...steps]);
    return { ok: false, message: `${path} ${failure.text()}`, path, steps };
  };
  return { ok: true, compiled: { schema: checked.root, check } };
}
