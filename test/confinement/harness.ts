// What the confinement tests share: building the products, a folder that an ordinary user can reach, and runs of
// programs through run-piped (worker-native/tools/run_piped.c has the options).
//
// Confinement tests run as root and as an ordinary user. A checkout may lie where user 65534 cannot go, so the binaries
// are copied into a folder with mode 0755 first. Where the tests themselves are run by an ordinary user there is no
// root to try: those cases do not exist there.

import { execFileSync, spawnSync } from "node:child_process";
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { constants } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

export const root = fileURLToPath(new URL("../../", import.meta.url));
export const nobody = 65534;

/** Builds targets of scripts/native/targets.mjs; nothing happens when they are fresh. */
export function build(...targets: string[]): void {
  const words = targets.flatMap((target) => ["--target", target]);
  execFileSync(process.execPath, [join(root, "scripts/build-native.mjs"), ...words], { stdio: "pipe" });
}

/** The file of a built product: `bin/probe`, `test/run-piped`. */
export function product(path: string): string {
  return join(root, "worker-native/build", path);
}

/** Who a case runs as: the user of the tests, and nobody if that user is root. */
export interface TestUser {
  readonly name: string;
  /** The option of run-piped that makes it so; null: no change. */
  readonly option: string | null;
  readonly isRoot: boolean;
}

export function testUsers(): readonly TestUser[] {
  if (process.getuid?.() !== 0) return [{ name: "an ordinary user", option: null, isRoot: false }];
  return [
    { name: "root", option: null, isRoot: true },
    { name: "an ordinary user", option: `--user=${nobody}`, isRoot: false },
  ];
}

/** A folder that every user may enter, with copies of binaries and a scratch folder that every user may write. */
export class Stage {
  readonly folder: string;
  readonly scratch: string;

  constructor() {
    this.folder = mkdtempSync("/tmp/flowcell-confinement-");
    chmodSync(this.folder, 0o755);
    this.scratch = join(this.folder, "scratch");
    mkdirSync(this.scratch);
    chmodSync(this.scratch, 0o777);
  }

  /** Copies a file in, executable for all, and says where it is. */
  copy(file: string, name: string): string {
    const path = join(this.folder, name);
    copyFileSync(file, path);
    chmodSync(path, 0o755);
    return path;
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** One run: options of run-piped, then the program with its arguments. */
export interface Run {
  readonly options: readonly (string | null)[];
  readonly program: readonly string[];
}

export interface RunResult {
  readonly stdout: string;
  readonly stderr: string;
  /** -1 if a signal ended it. */
  readonly exit: number;
  /** "" if it exited. */
  readonly signal: string;
  readonly core: boolean;
}

const signalNames = new Map(Object.entries(constants.signals).map(([name, value]) => [value, name]));

/** A line of run-piped's output, before it is checked. */
interface Answer {
  readonly stdout?: unknown;
  readonly stderr?: unknown;
  readonly exit?: unknown;
  readonly signal?: unknown;
  readonly core?: unknown;
  readonly timeout?: unknown;
  readonly error?: unknown;
}

function parseResult(line: string, run: Run): RunResult {
  const answer: Answer = JSON.parse(line);
  if (answer.error !== undefined)
    throw new Error(`run-piped could not set up ${describe(run)}: ${String(answer.error)}`);
  if (answer.timeout !== false) throw new Error(`${describe(run)} did not end`);
  if (typeof answer.stdout !== "string" || typeof answer.stderr !== "string")
    throw new Error(`run-piped answered ${line}`);
  const signal = Number(answer.signal);
  return {
    stdout: answer.stdout,
    stderr: answer.stderr,
    exit: Number(answer.exit),
    signal: signal === 0 ? "" : (signalNames.get(signal) ?? `signal ${signal}`),
    core: answer.core === true,
  };
}

function describe(run: Run): string {
  return [...run.options, "--", ...run.program].filter((word) => word !== null).join(" ");
}

/** Runs programs one after the other. Throws if one could not be set up as asked or did not end. */
export function runAll(runPiped: string, runs: readonly Run[]): readonly RunResult[] {
  const lines = runs.map((run) => {
    const words = [...run.options.filter((word) => word !== null), "--", ...run.program];
    if (words.some((word) => word === "" || /[\t\n]/.test(word)))
      throw new Error(`not a word: ${describe(run)}`);
    return `${words.join("\t")}\n`;
  });
  const { status, stdout, stderr } = spawnSync(runPiped, {
    input: lines.join(""),
    encoding: "utf8",
    maxBuffer: 64 * 1024 * 1024,
  });
  if (status !== 0) throw new Error(`run-piped ended with ${status}: ${stderr}`);
  const answers = stdout.split("\n").filter((line) => line !== "");
  if (answers.length !== runs.length)
    throw new Error(`${runs.length} runs, ${answers.length} answers: ${stderr}`);
  return runs.map((run, index) => parseResult(answers[index] ?? "", run));
}

export function runOne(runPiped: string, run: Run): RunResult {
  const [result] = runAll(runPiped, [run]);
  if (result === undefined) throw new Error("no answer");
  return result;
}

/** The exit codes by name, from the table itself. */
export function exitCodes(): ReadonlyMap<string, number> {
  const table: { rows: { code: number; name: string }[] } = JSON.parse(
    readFileSync(join(root, "profiles/exit-codes.json"), "utf8"),
  );
  return new Map(table.rows.map((row) => [row.name, row.code]));
}

/** The system call numbers of this machine, from the table that the worker is compiled with. */
export function callNumbers(arch: string = process.arch): ReadonlyMap<string, number> {
  const source = readFileSync(join(root, `worker-native/src/base/sysno_${arch}.h`), "utf8");
  return new Map(
    [...source.matchAll(/^ {2}X\((\w+), (\d+)\)/gm)].map((row) => [row[1] ?? "", Number(row[2])]),
  );
}
