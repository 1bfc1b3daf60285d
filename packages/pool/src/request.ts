/**
 * What is wrong with a request, before anything is done for it. Used by the pool.
 *
 * Requests come from flowcell's own code, with texts and sizes that a caller chose; limits, names and flow ids are looked
 * at once per object. A problem is a result (`invalid_input`), never an exception.
 */
import { headerBounds, type Limits, parseLimits, valueAttachmentsMost } from "@flowcell/protocol";
import type { ActivationRequest, Verdict } from "./types.js";

const flowCharsMax = 256;
const seedBytes = 32;
/** As much as limits.cpuMs can be. */
const replayCpuMsMost = 3_600_000;
// ECMAScript's largest time value.
const timeMost = 8.64e15;

const checkedLimits = new WeakSet<Limits>();
const checkedNames = new WeakSet<readonly string[]>();

export function requestProblem(request: ActivationRequest): Verdict | null {
  const { flow, script, input, names, limits, clock, seed, queueDeadlineMs } = request;
  if (!checkedLimits.has(limits)) {
    const parsed = parseLimits(limits, limits);
    if (!parsed.ok) return problem("limits", parsed.message);
    checkedLimits.add(limits);
  }
  if (flow.length === 0 || flow.length > flowCharsMax) {
    return problem("request", `flow must have 1 to ${flowCharsMax} characters, not ${flow.length}`);
  }
  if (!checkedNames.has(names)) {
    const wrong = namesProblem(names);
    if (wrong !== null) return problem("request", wrong);
    checkedNames.add(names);
  }
  if (seed.byteLength !== seedBytes)
    return problem("request", `seed must have ${seedBytes} bytes, not ${seed.byteLength}`);
  if (!(Math.abs(clock.epochMs) <= timeMost)) {
    return problem("request", "clock.epochMs must be milliseconds since 1970, within the range of Date");
  }
  const driverProblem = wayProblem(request);
  if (driverProblem !== null) return problem("request", driverProblem);
  if (queueDeadlineMs !== undefined && !(queueDeadlineMs >= 0)) {
    return problem("request", `queueDeadlineMs must be 0 or more milliseconds, not ${queueDeadlineMs}`);
  }
  const sourceBytes = bytesBeyond(script, limits.sourceBytes);
  if (sourceBytes !== null) {
    return problem(
      "source_too_large",
      `the script has ${sourceBytes} bytes; sourceBytes is ${limits.sourceBytes}`,
    );
  }
  const inputBytes = bytesBeyond(input.text, limits.inputBytes);
  if (inputBytes !== null) {
    return problem(
      "input_too_large",
      `the input has ${inputBytes} bytes; inputBytes is ${limits.inputBytes}`,
    );
  }
  if (input.attachments.length > 0) return attachmentsProblem(input.attachments, limits);
  return null;
}

/** Who answers calls and moves the clock. */
function wayProblem({ clock, driver, onHostCall, replayCpuMs }: ActivationRequest): string | null {
  if ((driver === undefined) === (onHostCall === undefined)) return "give either onHostCall or driver";
  if ((driver === undefined) === (clock.mode === "driven"))
    return 'clock.mode must be "driven" with a driver only';
  if (replayCpuMs === undefined) return null;
  return driver !== undefined && replayCpuMs >= 0 && replayCpuMs <= replayCpuMsMost
    ? null
    : `replayCpuMs must be 0 to ${replayCpuMsMost} milliseconds, and needs a driver`;
}

function attachmentsProblem(attachments: readonly Uint8Array[], limits: Limits): Verdict | null {
  if (attachments.length > valueAttachmentsMost) {
    return problem(
      "input_too_large",
      `the input has ${attachments.length} binary parts; at most ${valueAttachmentsMost} can travel`,
    );
  }
  let bytes = 0;
  for (const part of attachments) bytes += part.byteLength;
  if (bytes <= limits.bodyBytes) return null;
  return problem(
    "input_too_large",
    `the input's binary parts have ${bytes} bytes; bodyBytes is ${limits.bodyBytes}`,
  );
}

function namesProblem(names: readonly string[]): string | null {
  if (names.length > headerBounds.names)
    return `at most ${headerBounds.names} names can be granted, not ${names.length}`;
  const wrong = names.find((name) => name.length === 0 || name.length > headerBounds.callNameChars);
  if (wrong === undefined) return null;
  return `a granted name must have 1 to ${headerBounds.callNameChars} characters, not ${wrong.length}`;
}

/** The UTF-8 length if it is beyond `most`. Three bytes a character at most, so most texts need no counting. */
function bytesBeyond(text: string, most: number): number | null {
  if (text.length * 3 <= most) return null;
  const bytes = Buffer.byteLength(text);
  return bytes > most ? bytes : null;
}

function problem(
  reason: "limits" | "request" | "source_too_large" | "input_too_large",
  message: string,
): Verdict {
  return { status: "invalid_input", reason, message };
}
