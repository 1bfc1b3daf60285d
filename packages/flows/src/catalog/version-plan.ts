/**
 * What is known of a version of a flow without its script: the manifest, its limits and the checks of input and result. The
 * service keeps one for every version that it starts or shows.
 *
 * TRUST: the manifest is the stored text of the author's file, read again by the rules of installing; values are a caller's or
 * a script's, decoded within the version's limits.
 */

import { type CompiledSchema, compileSchema, type JsonSchemaObject, type Manifest } from "@flowcell/manifest";
import {
  decodeValue,
  type EncodedValue,
  type Limits,
  parseLimits,
  profileLimits,
  ValueError,
  valueBounds,
} from "@flowcell/protocol";
import { OperationError } from "../ports.js";
import { flowLimits, storedManifest } from "./flow-folder.js";

export interface VersionPlan {
  readonly flow: string;
  readonly hash: string;
  readonly manifest: Manifest;
  readonly limits: Limits;
  /** Why no run of it can begin here now, though it can be shown; null when it can. */
  readonly problem: string | null;
  /** What is wrong with an input, or null. */
  inputProblem(value: unknown): string | null;
  /** What is wrong with a result that a worker sent, or null. */
  resultProblem(value: EncodedValue): string | null;
}

/** Throws OperationError for a manifest that this version of flowcell does not read any more. */
export function planVersion(flow: string, hash: string, manifestText: string, ceilings: Limits): VersionPlan {
  const manifest = storedManifest(manifestText);
  try {
    return planOf(flow, hash, manifest, flowLimits(manifest, ceilings));
  } catch (error) {
    if (!(error instanceof OperationError)) throw error;
    // The operator's ceilings were lowered since: shown by the profile's limits, and not run.
    const usual = parseLimits({}, profileLimits("flow"), ceilings);
    if (!usual.ok) throw error;
    return planOf(flow, hash, manifest, usual.limits, error.message);
  }
}

export function planOf(
  flow: string,
  hash: string,
  manifest: Manifest,
  limits: Limits,
  problem: string | null = null,
): VersionPlan {
  const input = compiled(manifest.input);
  const output = compiled(manifest.output);
  return {
    flow,
    hash,
    manifest,
    limits,
    problem,
    inputProblem: (value) => problemOf(input, value, "input"),
    resultProblem: (value) => {
      if (output === undefined) return null;
      try {
        const { resultBytes, bodyBytes } = limits;
        const nodes = Math.max(valueBounds.nodes, resultBytes);
        return problemOf(
          output,
          decodeValue(value, { textBytes: resultBytes, attachmentBytes: bodyBytes, nodes }),
          "result",
        );
      } catch (error) {
        if (error instanceof ValueError) return `the result cannot be read: ${error.message}`;
        throw error;
      }
    },
  };
}

function problemOf(schema: CompiledSchema | undefined, value: unknown, label: string): string | null {
  const verdict = schema?.check(value, label);
  return verdict === undefined || verdict.ok ? null : verdict.message;
}

function compiled(schema: JsonSchemaObject | undefined): CompiledSchema | undefined {
  if (schema === undefined) return undefined;
  const result = compileSchema(schema);
  if (result.ok) return result.compiled;
  throw new Error("a manifest that was read has a schema that is none");
}
