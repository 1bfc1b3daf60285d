/** The frame encoder and decoder: golden vectors, any chunking, phases, limits. The C twin is compared in test/fuzz/wire.test.ts. */

import { readFileSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { encodeFrame, FrameDecoder } from "./frame.js";
import {
  type MessageName,
  type MessageType,
  messageNames,
  messageRow,
  messageTable,
  messageType,
  type Sender,
  type SizeLimits,
  sizeCeilings,
  sizeOf,
  type WorkerPhase,
} from "./messages.js";
import { ProtocolError } from "./protocol-error.js";
import { judge, type StreamCase, whole } from "./testing/verdict.js";

interface FrameVector {
  readonly name: string;
  readonly sender: Sender;
  readonly phase: WorkerPhase;
  readonly limits: SizeLimits | null;
  readonly stream: string;
  readonly frames: readonly {
    readonly type: MessageName;
    readonly devalue: boolean;
    readonly text: string;
    readonly attachments: readonly string[];
  }[];
  readonly error: string | null;
}

const file = new URL("../../../test/vectors/frames.json", import.meta.url);
const { vectors } = JSON.parse(readFileSync(file, "utf8")) as { vectors: FrameVector[] }; // our own file

function caseOf(vector: FrameVector): StreamCase {
  const { sender, phase, limits, stream } = vector;
  return { sender, phase, limits: limits ?? sizeCeilings, stream: Buffer.from(stream, "hex") };
}

function thrownBy(act: () => unknown): unknown {
  try {
    act();
  } catch (error) {
    return error;
  }
  return undefined;
}

/** What `next` throws after one chunk. */
function errorOf(chunk: Uint8Array, phase: WorkerPhase = "running"): unknown {
  const decoder = new FrameDecoder({ sender: "worker", phase });
  decoder.push(chunk);
  return thrownBy(() => {
    while (decoder.next() !== undefined);
  });
}

const callHeader = '{"position":1,"name":"sleep"}';
const call = encodeFrame({
  type: messageType.HostCall,
  header: callHeader,
  value: { text: "[10]", devalue: false, attachments: [] },
});

describe("the golden vectors", () => {
  it.each(vectors.map((vector) => [vector.name, vector] as const))(
    "gives the stated verdict: %s",
    (_, vector) => {
      const { frames, lines } = judge(caseOf(vector), whole);
      expect(lines.at(-1)).toBe(vector.error ?? "ok");
      expect(
        frames.map((frame) => ({
          type: messageNames.find((name) => messageTable[name].type === frame.type),
          devalue: frame.devalue,
          text: frame.text,
          attachments: frame.attachments.length,
        })),
      ).toEqual(vector.frames.map((frame) => ({ ...frame, attachments: frame.attachments.length })));
    },
  );

  it("gives the same verdict for every vector cut anywhere", () => {
    for (const vector of vectors) {
      const input = caseOf(vector);
      const expected = judge(input, whole).lines;
      for (let size = 1; size <= 40; size++) expect(judge(input, () => size).lines).toEqual(expected);
    }
  });

  it("has a vector for every error that bytes alone can cause", () => {
    const caused = new Set(vectors.map(({ error }) => error));
    for (const name of [
      "short_length",
      "unknown_type",
      "wrong_sender",
      "unexpected_message",
      "repeated_message",
      "unknown_flags",
      "too_long",
      "too_many_attachments",
      "missing_attachments",
      "text_too_long",
      "attachments_too_long",
      "length_mismatch",
      "not_utf8",
      "truncated",
    ]) {
      expect(caused).toContain(name);
    }
  });
});

const part = fc.uint8Array({ maxLength: 200 });
const headerText = fc
  .string({ unit: "binary" })
  .map((text) => Buffer.from(text).toString().replaceAll("\n", " "));

const anyCall = fc.record({
  header: headerText,
  text: fc.string({ unit: "grapheme" }),
  devalue: fc.boolean(),
  parts: fc.array(part, { maxLength: 4 }),
});

describe("encodeFrame and FrameDecoder", () => {
  it("return what went in, however the stream is cut", () => {
    fc.assert(
      fc.property(
        fc.array(anyCall, { maxLength: 5 }),
        fc.array(fc.integer({ min: 1, max: 70 })),
        (calls, cuts) => {
          const stream = Buffer.concat(
            calls.map(({ header, text, devalue, parts }) =>
              encodeFrame({
                type: messageType.HostCall,
                header,
                value: { text, devalue, attachments: parts },
              }),
            ),
          );
          const decoder = new FrameDecoder({ sender: "worker", phase: "running" });
          const seen: unknown[] = [];
          for (let at = 0, turn = 0; at < stream.length; turn++) {
            const size = cuts.length === 0 ? stream.length : (cuts[turn % cuts.length] ?? 1);
            decoder.push(Buffer.from(stream.subarray(at, at + size)));
            at += size;
            for (let frame = decoder.next(); frame !== undefined; frame = decoder.next()) {
              const { text, devalue, attachments } = frame.value();
              seen.push({
                header: frame.header,
                text,
                devalue,
                parts: attachments.map((bytes) => Uint8Array.from(bytes)),
              });
            }
          }
          decoder.end();
          expect(seen).toEqual(calls);
        },
      ),
    );
  });

  it("put attachments before and behind those of the value in their places", () => {
    const frame = encodeFrame({
      type: messageType.Activate,
      header: "{}",
      attachments: [Buffer.from("budget"), Buffer.from("script")],
      value: { text: "1", devalue: false, attachments: [Buffer.from("v")] },
      trailer: Buffer.from("t"),
    });
    const decoder = new FrameDecoder({ sender: "parent", phase: "idle" });
    decoder.push(frame);
    const decoded = decoder.next();
    expect(decoded?.attachments.map(String)).toEqual(["budget", "script", "v", "t"]);
    expect(decoded?.value(2, -1).attachments.map(String)).toEqual(["v"]);
  });

  it("says that a value is missing where a message has none", () => {
    const decoder = new FrameDecoder({ sender: "worker", phase: "running" });
    decoder.push(encodeFrame({ type: messageType.HostCall, header: callHeader }));
    const frame = decoder.next();
    expect(frame?.hasValue).toBe(false);
    expect(thrownBy(() => frame?.value())).toMatchObject({ name: "missing_value" });
  });

  it("read a frame that lies whole in a chunk in place", () => {
    const stream = encodeFrame({
      type: messageType.HostCall,
      header: callHeader,
      value: { text: "[]", devalue: false, attachments: [Buffer.alloc(1000, 7)] },
    });
    const decoder = new FrameDecoder({ sender: "worker", phase: "running" });
    decoder.push(stream);
    expect(decoder.next()?.attachments[0]?.buffer).toBe(stream.buffer);
  });
});

describe("FrameDecoder", () => {
  it("fails for good after the first error", () => {
    const decoder = new FrameDecoder({ sender: "worker", phase: "running" });
    decoder.push(Buffer.concat([Buffer.from([1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0]), call]));
    const first = thrownBy(() => decoder.next());
    expect(first).toBeInstanceOf(ProtocolError);
    expect(thrownBy(() => decoder.next())).toBe(first);
    expect(thrownBy(() => decoder.push(call))).toBe(first);
    expect(thrownBy(() => decoder.end())).toBe(first);
  });

  it("judges a frame by the phase and the limits that hold when its turn comes", () => {
    const decoder = new FrameDecoder({ sender: "worker", phase: "starting" });
    const welcome = encodeFrame({ type: messageType.Welcome, header: "{}" });
    const result = encodeFrame({ type: messageType.Finished, header: "{}", trailer: Buffer.alloc(24) });
    decoder.push(Buffer.concat([welcome, call, result, result]));
    expect(decoder.next()?.type).toBe(messageType.Welcome);
    decoder.enter("running", sizeCeilings);
    expect(decoder.next()?.type).toBe(messageType.HostCall);
    expect(decoder.next()?.type).toBe(messageType.Finished);
    decoder.enter("idle");
    expect(decoder.pending).toBe(result.length);
    expect(thrownBy(() => decoder.next())).toMatchObject({ name: "unexpected_message" });
  });

  it("allows a message once per phase, and again in the next", () => {
    const result = encodeFrame({ type: messageType.Finished, header: "{}", trailer: Buffer.alloc(24) });
    const decoder = new FrameDecoder({ sender: "worker", phase: "running" });
    decoder.push(result);
    expect(decoder.next()?.type).toBe(messageType.Finished);
    decoder.enter("running");
    decoder.push(result);
    expect(decoder.next()?.type).toBe(messageType.Finished);
  });

  it("refuses a length beyond the row's before a byte of the frame has come", () => {
    for (const name of messageNames.filter((candidate) => messageTable[candidate].sender === "worker")) {
      const row = messageRow(name);
      const head = Buffer.alloc(12);
      head.writeUInt32LE(0xffff_fff0, 0);
      head[4] = row.type;
      expect(errorOf(head, row.phases[0])).toMatchObject({ name: "too_long" });
    }
  });

  it("allows exactly the bytes of text that the limits give, and not one more", () => {
    const limits = { ...sizeCeilings, valueBytes: 100 };
    const most = sizeOf(messageTable.HostCall.text, limits);
    for (const [size, error] of [
      [most, undefined],
      [most + 1, "text_too_long"],
    ] as const) {
      const decoder = new FrameDecoder({ sender: "worker", phase: "running", limits });
      decoder.push(encodeFrame({ type: messageType.HostCall, header: "x".repeat(size) }));
      expect(thrownBy(() => decoder.next())).toEqual(
        error === undefined ? undefined : expect.objectContaining({ name: error }),
      );
    }
  });

  it("keeps nothing of a chunk once it has asked for more", () => {
    const decoder = new FrameDecoder({ sender: "worker", phase: "running" });
    const chunk = Buffer.from(call.subarray(0, call.length - 3));
    decoder.push(chunk);
    expect(decoder.next()).toBeUndefined();
    chunk.fill(0);
    expect(decoder.pending).toBe(call.length - 3);
    decoder.push(call.subarray(call.length - 3));
    expect(decoder.next()?.header).toBe(callHeader);
    expect(decoder.pending).toBe(0);
  });

  it("refuses a chunk while frames of the one before are left, which is our own mistake", () => {
    const decoder = new FrameDecoder({ sender: "worker", phase: "running" });
    decoder.push(call);
    expect(thrownBy(() => decoder.push(call))).not.toBeInstanceOf(ProtocolError);
    expect(thrownBy(() => decoder.push(call))).toBeInstanceOf(Error);
  });

  it("takes chunks that are plain Uint8Arrays at an offset", () => {
    const padded = new Uint8Array(call.length + 5);
    padded.set(call, 5);
    const decoder = new FrameDecoder({ sender: "worker", phase: "running" });
    decoder.push(padded.subarray(5));
    expect(decoder.next()?.value().text).toBe("[10]");
  });

  it("knows every row of the table by its sender, and no other type", () => {
    for (let type = 0; type < 256; type++) {
      const name = messageNames.find((candidate) => messageTable[candidate].type === type);
      const frame = encodeFrame({ type: type as MessageType, header: "{}" }); // also types that no row has
      const expected =
        name === undefined
          ? "unknown_type"
          : messageTable[name].sender === "worker"
            ? undefined
            : "wrong_sender";
      const error = errorOf(frame, "starting");
      if (expected !== undefined) expect(error).toMatchObject({ name: expected });
      else if (name !== "Welcome") expect(error).toMatchObject({ name: "unexpected_message" });
      else expect(error).toBeUndefined();
    }
  });
});
