/** `flowcell journal RUN`: what is recorded of a run, in order; and its recording as a file. */

import { writeFileSync } from "node:fs";
import { inspect } from "node:util";
import { printable } from "@flowcell/bundle";
import { type CallRow, type Delivery, exportRun, type RunHistory } from "@flowcell/journal";
import { decodeValue, type EncodedValue } from "@flowcell/protocol";
import { bytesText } from "../cli/human.js";
import { UsageError } from "../cli/usage.js";
import { errorCode } from "../owner/data-folder.js";
import { taggedJson } from "../tagged-json.js";
import type { Context } from "./context.js";
import { block, table } from "./tables.js";

export async function journal(context: Context): Promise<number> {
  const runId = context.typed.argument(0);
  const file = context.typed.text("export");
  return await context.ask(async (service) => {
    const history = await service.history(runId);
    if (file !== undefined) {
      write(file, exportRun(history));
      if (context.json) context.object({ ok: true, runId, file });
      else
        context.say(`wrote ${file}: it holds everything that the run was given, so keep it as you keep that`);
      return 0;
    }
    if (context.json) context.object(journalJson(history));
    else context.streams.out(journalText(history));
    return 0;
  });
}

function write(file: string, text: string): void {
  try {
    writeFileSync(file, text, { mode: 0o600 });
  } catch (error) {
    throw new UsageError("request", `--export ${file}: cannot be written (${errorCode(error)})`);
  }
}

/** Values decoded, so that a reader need not know the codec. */
function journalJson({ run, calls, deliveries }: RunHistory): unknown {
  const { input, result, ...facts } = run;
  return {
    ok: true,
    run: { ...facts, input: jsonValue(input), result: result === null ? null : jsonValue(result) },
    calls: calls.map((call) => ({ ...call, args: jsonValue(call.args), wait: jsonWait(call) })),
    deliveries: deliveries.map((delivery) =>
      delivery.kind === "timer" || !delivery.outcome.ok
        ? delivery
        : { ...delivery, outcome: { ok: true, value: jsonValue(delivery.outcome.value) } },
    ),
  };
}

function jsonWait({ wait }: CallRow): unknown {
  if (wait?.kind !== "approval" || wait.detail === null) return wait;
  return { ...wait, detail: jsonValue(wait.detail) };
}

function jsonValue(value: EncodedValue): unknown {
  return taggedJson(decoded(value));
}

function decoded(value: EncodedValue): unknown {
  return decodeValue(value, {
    textBytes: value.text.length * 4 + 16,
    attachmentBytes: bytesMax,
    nodes: bytesMax,
  });
}

const bytesMax = 128 * 1024 * 1024;
const cellMax = 60;

function journalText({ run, calls, deliveries }: RunHistory): string {
  const byPosition = new Map(calls.map((call) => [call.position, call]));
  const state = run.status ?? run.state;
  const rows = deliveries.map((delivery) => deliveryCells(delivery, byPosition));
  const open = calls.filter(
    ({ position }) => !deliveries.some((one) => one.kind === "call" && one.position === position),
  );
  const lines = [
    `${run.runId} of ${run.flow} ${run.versionHash.slice(0, 12)}: ${state}`,
    `input ${cell(run.input)}`,
    ...block(
      "delivered, in order:",
      rows.length === 0
        ? ["nothing"]
        : table(["order", "script's clock", "call", "name", "arguments", "outcome"], rows).split("\n"),
    ),
    ...block("open:", open.map(openLine)),
    ...(run.result === null ? [] : [`result ${cell(run.result)}`]),
  ];
  return `${lines.join("\n")}\n`;
}

function deliveryCells(delivery: Delivery, calls: ReadonlyMap<number, CallRow>): readonly string[] {
  const at = new Date(delivery.guestClockMs).toISOString();
  if (delivery.kind === "timer") return [String(delivery.order), at, "-", "timer", "", ""];
  const { order, position, outcome } = delivery;
  const call = calls.get(position);
  const ended = outcome.ok
    ? cell(outcome.value)
    : `${outcome.error.code}: ${outcome.error.message}`.slice(0, cellMax);
  return [
    String(order),
    at,
    String(position),
    call?.name ?? "?",
    call === undefined ? "" : cell(call.args),
    ended,
  ];
}

function openLine({ position, name, args, unknownReason, attempts }: CallRow): string {
  const state = unknownReason === null ? (attempts === 0 ? "waiting" : "begun") : "outcome unknown";
  return `call ${position} ${printable(name)} ${cell(args)}: ${state}`;
}

/** A value on one short line. */
function cell(value: EncodedValue): string {
  const size = Buffer.byteLength(value.text);
  if (size > 4096) return bytesText(size);
  const text = printable(
    inspect(decoded(value), { depth: 6, breakLength: Number.POSITIVE_INFINITY, customInspect: false }),
  );
  return text.length <= cellMax ? text : `${text.slice(0, cellMax - 1)}…`;
}
