/**
 * Arguments that several built-in rows take: texts measured in bytes, an object of options, a value that is kept or handed
 * on as it is. Used by the rows of keys and values, signals, approvals, flows and events.
 *
 * TRUST: a script made them. A text is well-formed, so that it is the same after it was stored as UTF-8; an unknown option is
 * refused, since a misspelt timeout would wait for ever; a value is encoded anew, which bounds it.
 */

import { didYouMean, type EncodedValue, encodeValue, HostError, ValueError } from "@flowcell/protocol";
import * as z from "zod/mini";

/** Longer than any run may wait: a year. */
export const timeoutMsMax = 366 * 86_400_000;

/** A text of so many bytes. */
export function textArgument(least: number, most: number): z.ZodMiniType<string, string> {
  const problem = `must be a text of ${least} to ${most} bytes of UTF-8, without lone surrogates`;
  return z.string({ error: problem }).check(
    z.refine((text) => {
      if (text.length > most) return false;
      const bytes = Buffer.byteLength(text);
      return bytes >= least && bytes <= most && !loneSurrogate.test(text);
    }, problem),
  );
}

const loneSurrogate = /\p{Surrogate}/u;

/** The last argument of a call: an object in which every name is optional. */
export function optionsArgument<Shape extends z.core.$ZodShape>(
  shape: Shape,
): z.ZodMiniOptional<z.ZodMiniObject<Shape, z.core.$strict>> {
  const names = Object.keys(shape);
  const error = (issue: z.core.$ZodRawIssue): string | undefined => {
    if (issue.code !== "unrecognized_keys") return undefined;
    const unknown = issue.keys[0] ?? "";
    const near = didYouMean(unknown, names);
    const shown = JSON.stringify(unknown.slice(0, 40));
    return near === undefined
      ? `unknown option ${shown}: the options are ${names.join(", ")}`
      : `unknown option ${shown}: did you mean ${near}?`;
  };
  return z.optional(z.strictObject(shape, { error }));
}

const timeoutProblem = `must be a number of milliseconds from 0 to ${timeoutMsMax}`;

export const timeoutArgument: z.ZodMiniOptional<z.ZodMiniNumber> = z.optional(
  z
    .number({ error: timeoutProblem })
    .check(z.minimum(0, timeoutProblem), z.maximum(timeoutMsMax, timeoutProblem)),
);

/** Any value, encoded on its own. `what` names it in errors: `kv.set: the value`. */
export function encodedArgument(what: string, value: unknown, bytesMax: number): EncodedValue {
  const encoded = encode(what, value, bytesMax);
  let bytes = Buffer.byteLength(encoded.text);
  for (const part of encoded.attachments) bytes += part.byteLength;
  if (bytes > bytesMax) throw tooLarge(what, bytesMax);
  return encoded;
}

function encode(what: string, value: unknown, bytesMax: number): EncodedValue {
  try {
    return encodeValue(value, { textBytes: bytesMax, attachmentBytes: bytesMax });
  } catch (error) {
    if (!(error instanceof ValueError)) throw error;
    if (error.code === "too_large") throw tooLarge(what, bytesMax);
    throw new HostError("invalid_arguments", `${what} cannot be kept: ${error.message}`, { cause: error });
  }
}

function tooLarge(what: string, bytesMax: number): HostError {
  return new HostError("too_large", `${what} has more than ${bytesMax} bytes as it is encoded`);
}
