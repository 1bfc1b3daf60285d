/**
 * A flow's folder as it would be installed: manifest, script, files and the hash that an approval binds to. Nothing is kept
 * and nothing is run here; `install` and every preview begin with it.
 *
 * TRUST: everything in the folder is its author's. The manifest is read under the same fence as the script.
 */

import { type BundleFailure, bundleFlow, type FlowBundle, readFlowFile } from "@flowcell/bundle";
import {
  approvalHash,
  formatManifestProblem,
  type Manifest,
  manifestBytesMax,
  parseManifest,
} from "@flowcell/manifest";
import { type Limits, parseLimits, profileLimits } from "@flowcell/protocol";
import { OperationError } from "../ports.js";
import { cronProblem } from "../schedule/cron.js";

export const manifestName = "flow.json";

export interface FlowFolder {
  readonly manifest: Manifest;
  /** The bytes of flow.json, as text. */
  readonly manifestText: string;
  readonly bundle: FlowBundle;
  readonly hash: string;
}

/** Throws OperationError with everything that is wrong. */
export async function readFlowFolder(folder: string, ceilings: Limits): Promise<FlowFolder> {
  const file = readFlowFile(folder, manifestName, manifestBytesMax);
  if (!file.ok) throw invalid("this folder holds no flow", [failureText(file.failure)]);
  const manifest = parse(file.bytes);
  const limits = flowLimits(manifest, ceilings);
  const bundled = await bundleFlow(folder, { sourceBytes: limits.sourceBytes });
  if (!bundled.ok) throw invalid("the script cannot be bundled", [failureText(bundled.failure)]);
  const { bundle } = bundled;
  const manifestText = exactText(file.bytes);
  const hash = approvalHash({
    manifestBytes: file.bytes,
    inputs: bundle.inputs,
    bundleBytes: Buffer.from(bundle.text),
  });
  return { manifest, manifestText, bundle, hash };
}

/** UTF-8 that was read as such, so that encoding it gives the same bytes: a byte order mark stays. */
export function exactText(bytes: Uint8Array): string {
  return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
}

/** The hash of what is stored, from the stored text alone. */
export function storedHash(version: {
  readonly manifestText: string;
  readonly sources: readonly { readonly path: string; readonly text: string }[];
  readonly bundle: string;
}): string {
  return approvalHash({
    manifestBytes: Buffer.from(version.manifestText),
    inputs: version.sources.map(({ path, text }) => ({ path, bytes: Buffer.from(text) })),
    bundleBytes: Buffer.from(version.bundle),
  });
}

/** A manifest that was stored, read again by the same rules. */
export function storedManifest(manifestText: string): Manifest {
  return parse(manifestText);
}

/** What a flow's activations may use: the profile's limits, what the manifest asks for, under the operator's ceilings. */
export function flowLimits(manifest: Manifest, ceilings: Limits): Limits {
  const result = parseLimits(manifest.budgets, profileLimits("flow"), ceilings);
  if (result.ok) return Object.freeze(result.limits);
  throw invalid("the budgets of the manifest cannot be had here", [
    `${manifestName}: budgets: ${result.message}; ask for less, or let the operator raise the ceiling`,
  ]);
}

function parse(text: string | Uint8Array): Manifest {
  const parsed = parseManifest(text, { label: manifestName, checkCron: cronProblem });
  if (parsed.ok) return parsed.manifest;
  throw invalid("the manifest is not right", parsed.problems.map(formatManifestProblem));
}

function failureText(failure: BundleFailure): string {
  return failure.frame === undefined ? failure.message : `${failure.message}\n${failure.frame}`;
}

function invalid(message: string, problems: readonly string[]): OperationError {
  return new OperationError("invalid", `${message}: ${problems[0] ?? "no reason"}`, problems);
}
