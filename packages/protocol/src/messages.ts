/**
 * The one message table of the wire between a parent and its worker. `frame.ts` and worker-native/src/wire/frame.c check
 * every frame against it; worker-native/generated/protocol.h and the tables of docs/PROTOCOL.md are generated from it.
 *
 * A message's text is its header (one line of JSON, an object, read by `headers.ts`); if the message carries a value, a
 * line feed and the value's text follow (`value.ts`). Attachments are those of the value, with two exceptions: the first
 * two of Activate are the budget struct and the script (`activation.ts`), the last of Finished and Refused is the usage
 * struct.
 *
 * Sizes are declared as data, `fixed + Σ factor × limit`, so that TypeScript evaluates them under an activation's limits,
 * C under the ceilings, and the documentation prints them.
 */

import { type LimitName, limitCeilings } from "./limits.js";

export type Sender = "worker" | "parent";

/** The worker's state as the receiver of a message sees it. */
export type WorkerPhase = "starting" | "idle" | "running";

export type SizeLimits = Pick<
  Record<LimitName, number>,
  "outputBytes" | "resultBytes" | "inputBytes" | "valueBytes" | "bodyBytes" | "sourceBytes"
>;

export interface SizeExpression {
  readonly fixed: number;
  readonly plus?: { readonly [name in keyof SizeLimits]?: number };
}

export interface MessageRow {
  /** 1–15 from the worker, 16–31 from the parent. */
  readonly type: number;
  readonly sender: Sender;
  readonly phases: readonly WorkerPhase[];
  /** `once`: at most one per phase; `first`: only as the first message of the phase, and once. */
  readonly occurs: "often" | "once" | "first";
  /** `maybe`: the header says whether (Finished with a result, Deliver with `ok: true`). */
  readonly value: "never" | "maybe" | "always";
  readonly text: SizeExpression;
  readonly attachments: { readonly least: number; readonly most: number; readonly bytes: SizeExpression };
  readonly meaning: string;
}

const KiB = 1024;

/** Fixed structs that travel as attachments; `activation.ts` has their fields. */
export const activateBudgetBytes = 40;
export const usageReportBytes = 24;

/** Attachments that one value may have. Their table is kept per frame, so it needs a bound of its own. */
export const valueAttachmentsMost = 1024;

const noAttachments = { least: 0, most: 0, bytes: { fixed: 0 } } as const;
const valueAttachments = {
  least: 0,
  most: valueAttachmentsMost,
  bytes: { fixed: 0, plus: { bodyBytes: 1 } },
} as const;

export const messageTable = {
  Welcome: {
    type: 1,
    sender: "worker",
    phases: ["starting"],
    occurs: "once",
    value: "never",
    text: { fixed: 8 * KiB },
    attachments: noAttachments,
    meaning: "the facts of the worker's confinement, before it reads anything",
  },
  HostCall: {
    type: 2,
    sender: "worker",
    phases: ["running"],
    occurs: "often",
    value: "always",
    text: { fixed: KiB, plus: { valueBytes: 1 } },
    attachments: valueAttachments,
    meaning: "the script calls a host function; the value is the array of its arguments",
  },
  CancelCall: {
    type: 3,
    sender: "worker",
    phases: ["running"],
    occurs: "often",
    value: "never",
    text: { fixed: 64 },
    attachments: noAttachments,
    meaning: "the script gave up on a call",
  },
  Console: {
    type: 4,
    sender: "worker",
    phases: ["running"],
    occurs: "often",
    value: "never",
    // A control character of the text takes six in JSON.
    text: { fixed: KiB, plus: { outputBytes: 6 } },
    attachments: noAttachments,
    meaning: "one line that the script logged",
  },
  Blocked: {
    type: 5,
    sender: "worker",
    phases: ["running"],
    occurs: "often",
    value: "never",
    text: { fixed: 128 },
    attachments: noAttachments,
    meaning: "nothing can run until a call is answered or a timer is due",
  },
  Finished: {
    type: 6,
    sender: "worker",
    phases: ["running"],
    occurs: "once",
    value: "maybe",
    text: { fixed: 256 * KiB, plus: { resultBytes: 1 } },
    attachments: {
      least: 1,
      most: valueAttachmentsMost + 1,
      bytes: { fixed: usageReportBytes, plus: { bodyBytes: 1 } },
    },
    meaning: "the activation ended; the worker is pristine and idle again",
  },
  Refused: {
    type: 7,
    sender: "worker",
    phases: ["running"],
    occurs: "first",
    value: "never",
    text: { fixed: 256 * KiB },
    attachments: { least: 1, most: 1, bytes: { fixed: usageReportBytes } },
    meaning: "the script cannot be loaded; nothing of it ran",
  },
  Activate: {
    type: 16,
    sender: "parent",
    phases: ["idle"],
    occurs: "once",
    value: "always",
    text: { fixed: 256 * KiB, plus: { inputBytes: 1 } },
    attachments: {
      least: 2,
      most: valueAttachmentsMost + 2,
      bytes: { fixed: activateBudgetBytes, plus: { sourceBytes: 1, bodyBytes: 1 } },
    },
    meaning: "run this script on this input; the attachments begin with the budget struct and the script",
  },
  Deliver: {
    type: 17,
    sender: "parent",
    // An idle worker drops it: the outcome of a call that the finished script no longer waits for.
    phases: ["running", "idle"],
    occurs: "often",
    value: "maybe",
    text: { fixed: 64 * KiB, plus: { valueBytes: 1 } },
    attachments: valueAttachments,
    meaning: "the outcome of one call, or the time at which timers are due",
  },
} as const satisfies Record<string, MessageRow>;

