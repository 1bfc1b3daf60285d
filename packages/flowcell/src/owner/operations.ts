/**
 * The operations on flows, one row each: what it takes, who may ask for it, what it does, and which method of the service
 * it is. The socket dispatches by this table.
 *
 * TRUST: inputs come from outside; nothing reaches the service that the row's schema did not let through. Unknown keys are
 * refused. Values (`input`, `value`) may be anything that travels; the service bounds them by the run's limits.
 */

import type { FlowService } from "@flowcell/flows";
import * as z from "zod/mini";

export type Role = "viewer" | "caller" | "author" | "operator";

export interface Operation {
  readonly role: Role;
  readonly doc: string;
  readonly input: z.ZodMiniType<unknown>;
  /** Takes what `input` returned. */
  call(service: FlowService, input: unknown, signal: AbortSignal): Promise<unknown>;
}

/** Methods of the service that are operations. `close` and `failed` are the owner's own. */
export type OperationName = Exclude<keyof FlowService, "close" | "failed">;

const by = z.string().check(z.minLength(1), z.maxLength(200));
const flow = z.string().check(z.minLength(1), z.maxLength(63));
const hash = z.string().check(z.regex(/^[0-9a-f]{8,64}$/, "must be 8 to 64 hexadecimal digits"));
const runId = z.string().check(z.minLength(1), z.maxLength(64));
const text = z.string().check(z.maxLength(4096));
const reason = z.nullable(text);
const value = z.optional(z.unknown());

function row<Input>(
  role: Role,
  doc: string,
  input: z.ZodMiniType<Input>,
  call: (service: FlowService, input: Input, signal: AbortSignal) => Promise<unknown>,
): Operation {
  return {
    role,
    doc,
    input,
    // What this very schema returned.
    call: (service, checked, signal) => call(service, checked as Input, signal),
  };
}

const decideInput = z.strictObject({ flow, hash, by, reason });

export const operations: { readonly [name in OperationName]: Operation } = {
  install: row(
    "author",
    "Installs the flow of a folder as a version to be approved, with a dry run.",
    z.strictObject({ folder: z.string().check(z.startsWith("/"), z.maxLength(4096)), by, input: value }),
    (service, input) => service.install(input),
  ),
  approve: row(
    "operator",
    "Approves a version; it replaces the one that was approved before.",
    z.strictObject({ flow, hash, by }),
    (service, input) => service.approve(input),
  ),
  reject: row("operator", "Rejects a version that waits for approval.", decideInput, (service, input) =>
    service.reject(input),
  ),
  revoke: row(
    "operator",
    "Takes an approval back and cancels the unfinished runs of the version.",
    decideInput,
    (service, input) => service.revoke(input),
  ),
  enable: row("operator", "Lets a flow start runs again.", z.strictObject({ flow, by }), (service, input) =>
    service.enable(input.flow, input.by),
  ),
  disable: row(
    "operator",
    "Keeps a flow from starting runs.",
    z.strictObject({ flow, by, reason: text }),
    (service, input) => service.disable(input.flow, input.by, input.reason),
  ),
  list: row("viewer", "Every flow with its state.", z.strictObject({}), (service) => service.list()),
  show: row(
    "viewer",
    "One version of a flow: what it may reach, its source, its bundle.",
    z.strictObject({ flow, hash: z.optional(hash) }),
    (service, input) => service.show(input.flow, input.hash),
  ),
  start: row(
    "caller",
    "Starts a run of the approved version.",
    z.strictObject({ flow, input: value, by, deduplicationKey: z.optional(text) }),
    (service, input) => service.start(withoutUndefined(input)),
  ),
  wait: row(
    "viewer",
    "Answers when a run is finished or suspended.",
    z.strictObject({ runId, through: z.optional(z.enum(["suspended", "finished"])) }),
    (service, { runId: id, through }, signal) =>
      service.wait(id, { signal, ...(through === undefined ? {} : { through }) }),
  ),
  run: row("viewer", "What is known of a run.", z.strictObject({ runId }), (service, input) =>
    service.run(input.runId),
  ),
  runs: row(
    "viewer",
    "Runs, newest first.",
    z.strictObject({
      flow: z.optional(flow),
      state: z.optional(z.string().check(z.maxLength(64))),
      limit: z.optional(z.int().check(z.minimum(1), z.maximum(1000))),
      before: z.optional(runId),
    }),
    (service, input) => service.runs(withoutUndefined(input)),
  ),
  history: row("viewer", "The journal of a run.", z.strictObject({ runId }), (service, input) =>
    service.history(input.runId),
  ),
  quarantined: row(
    "viewer",
    "Outcomes that came too late or contradict the journal.",
    z.strictObject({ runId: z.nullable(runId) }),
    (service, input) => service.quarantined(input.runId),
  ),
  cancel: row("operator", "Cancels a run.", z.strictObject({ runId, by }), (service, input) =>
    service.cancel(input.runId, input.by),
  ),
  signal: row(
    "caller",
    "Sends a signal to a run.",
    z.strictObject({ runId, name: text, value, signalId: z.optional(text), by }),
    (service, input) => service.signal(withoutUndefined(input)),
  ),
  answer: row(
    "operator",
    "Answers an approval that a run asked for.",
    z.strictObject({ callId: z.string().check(z.maxLength(64)), approve: z.boolean(), value, by }),
    (service, input) => service.answer(input),
  ),
  reconcile: row(
    "operator",
    "Says what became of a call whose outcome is unknown.",
    z.strictObject({
      runId,
      position: z.int().check(z.nonnegative()),
      decision: z.enum(["observed", "not_applied", "cancel"]),
      value,
      by,
    }),
    (service, input) => service.reconcile(input),
  ),
  replay: row(
    "viewer",
    "Runs a finished run's journal again and compares.",
    z.strictObject({ runId }),
    (service, input) => service.replay(input.runId),
  ),
  emit: row(
    "caller",
    "Hands an event to the flows that it triggers.",
    z.strictObject({ name: text, value, eventId: text, by }),
    (service, input) => service.emit(input),
  ),
  drain: row(
    "operator",
    "Takes no new work; suspends what waits.",
    z.strictObject({ patienceMs: z.int().check(z.nonnegative(), z.maximum(3_600_000)) }),
    (service, input) => service.drain(input.patienceMs),
  ),
};

export function isOperation(name: string): name is OperationName {
  return Object.hasOwn(operations, name);
}

export const operationNames: readonly OperationName[] = Object.freeze(
  Object.keys(operations) as OperationName[], // Object.keys of a literal table gives exactly its names
);

/** What is wrong with an input, in one line. */
export function inputProblem(name: OperationName, issues: readonly z.core.$ZodIssue[]): string {
  const [issue] = issues;
  const path = issue?.path.map(String).join(".") ?? "";
  const what = issue?.code === "unrecognized_keys" ? `unknown key ${issue.keys.join(", ")}` : issue?.message;
  return `${name}${path === "" ? "" : `: ${path}`}: ${what ?? "the input is refused"}`;
}

type Defined<T> = { [K in keyof T]: Exclude<T[K], undefined> };

/** A key with undefined is a key that is absent: the service's options tell the two apart by type. */
function withoutUndefined<T extends object>(input: T): Defined<T> {
  const entries = Object.entries(input).filter(([, inner]) => inner !== undefined);
  return Object.fromEntries(entries) as Defined<T>; // the same keys, those with undefined left out
}
