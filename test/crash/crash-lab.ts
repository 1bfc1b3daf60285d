// The world of a run that crashes: what it can change outside, counted; the flows; and processes that drive the run and are
// killed, one after the other, until one ends.
import { type ChildProcess, spawn } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { childrenOf } from "../parent/processes.js";

const root = fileURLToPath(new URL("../../", import.meta.url));
const packages = readdirSync(join(root, "packages"));

/** Where a process ends: at the so many-th unit that changes a run. */
export interface Cut {
  readonly step: number;
  readonly when: "before" | "during" | "after";
}

export interface ChildOptions {
  readonly store: string;
  readonly threadPath: string;
  /** To be installed; then nothing is run. */
  readonly folders: readonly string[];
  readonly mount: string;
  /** The world's address. */
  readonly base: string;
  readonly cut: Cut | null;
}

/** Builds the program; inside the clone, so that packages and native products are found from it. */
export async function buildProgram(): Promise<string> {
  const outfile = join(root, `worker-native/build/test/crash-${process.pid}.mjs`);
  await build({
    entryPoints: [join(root, "test/crash/service.child.ts")],
    outfile,
    bundle: true,
    platform: "node",
    format: "esm",
    target: "node20",
    packages: "external",
    alias: Object.fromEntries(
      packages.map((name) => [`@flowcell/${name}`, join(root, "packages", name, "src/index.ts")]),
    ),
  });
  return outfile;
}

const manifests = {
  crash: {
    input: { type: "object", properties: { base: { type: "string" } }, required: ["base"] },
    grants: {
      kv: { maxBytes: 10_000 },
      net: [{ host: "127.0.0.1", methods: ["GET", "POST"] }],
      fs: [{ mount: "data", access: "write" }],
      flows: ["child"],
      events: ["crash.happened"],
    },
  },
  child: { input: { type: "number" }, concurrency: { limit: 4 } },
  listener: { trigger: { kind: "event", name: "crash.happened" }, grants: { kv: { maxBytes: 1000 } } },
};

const scripts: Readonly<Record<keyof typeof manifests, string>> = {
  // Every effect class, alone and beside others, and every way to wait.
  crash: `export default async function ({ base }, host) {
    const random = [Math.random(), crypto.randomUUID()];
    await host.kv.set("state", "begun");
    const [read, text] = await Promise.all([
      fetch(base + "/read").then((response) => response.json()),
      host.fs.read("/data/in.txt"),
    ]);
    const first = await Promise.race([
      host.sleep(30).then(() => "sleep"),
      new Promise((resolve) => setTimeout(() => resolve("timer"), 3)),
    ]);
    const keyed = await fetch(base + "/keyed", { method: "POST", body: "order", idempotencyKey: "order-1" });
    console.log("ordered", await keyed.text());
    await host.fs.write("/data/out.txt", text + read.toString().length);
    await host.fs.append("/data/log.txt", "line\\n");
    const count = ((await host.kv.get("count")) ?? 0) + 1;
    const [set, once] = await Promise.all([
      host.kv.compareAndSet("count", undefined, count),
      fetch(base + "/once", { method: "POST", body: "effect" }).then((response) => response.text()),
    ]);
    const { runId } = await host.flow.start("child", 20);
    await host.event.emit("crash.happened", { n: 1 });
    const { approved } = await host.approval.request("go on?");
    const signal = await host.signal.wait("go");
    const child = await host.flow.wait(runId);
    await host.fs.delete("/data/gone.txt");
    await host.kv.set("state", "ended");
    return { first, text, count, set, once, approved, signal, child: child.value, random: random.length };
  }`,
  child: "export default async (n, host) => { await host.sleep(1); return n * 2; }",
  listener: `export default async (payload, host) => {
    const seen = ((await host.kv.get("seen")) ?? 0) + payload.n;
    await host.kv.set("seen", seen);
    return seen;
  }`,
};

/** What every uncut run returns but for `first`, which is whichever was earlier; and every cut one must. */
export const expectedValue = {
  text: "input",
  count: 1,
  set: true,
  once: "42",
  approved: true,
  signal: "went",
  child: 40,
  random: 2,
};

export interface Ended {
  readonly report: {
    readonly status: string;
    readonly value?: unknown;
    readonly error?: unknown;
    readonly calls: readonly { readonly name: string; readonly state: string }[];
    readonly logs: readonly { readonly text: string }[];
  };
  /** `flow status` of every run in the store. */
  readonly others: readonly string[];
  readonly replay: { readonly matched: boolean; readonly divergence: unknown };
  readonly steps: number;
}

interface Line {
  readonly runId?: string;
  readonly reconciled?: number;
}

