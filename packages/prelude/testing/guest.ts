/**
 * One guest for tests: runs scripts in the engine with the prelude, plays the parent (answers host calls, moves the clock)
 * and returns everything that was sent. What a worker's C and a pool do in between is done here in the plainest way.
 */

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { decodeValue, type EncodedValue, encodeValue } from "@flowcell/protocol";
import { buildPrelude } from "../../../scripts/native/prelude.mjs";
import { Engine, EngineError } from "./engine.js";

const root = fileURLToPath(new URL("../../../", import.meta.url));

export interface SentFrame {
  readonly name: string;
  readonly text: string;
  readonly attachments: Uint8Array | undefined;
}

export type HostFunction = (...args: never[]) => unknown;

export interface RunOptions {
  readonly host?: { readonly [name: string]: HostFunction };
  /** Granted names, those of `host` by default. */
  readonly names?: readonly string[];
  readonly limits?: Partial<typeof defaultLimits>;
  readonly input?: unknown;
  /** Instead of `input`: the text as it is. */
  readonly encodedInput?: EncodedValue;
  readonly clock?: number;
  readonly seed?: string;
  readonly codeGeneration?: boolean;
  /** Interrupt checks after which the script is stopped. */
  readonly interrupts?: number;
  readonly heapBytes?: number;
  /** What `lastFailure` says instead of what the harness saw. */
  readonly failure?: string;
  /** The script's text is what C would evaluate; by default it is the body of an entry. */
  readonly whole?: boolean;
  /** Called for every Blocked instead of answering; returns true when it has delivered something. */
  readonly blocked?: (guest: Guest, header: BlockedHeader) => boolean;
}

export interface BlockedHeader {
  readonly nextTimerAt: number | null;
  readonly openCalls: number;
  readonly delivered: number;
}

export const defaultLimits = {
  hostCalls: 10_000,
  inFlight: 32,
  outputBytes: 65_536,
  resultBytes: 1_048_576,
  valueBytes: 1_048_576,
  bodyBytes: 16_777_216,
};

export interface ErrorHeader {
  readonly name: string;
  readonly message: string;
  readonly stack: string;
  readonly code?: string;
  readonly cause?: ErrorHeader;
  readonly errors?: readonly ErrorHeader[];
}

export interface FinishedHeader {
  readonly status: string;
  readonly reason?: string;
  readonly limit?: number;
  readonly used?: number;
  readonly code?: string;
  readonly error?: ErrorHeader;
  readonly warnings?: readonly { readonly code: string; readonly message: string }[];
  readonly hostCalls?: number;
}

export interface ConsoleLine {
  readonly seq: number;
  readonly level: string;
  readonly timeMs: number;
  readonly text: string;
}

export interface RunResult extends FinishedHeader {
  /** The script was interrupted; nothing was finished. */
  readonly stopped?: boolean;
  readonly value?: unknown;
  readonly refused?: ErrorHeader;
  readonly console: readonly ConsoleLine[];
  readonly frames: readonly SentFrame[];
  readonly calls: readonly { readonly position: number; readonly name: string; readonly args: unknown }[];
}

/** Leaves the engine where it is, as C does: its memory is put back before it is used again. */
class Abandoned extends Error {}

/** The budget of interrupt checks is used up. */
class Stopped extends Error {}

/** The prelude, freshly bundled. */
export async function preludeScript(): Promise<string> {
  return readFileSync(await buildPrelude({ root }), "utf8");
}

const script = (body: string): string =>
  `(function(){return {default: async function(input, host){const t = host;\n${body}\n}}})`;

export class Guest {
  #engine: Engine | undefined;
  #frames: SentFrame[] = [];
  #taken = 0;
  #interrupts = 0;
  #finished = false;
  #failure = "";
  #options: RunOptions = {};
  #activation = 0;
  #clock = 0;

