/** Schemas that the `fs.*` rows share, and what bytes a script's data is. */

import { didYouMean, HostError } from "@flowcell/protocol";
import * as z from "zod/mini";

export const pathArgument = z.string({ error: "must be a path such as /data/report.csv" });

export const dataArgument = z.union([z.string(), z.instanceof(Uint8Array)], {
  error: "must be a string or a Uint8Array",
});

/** An object of options: unknown names are refused, with the nearest known one. */
export function optionsArgument<Shape extends z.core.$ZodLooseShape>(
  shape: Shape,
): z.ZodMiniOptional<z.ZodMiniObject<Shape, z.core.$strict>> {
  const names = Object.keys(shape);
  const known = `its options are ${names.join(", ")}`;
  const error = (issue: { readonly code?: string; readonly keys?: readonly string[] }): string => {
    const unknown = issue.code === "unrecognized_keys" ? issue.keys?.[0] : undefined;
    if (unknown === undefined) return `must be an object; ${known}`;
    const near = didYouMean(unknown, names);
    return `has an unknown option ${JSON.stringify(unknown.slice(0, 64))}${near === undefined ? "" : `; did you mean ${near}?`} (${known})`;
  };
  return z.optional(z.strictObject(shape, { error }));
}

/** How many bytes were written. */
export const writtenResult = z.strictObject({ bytes: z.number({ error: "must be a number" }) });

/** Text as UTF-8. Throws `invalid_arguments` for text that has none, `too_large` beyond the limit. */
export function dataBytes(call: string, data: string | Uint8Array, bytesMax: number): Uint8Array {
  const length = typeof data === "string" ? Buffer.byteLength(data) : data.length;
  if (length > bytesMax) {
    throw new HostError(
      "too_large",
      `${call}: the data has ${length} bytes; at most ${bytesMax} are written at once`,
      {
        detail: { bytes: length, bytesMax },
      },
    );
  }
  if (typeof data !== "string") return data;
  if (/\p{Surrogate}/u.test(data)) {
    throw new HostError(
      "invalid_arguments",
      `${call}: the text holds half of a surrogate pair, which UTF-8 cannot write`,
    );
  }
  return new TextEncoder().encode(data);
}
