// A folder to play in and the `fs.*` rows over parts of it, called as a run calls them: arguments through the row's
// schema, errors as a script would see them.

import { mkdirSync, mkdtempSync, readdirSync, readlinkSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import {
  type CallContext,
  createFsFunctions,
  type FsFunctionsOptions,
  type HostErrorCode,
  type HostFunction,
} from "@flowcell/host";
import { type CallNote, hostErrorData } from "@flowcell/protocol";

export type Rules = FsFunctionsOptions["rules"];

/** What a script gets of a call. */
export type Answer =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly code: HostErrorCode; readonly message: string; readonly detail: unknown };

let keys = 0;

function context(name: string, overrides: Partial<CallContext> = {}): CallContext {
  keys += 1;
  return {
    name,
    position: keys,
    signal: new AbortController().signal,
    idempotencyKey: `key-${keys}`,
    clock: "real",
    ...overrides,
  };
}

export class Scripted {
  readonly #functions: ReadonlyMap<string, HostFunction>;
  readonly #close: () => void;

  constructor(options: FsFunctionsOptions) {
    const { functions, close } = createFsFunctions(options);
    this.#functions = new Map(functions.map((row) => [row.name, row]));
    this.#close = close;
  }

  close(): void {
    this.#close();
  }

  row(name: string): HostFunction {
    const row = this.#functions.get(`fs.${name}`);
    if (row === undefined) throw new Error(`no row fs.${name}`);
    return row;
  }

  call(name: string, ...args: unknown[]): Promise<Answer> {
    return this.callWith({}, name, ...args);
  }

  async callWith(overrides: Partial<CallContext>, name: string, ...args: unknown[]): Promise<Answer> {
    const row = this.row(name);
    return await answer(async () => row.call?.(await checked(row, args), context(row.name, overrides)));
  }

  async prepare(overrides: Partial<CallContext>, name: string, ...args: unknown[]): Promise<CallNote | null> {
    const row = this.row(name);
    return (await row.prepare?.(await checked(row, args), context(row.name, overrides))) ?? null;
  }

  async recover(note: CallNote | null, name: string, ...args: unknown[]): Promise<unknown> {
    const row = this.row(name);
    return await row.recover?.(await checked(row, args), note, context(row.name));
  }
}

async function checked(row: HostFunction, args: readonly unknown[]): Promise<readonly unknown[]> {
  const result = await row.input["~standard"].validate(args);
  if (result.issues !== undefined) throw new Error(`arguments: ${result.issues[0]?.message}`);
  return result.value;
}

async function answer(act: () => Promise<unknown>): Promise<Answer> {
  try {
    return { ok: true, value: await act() };
  } catch (error) {
    const { code, message, detail } = hostErrorData(error, true);
    return { ok: false, code, message, detail };
  }
}

/** A temporary folder with two mounts, `data` and `more`, and a folder `outside` beside them. */
export class Ground {
  readonly root = realpathSync(mkdtempSync(join(tmpdir(), "flowcell-fs-")));
  readonly data = join(this.root, "data");
  readonly more = join(this.root, "more");
  readonly outside = join(this.root, "outside");
  readonly own = join(this.root, "own");
  readonly #open: Scripted[] = [];

  constructor() {
    for (const folder of [this.data, this.more, this.outside, this.own]) mkdirSync(folder);
  }

  script(rules: Rules, options: Partial<FsFunctionsOptions> = {}): Scripted {
    const scripted = new Scripted({
      mounts: new Map([
        ["data", this.data],
        ["more", this.more],
      ]),
      rules,
      alwaysDenied: [this.own],
      bodyBytes: 16 << 20,
      ...options,
    });
    this.#open.push(scripted);
    return scripted;
  }

  remove(): void {
    for (const scripted of this.#open) scripted.close();
    rmSync(this.root, { recursive: true, force: true });
  }
}

/** What this process has open below a folder or, deleted, once had there; and how many descriptors in all. */
export function openDescriptors(): readonly string[] {
  return readdirSync("/proc/self/fd").flatMap((fd) => {
    try {
      return [readlinkSync(join("/proc/self/fd", fd))];
    } catch {
      // The descriptor by which the list was read.
      return [];
    }
  });
}

export function below(folder: string): readonly string[] {
  return openDescriptors().filter((path) => path.startsWith(dirname(join(folder, "x"))));
}
