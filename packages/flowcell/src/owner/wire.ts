/**
 * What is in the frames of the owner's socket.
 *
 *   request   {"version": 1, "id": 7, "operation": "start", "input": VALUE}
 *   abort     {"version": 1, "id": 7, "abort": true}        ends a wait early; the answer still comes
 *   answer    {"id": 7, "ok": true, "value": VALUE}
 *   failure   {"id": 7, "ok": false, "error": {"kind": "operation" | "store" | "internal", "code", "message", "problems"}}
 *   busy      {"busy": 1024}           the only answer to a connection that is one too many
 *   farewell  {"leaving": true}        the owner's last: what it has not answered it has not begun, but for waits
 *
 * A VALUE is {"text", "devalue", "bytes": [base64 …]}: protocol's codec for values, so that results come out as they were.
 *
 * TRUST: both sides check the form of everything they read; what an operation takes is checked by its row in operations.ts.
 */

import { OperationError } from "@flowcell/flows";
import { StoreFailure } from "@flowcell/journal";
import { decodeValue, type EncodedValue, encodeValue, ValueError } from "@flowcell/protocol";
import * as z from "zod/mini";
import { OwnerLost, tell } from "./failures.js";

const MiB = 1024 * 1024;

/** An input of 16 MiB text and 16 MiB bytes fits, as JSON and base64. */
export const requestBytesMax = 64 * MiB;
/** The history of a long run. Node's longest string is twice as long. */
export const answerBytesMax = 256 * MiB;

const bounds = { textBytes: answerBytesMax, attachmentBytes: answerBytesMax, nodes: 16 * MiB };

const value = z.strictObject({ text: z.string(), devalue: z.boolean(), bytes: z.array(z.string()) });
type WireValue = z.infer<typeof value>;

const id = z.int().check(z.nonnegative());

const request = z.union([
  z.strictObject({ version: z.literal(1), id, operation: z.string().check(z.maxLength(64)), input: value }),
  z.strictObject({ version: z.literal(1), id, abort: z.literal(true) }),
]);
export type Request = z.infer<typeof request>;

const answer = z.union([
  z.strictObject({ id, ok: z.literal(true), value }),
  z.strictObject({
    id,
    ok: z.literal(false),
    error: z.strictObject({
      kind: z.enum(["operation", "store", "internal"]),
      code: z.string(),
      message: z.string(),
      problems: z.array(z.string()),
    }),
  }),
]);
export type Answer = z.infer<typeof answer>;

export const farewell = Object.freeze({ leaving: true });
const farewellShape = z.strictObject({ leaving: z.literal(true) });

export function isFarewell(message: unknown): boolean {
  return farewellShape.safeParse(message).success;
}

/** `connections` are there already. */
export function busyMessage(connections: number): unknown {
  return { busy: connections };
}
const busyShape = z.strictObject({ busy: z.int().check(z.nonnegative()) });

/** How many connections the owner has that takes no more; undefined for another message. */
export function readBusy(message: unknown): number | undefined {
  const parsed = busyShape.safeParse(message);
  return parsed.success ? parsed.data.busy : undefined;
}

type Failure = Extract<Answer, { ok: false }>["error"];

/** Undefined for what is no request. */
export function readRequest(message: unknown): Request | undefined {
  const parsed = request.safeParse(message);
  return parsed.success ? parsed.data : undefined;
}

/** Undefined for what is no answer. */
export function readAnswer(message: unknown): Answer | undefined {
  const parsed = answer.safeParse(message);
  return parsed.success ? parsed.data : undefined;
}

/** Throws ValueError for what does not travel. */
export function toWire(thing: unknown): WireValue {
  const { text, devalue, attachments } = encodeValue(thing, bounds);
  return { text, devalue, bytes: attachments.map((bytes) => Buffer.from(bytes).toString("base64")) };
}

/** Throws ValueError for what no encoder writes. */
export function fromWire({ text, devalue, bytes }: WireValue): unknown {
  const attachments = bytes.map((base64) => new Uint8Array(Buffer.from(base64, "base64")));
  const encoded: EncodedValue = { text, devalue, attachments };
  return decodeValue(encoded, bounds);
}

/** A failure as the other side gets it. What nobody expects keeps its text here. */
export function failureOf(error: unknown): Failure {
  if (error instanceof ValueError) {
    const message = `the answer cannot be sent over the socket (${error.message}); stop the service and ask again`;
    return { kind: "operation", code: "unavailable", message, problems: [] };
  }
  const told = tell(error);
  if (told === undefined) {
    return {
      kind: "internal",
      code: "bug",
      message: "a bug in flowcell; the service's log has it",
      problems: [],
    };
  }
  const { code, message, problems } = told;
  return {
    kind: error instanceof OperationError ? "operation" : "store",
    code,
    message,
    problems: [...problems],
  };
}

const operationCodes: readonly OperationError["code"][] = [
  "not_found",
  "conflict",
  "invalid",
  "denied",
  "unavailable",
];

/** The error that a failure stands for. */
export function errorOf({ kind, code, message, problems }: Failure): Error {
  const known = operationCodes.find((candidate) => candidate === code);
  if (kind === "operation" && known !== undefined) return new OperationError(known, message, problems);
  if (kind === "store") return new StoreFailure(message);
  return new OwnerLost(message);
}