export type MessageName = keyof typeof messageTable;
export type MessageType = (typeof messageTable)[MessageName]["type"];

/** Message numbers by name, for switches: `case messageType.HostCall`. */
export const messageType: { readonly [name in MessageName]: (typeof messageTable)[name]["type"] } = {
  Welcome: messageTable.Welcome.type,
  HostCall: messageTable.HostCall.type,
  CancelCall: messageTable.CancelCall.type,
  Console: messageTable.Console.type,
  Blocked: messageTable.Blocked.type,
  Finished: messageTable.Finished.type,
  Refused: messageTable.Refused.type,
  Activate: messageTable.Activate.type,
  Deliver: messageTable.Deliver.type,
};

export const messageNames: readonly MessageName[] = Object.freeze(
  Object.keys(messageTable) as MessageName[], // Object.keys of a literal table gives exactly its names
);

/** The largest type number plus one; decoders index arrays of this length. */
export const messageTypesEnd = 32;

export function messageRow(name: MessageName): MessageRow {
  return messageTable[name];
}

/** The name of a type that `FrameDecoder` let through. */
export function messageName(type: MessageType): MessageName {
  const name = messageNames.find((candidate) => messageTable[candidate].type === type);
  if (name === undefined) throw new Error(`message type ${String(type)} has no row`);
  return name;
}

export function sizeOf(expression: SizeExpression, limits: SizeLimits): number {
  let size = expression.fixed;
  for (const [name, factor] of Object.entries(expression.plus ?? {})) {
    size += factor * limits[name as keyof SizeLimits]; // keys of `plus` are limit names by type
  }
  return size;
}

/** Bytes of the fixed fields: length, type, flags, attachment count, text length. */
export const frameHeaderBytes = 12;
/** Bytes of the fixed fields that the length field counts. */
export const frameCountedHeaderBytes = 8;
/** Bytes of an attachment's length field. */
export const attachmentHeaderBytes = 4;

/** Bit 0: the value's text is devalue text, else JSON. No other bit is assigned. */
export const flagDevalue = 1;

/** The largest value of a frame's length field for this message. */
export function frameLengthMost(row: MessageRow, limits: SizeLimits): number {
  return (
    frameCountedHeaderBytes +
    sizeOf(row.text, limits) +
    row.attachments.most * attachmentHeaderBytes +
    sizeOf(row.attachments.bytes, limits)
  );
}

/** Sizes under the ceilings: what C allows, and what a decoder allows before an activation has said its limits. */
export const sizeCeilings: SizeLimits = limitCeilings;
