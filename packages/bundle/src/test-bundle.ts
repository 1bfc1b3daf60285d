/**
 * A test file of a flow as the script that a worker evaluates: the test, the flow and the library that tests import, which
 * has no file. The same fence as for flows: a test reaches no further than its flow does.
 *
 * TRUST: the folder belongs to the flow's author; the library is flowcell's own.
 */

import { createHash } from "node:crypto";
import { existsSync, realpathSync } from "node:fs";
import { join } from "node:path";
import type { BundleResult } from "./bundle.js";
import { buildScript } from "./esbuild-build.js";
import { type BundleFailure, fail } from "./failure.js";
import { deepNesting, entryLoader, type TestLibrary } from "./fence.js";
import { flowEntryNames } from "./flow-folder.js";
import { readSource, tooLargeText } from "./read-source.js";

export interface TestBundleOptions {
  /** Bytes that any one source, and the script as it is sent, may have. */
  readonly sourceBytes: number;
  readonly library: Pick<TestLibrary, "specifier" | "text">;
  readonly deadlineMs?: number;
}

const deadlineMsDefault = 10_000;

/** `name` is the test's path inside the folder. */
export async function bundleFlowTest(
  folder: string,
  name: string,
  options: TestBundleOptions,
): Promise<BundleResult> {
  const root = realpathSync(folder);
  const flow = flowEntryNames.find((candidate) => existsSync(join(root, candidate)));
  if (flow === undefined) {
    return refuse(fail("not_found", `the folder holds no script; name it ${flowEntryNames.join(", ")}`));
  }
  const loader = entryLoader(name);
  if (loader === undefined) return refuse(fail("unsupported_file", `${name}: tests are .ts or .js files`));
  const source = readSource(join(root, name), name, options.sourceBytes, root);
  if (!source.ok) return source;
  const { text, bytes } = source;
  const deep = deepNesting(name, text);
  if (deep !== undefined) return refuse(deep);
  const entry = { text, bytes, label: name, loader, root, name, testing: { ...options.library, flow } };
  const outcome = await buildScript(entry, options.sourceBytes, options.deadlineMs ?? deadlineMsDefault);
  if (!outcome.ok) return refuse(outcome.failure);
  const { built } = outcome;
  const size = Buffer.byteLength(built.text);
  if (size > options.sourceBytes) {
    return refuse(
      fail("source_too_large", tooLargeText(`${name} with its imports`, size, options.sourceBytes)),
    );
  }
  const sha256 = createHash("sha256").update(built.text).digest("hex");
  const { map, warnings, inputs } = built;
  return { ok: true, script: { label: name, text: built.text, sha256, map, warnings, inputs } };
}

function refuse(failure: BundleFailure): { readonly ok: false; readonly failure: BundleFailure } {
  return { ok: false, failure };
}