  static async create(): Promise<Guest> {
    const guest = new Guest();
    guest.#engine = await Engine.create(await preludeScript(), {
      send: (name, text, attachments) => guest.#sent({ name, text, attachments }),
      interrupt: () => guest.#interrupt(),
      lastFailure: () => guest.#options.failure ?? guest.#failure,
      memoryRefused: () => {
        guest.#failure = "memory";
      },
    });
    return guest;
  }

  get #running(): Engine {
    if (this.#engine === undefined) throw new Error("the guest has no engine");
    return this.#engine;
  }

  /** As in C, what ends the activation does not return to the script. */
  #sent(frame: SentFrame): void {
    if (this.#finished) throw new Error(`${frame.name} was sent after the end`);
    this.#frames.push(frame);
    if (!frame.name.startsWith("finished") && frame.name !== "refused") return;
    this.#finished = true;
    throw new Abandoned();
  }

  #interrupt(): number {
    if (++this.#interrupts > (this.#options.interrupts ?? 100_000)) throw new Stopped();
    return 0;
  }

  /** Starts a script and returns at its first Blocked or at its end. */
  start(body: string, options: RunOptions = {}): void {
    const engine = this.#running;
    engine.reset();
    engine.heapBytes = options.heapBytes ?? 2 ** 31;
    this.#options = options;
    this.#frames = [];
    this.#taken = 0;
    this.#interrupts = 0;
    this.#finished = false;
    this.#failure = "";
    this.#activation += 1;
    this.#clock = options.clock ?? Date.UTC(2025, 0, 2, 3, 4, 5, 678);
    const input = options.encodedInput ?? encodeValue(options.input, { textBytes: 2 ** 26 });
    const header = JSON.stringify({
      activation: this.#activation,
      clock: this.#clock,
      seed: options.seed ?? "00".repeat(32),
      names: options.names ?? Object.keys(options.host ?? {}),
      limits: { ...defaultLimits, ...options.limits },
      codeGeneration: options.codeGeneration ?? true,
    });
    this.#guarded(() => {
      engine.invoke("activate", [`${header}\n${input.text}`, joined(input), engine.boolean(input.devalue)]);
      this.#load(options.whole === true ? body : script(body));
      this.#settle();
    });
  }

  #load(source: string): void {
    const engine = this.#running;
    let entry: number;
    try {
      entry = engine.evaluate(source, "script.js");
    } catch (error) {
      if (!(error instanceof EngineError)) throw error;
      engine.invoke("refuse", [error.value]);
      return;
    }
    engine.invoke("start", [entry]);
  }

  #settle(): void {
    this.#running.drain();
    this.#running.invoke("idle", [this.#running.boolean(this.#failure === "memory")]);
  }

  #guarded(run: () => void): void {
    try {
      run();
    } catch (error) {
      if (!(error instanceof Abandoned)) throw error;
    }
  }

  deliverOutcome(position: number, outcome: { value: unknown } | { error: Record<string, unknown> }): void {
    const header = {
      activation: this.#activation,
      kind: "call",
      position,
      ok: "value" in outcome,
      clock: this.#clock,
    };
    if ("value" in outcome)
      this.#deliver(header, encodeValue(outcome.value, { textBytes: 2 ** 26, attachmentBytes: 2 ** 26 }));
    else this.#deliver({ ...header, error: outcome.error }, undefined);
  }

  deliverTimer(clock: number): void {
    this.#clock = clock;
    this.#deliver({ activation: this.#activation, kind: "timer", clock }, undefined);
  }

  /** An outcome that belongs to another activation. */
  deliverStale(position: number): void {
    this.#deliver(
      { activation: this.#activation - 1, kind: "call", position, ok: true, clock: this.#clock },
      encodeValue(1),
    );
  }

  #deliver(header: object, value: EncodedValue | undefined): void {
    const engine = this.#running;
    const text = JSON.stringify(header) + (value === undefined ? "" : `\n${value.text}`);
    this.#guarded(() => {
      engine.invoke("deliver", [
        text,
        value === undefined ? undefined : joined(value),
        engine.boolean(value?.devalue ?? false),
      ]);
      this.#settle();
    });
  }

  get finished(): boolean {
    return this.#finished;
  }

  get frames(): readonly SentFrame[] {
    return this.#frames;
  }

  /** Frames since the last time this was asked. */
  take(): readonly SentFrame[] {
    const taken = this.#frames.slice(this.#taken);
    this.#taken = this.#frames.length;
    return taken;
  }

  /** Runs a script to its end, answering its host calls in the order in which they were made. */
  async run(body: string, options: RunOptions = {}): Promise<RunResult> {
    try {
      this.start(body, options);
      while (!this.#finished) await this.#answer();
    } catch (error) {
      if (!(error instanceof Stopped)) throw error;
      return { ...this.#result(), stopped: true };
    }
    return this.#result();
  }

  async #answer(): Promise<void> {
    const frames = this.take();
    const last = frames.at(-1);
    if (last?.name !== "blocked") throw new Error(`the guest stopped with ${last?.name ?? "nothing"} sent`);
    const header = JSON.parse(last.text) as BlockedHeader; // the prelude's own
    if (this.#options.blocked?.(this, header) === true) return;
    const calls = frames.filter(({ name }) => name.startsWith("hostCall")).map(callOf);
    for (const call of calls) {
      if (this.#finished) return;
      this.deliverOutcome(call.position, await this.#outcome(call));
    }
    if (calls.length > 0) return;
    if (header.nextTimerAt === null) throw new Error("the guest waits for calls that nobody answers");
    this.deliverTimer(Math.max(this.#clock, header.nextTimerAt));
  }

  async #outcome(call: {
    name: string;
    args: unknown;
  }): Promise<{ value: unknown } | { error: Record<string, unknown> }> {
    const host = this.#options.host?.[call.name];
    if (host === undefined)
      return { error: { code: "internal", message: "no such function", retryable: false } };
    try {
      const value: unknown = await host(...(call.args as never[])); // the test knows its own functions
      encodeValue(value, { textBytes: 2 ** 26, attachmentBytes: 2 ** 26 });
      return { value };
    } catch (error) {
      const { name, message, code } = error as { name: string; message: string; code?: string }; // tests throw errors
      return {
        error: {
          code: "upstream",
          message,
          retryable: false,
          name,
          ...(code === undefined ? {} : { detail: { code } }),
        },
      };
    }
  }

  #result(): RunResult {
    const frames = this.#frames;
    const ending = frames.find(({ name }) => name.startsWith("finished") || name === "refused");
    const common = {
      frames,
      console: frames
        .filter(({ name }) => name === "console")
        .map(({ text }) => JSON.parse(text) as ConsoleLine), // the prelude's own
      calls: frames.filter(({ name }) => name.startsWith("hostCall")).map(callOf),
    };
    if (ending === undefined) return { status: "none", ...common };
    const end = ending.text.indexOf("\n");
    const header = JSON.parse(end < 0 ? ending.text : ending.text.slice(0, end)) as FinishedHeader & {
      error?: ErrorHeader;
    }; // the prelude's own
    if (ending.name === "refused")
      return {
        status: "refused",
        ...common,
        ...(header.error === undefined ? {} : { refused: header.error }),
      };
    if (end < 0) return { ...header, ...common };
    return { ...header, ...common, value: sentValue(ending) };
  }
}

export function sentValue(frame: SentFrame): unknown {
  const text = frame.text.slice(frame.text.indexOf("\n") + 1);
  const value = { text, devalue: frame.name.endsWith("1"), attachments: split(frame.attachments) };
  return decodeValue(value, { textBytes: 2 ** 26, attachmentBytes: 2 ** 26 });
}

function callOf(frame: SentFrame): { position: number; name: string; args: unknown } {
  const header = JSON.parse(frame.text.slice(0, frame.text.indexOf("\n"))) as {
    position: number;
    name: string;
  }; // the prelude's own
  return { ...header, args: sentValue(frame) };
}

/** As C hands attachments over: u32 LE length and bytes, one after another. */
export function joined({ attachments }: EncodedValue): Uint8Array | undefined {
  if (attachments.length === 0) return undefined;
  return Buffer.concat(
    attachments.flatMap((bytes) => {
      const size = Buffer.alloc(4);
      size.writeUInt32LE(bytes.byteLength);
      return [size, bytes];
    }),
  );
}

function split(attachments: Uint8Array | undefined): Uint8Array[] {
  const list: Uint8Array[] = [];
  if (attachments === undefined) return list;
  const view = new DataView(attachments.buffer, attachments.byteOffset, attachments.byteLength);
  for (let at = 0; at < attachments.length; ) {
    const size = view.getUint32(at, true);
    list.push(attachments.subarray(at + 4, at + 4 + size));
    at += 4 + size;
  }
  return list;
}