/** What a process came to: its end, or none because it was killed. */
export interface Lived {
  readonly ended: Ended | null;
  readonly signal: NodeJS.Signals | null;
  readonly code: number | null;
  readonly lines: readonly Line[];
  readonly err: string;
}

/** One run, its world and its store, over any number of processes. */
export class CrashLab {
  readonly folder = mkdtempSync(join(tmpdir(), "crash-"));
  readonly mount = join(this.folder, "data");
  /** Requests that took effect, by path; those with a key once for each key. */
  once = 0;
  readonly keys = new Map<string, number>();
  reads = 0;
  readonly #server: Server;
  readonly #program: string;
  readonly #installed: string | null;
  #base = "";

  /** `installed`: a lab's folder in which the flows were installed; its store is where this one begins. */
  constructor(program: string, installed: string | null) {
    this.#program = program;
    this.#installed = installed;
    this.#server = createServer((request, response) => this.#answer(request, response));
  }

  async open(): Promise<void> {
    mkdirSync(this.mount);
    const store = join(this.folder, "store");
    mkdirSync(store, { mode: 0o700 });
    if (this.#installed !== null) cpSync(join(this.#installed, "store"), store, { recursive: true });
    writeFileSync(join(this.mount, "in.txt"), "input");
    writeFileSync(join(this.mount, "gone.txt"), "soon");
    for (const [id, manifest] of Object.entries(manifests)) {
      const file = join(this.folder, id, "flow.json");
      mkdirSync(dirname(file));
      writeFileSync(file, JSON.stringify({ format: 1, id, ...manifest }));
      writeFileSync(join(dirname(file), "flow.js"), scripts[id as keyof typeof manifests]); // keys of the same table
    }
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    const address = this.#server.address();
    if (address === null || typeof address === "string") throw new Error("the world has no port");
    this.#base = `http://127.0.0.1:${address.port}`;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
    rmSync(this.folder, { recursive: true, force: true });
  }

  read(name: string): string {
    return readFileSync(join(this.mount, name), "utf8");
  }

  has(name: string): boolean {
    return readdirSync(this.mount).includes(name);
  }

  /** Installs the flows, in a process of its own. */
  async install(): Promise<void> {
    const folders = Object.keys(manifests).map((id) => join(this.folder, id));
    const { code, err } = await this.#process({ folders, cut: null }, () => undefined);
    if (code !== 0) throw new Error(`the flows could not be installed: ${err}`);
  }

  /** Drives the run in a process of its own until that ends. `meddle` may kill it, or its workers. */
  live(cut: Cut | null, meddle: (child: ChildProcess) => void = () => undefined): Promise<Lived> {
    return this.#process({ folders: [], cut }, meddle);
  }

  #process(
    asked: Pick<ChildOptions, "folders" | "cut">,
    meddle: (child: ChildProcess) => void,
  ): Promise<Lived> {
    const options: ChildOptions = {
      store: join(this.folder, "store", "store.sqlite"),
      threadPath: join(root, "packages/journal/dist/store-thread.cjs"),
      mount: this.mount,
      base: this.#base,
      ...asked,
    };
    const child = spawn(process.execPath, [this.#program, JSON.stringify(options)], {
      stdio: ["ignore", "pipe", "pipe"],
    });
    let out = "";
    let err = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      out += text;
    });
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      err += text;
    });
    meddle(child);
    return new Promise((resolve) => {
      child.on("close", (code, signal) => {
        // The last line of a killed process may be cut.
        const lines = out
          .split("\n")
          .slice(0, -1)
          .map((line) => JSON.parse(line) as Line & Partial<Ended>); // its own child wrote them
        const last = lines.at(-1);
        const ended = last?.report === undefined ? null : (last as Ended); // a report comes with the rest
        resolve({ ended, signal, code, lines, err });
      });
    });
  }

  /** Kills one of the process's workers, if it has any. */
  static killWorker(child: ChildProcess): boolean {
    const worker = childrenOf(child.pid ?? 0).find(({ name }) => name.startsWith("worker"));
    if (worker === undefined) return false;
    try {
      return process.kill(worker.pid, "SIGKILL");
    } catch {
      return false; // gone since it was found
    }
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    request.resume();
    request.on("end", () => {
      const send = (text: string): void => void response.end(text);
      switch (request.url) {
        case "/read":
          this.reads += 1;
          send(String(this.reads));
          return;
        case "/keyed": {
          const key = String(request.headers["idempotency-key"]);
          this.keys.set(key, (this.keys.get(key) ?? 0) + 1);
          send("ordered");
          return;
        }
        case "/once":
          this.once += 1;
          send("42");
          return;
        case "/seen":
          send(String(this.once));
          return;
        default:
          response.writeHead(404);
          send("");
      }
    });
  }
}
