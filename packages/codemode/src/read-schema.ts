/** Reads a tool's schema of either kind: Standard Schema (zod and others) or JSON Schema. */

import { isSchema } from "@flowcell/host";
import { compileSchema } from "@flowcell/manifest";
import type { ToolSchema } from "./tools.js";

export function readSchema(given: unknown): ToolSchema {
  if (isSchema(given)) {
    return {
      json: null,
      validate: async (value) => {
        const result = await given["~standard"].validate(value);
        if (result.issues === undefined) return { ok: true, value: result.value };
        const issue = result.issues[0];
        const path = (issue?.path ?? []).map((part) => {
          const key = typeof part === "object" ? part.key : part;
          return typeof key === "number" ? key : String(key);
        });
        return {
          ok: false,
          message: `input${path.map((part) => `.${part}`).join("")}: ${issue?.message ?? "refused"}`,
          path,
        };
      },
    };
  }
  const result = compileSchema(given);
  if (!result.ok) throw new Error(JSON.stringify(result.findings[0]));
  const { compiled } = result;
  return {
    json: compiled.schema as Readonly<Record<string, unknown>>,
    validate: (value) => {
      const verdict = compiled.check(value, "input");
      return verdict.ok ? { ok: true, value } : { ok: false, message: verdict.message, path: verdict.steps };
    },
  };
}
