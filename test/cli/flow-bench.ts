// A data folder, flows written on the spot, and the real command line over them. Used by the tests of this folder.
import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { bin, flowcell, type Ran, type RunOptions, root } from "./run-cli.js";

/** One JSON object; tests look at it by matchers. */
export type Json = Readonly<Record<string, unknown>>;

export interface Service {
  readonly child: ChildProcess;
  /** What it wrote so far. */
  readonly err: () => string;
  /** Sends the signal and waits for the end. */
  stop(
    signal: NodeJS.Signals,
  ): Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null }>;
}

export class FlowBench {
  readonly folder: string;
  readonly data: string;
  /** What its commands put into the system's place for scratch folders: nobody else writes there. */
  readonly temporary: string;
  readonly #services: Service[] = [];
  readonly #options: RunOptions;

  constructor(options: RunOptions = {}) {
    this.folder = mkdtempSync(join(tmpdir(), "flow-bench-"));
    this.data = join(this.folder, "data");
    this.temporary = join(this.folder, "temporary");
    mkdirSync(this.temporary);
    const own = { FLOWCELL_DATA: this.data, TMPDIR: this.temporary };
    this.#options = { ...options, env: { ...process.env, ...options.env, ...own } };
  }

  /** Writes a flow's folder; `files` beside flow.json and flow.js. */
  flow(id: string, manifest: object, script: string, files: Readonly<Record<string, string>> = {}): string {
    const folder = join(this.folder, "flows", id);
    this.write(join("flows", id, "flow.json"), JSON.stringify({ format: 1, id, ...manifest }));
    this.write(join("flows", id, "flow.js"), script);
    for (const [name, text] of Object.entries(files)) this.write(join("flows", id, name), text);
    return folder;
  }

  write(name: string, text: string): string {
    const path = join(this.folder, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
    return path;
  }

  run(...args: readonly string[]): Promise<Ran> {
    return flowcell(args, this.#options);
  }

  async json(...args: readonly string[]): Promise<Ran & { readonly json: Json }> {
    const ran = await this.run(...args, "--json");
    const json: unknown = JSON.parse(ran.out);
    if (typeof json !== "object" || json === null) throw new Error(`no object: ${ran.out}`);
    return { ...ran, json: { ...json } };
  }

  /** Installs and approves a folder; answers the hash. */
  async approved(folder: string, ...options: readonly string[]): Promise<string> {
    const installed = await this.json("install", folder);
    const { flow, hash } = installed.json;
    if (typeof flow !== "string" || typeof hash !== "string")
      throw new Error(`not installed: ${installed.err}`);
    const approved = await this.json("approve", flow, "--hash", hash, ...options);
    if (approved.code !== 0) throw new Error(`not approved: ${approved.err}`);
    return hash;
  }

  /** Resolves when it serves. */
  async serve(...args: readonly string[]): Promise<Service> {
    const child = spawn(process.execPath, [bin, "serve", ...args], {
      cwd: root,
      stdio: ["ignore", "ignore", "pipe"],
      env: this.#options.env,
    });
    let err = "";
    const ended = new Promise<{ code: number | null; signal: NodeJS.Signals | null }>((resolve) => {
      child.on("close", (code, signal) => resolve({ code, signal }));
    });
    const serving = new Promise<void>((resolve) => {
      child.stderr.setEncoding("utf8").on("data", (text: string) => {
        err += text;
        if (err.includes("serving")) resolve();
      });
    });
    const first = await Promise.race([serving.then(() => "serving"), ended.then(() => "ended")]);
    if (first === "ended") throw new Error(`serve ended: ${err}`);
    const service: Service = {
      child,
      err: () => err,
      stop: async (signal) => {
        child.kill(signal);
        return await ended;
      },
    };
    this.#services.push(service);
    return service;
  }

  async remove(): Promise<void> {
    for (const { child, stop } of this.#services) if (child.exitCode === null) await stop("SIGKILL");
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** A field of a printed object, by a dotted path. */
export function at(json: unknown, path: string): unknown {
  let here: unknown = json;
  for (const key of path.split(".")) {
    if (typeof here !== "object" || here === null) return undefined;
    here = Object.entries(here).find(([name]) => name === key)?.[1];
  }
  return here;
}

export function textAt(json: unknown, path: string): string {
  const text = at(json, path);
  if (typeof text !== "string") throw new Error(`${path} is no text in ${JSON.stringify(json)}`);
  return text;
}
