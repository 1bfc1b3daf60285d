/**
 * Fake workers for the pool's tests: builds test/pool/liar.c, gives it a folder of names to be started under, and a
 * backend that launches it through the real launcher and judges its Welcome fact by fact.
 *
 * Used by the tests of this folder and by the pool's bench. It stands where packages/sandbox stands in production, because
 * a liar is not confined and could not pass there.
 */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { LaunchError, type LaunchLimits, launchWorker } from "@flowcell/native";
import {
  type EncodedValue,
  type Limits,
  ProtocolError,
  parseWelcome,
  profileLimits,
  type WelcomeFacts,
  welcomeFields,
} from "@flowcell/protocol";
import { type Judgement, StartError, type WorkerBackend } from "../../packages/pool/src/backend.js";
import { moment } from "../../packages/pool/src/kernel-log.js";
import { openPipes } from "../../packages/pool/src/pipes.js";
import { SystemProcess } from "../../packages/pool/src/system-backend.js";
import type { ActivationRequest, ActivationResult } from "../../packages/pool/src/types.js";

const root = fileURLToPath(new URL("../../", import.meta.url));

export const liarLimits: LaunchLimits = { dataBytes: 1 << 30, cpuSeconds: 3600, stackBytes: 8 << 20 };

/** Compiles the liar, unless one of the same text is there. */
function buildLiar(): string {
  const source = join(root, "test/pool/liar.c");
  const digest = createHash("sha256").update(readFileSync(source)).digest("hex").slice(0, 16);
  const folder = join(root, "worker-native/build/test");
  const binary = join(folder, `liar-${digest}`);
  if (existsSync(binary)) return binary;
  mkdirSync(folder, { recursive: true });
  const unfinished = `${binary}.${process.pid}`;
  const { CC: compiler = "cc" } = process.env;
  execFileSync(compiler, [
    "-std=gnu11",
    "-O1",
    "-Wall",
    "-Wextra",
    "-Wshadow",
    "-Werror",
    "-o",
    unfinished,
    source,
  ]);
  renameSync(unfinished, binary);
  return binary;
}

/** What an honest liar claims; see `facts` in liar.c. */
function expectedFacts(limits: LaunchLimits): WelcomeFacts {
  const none = "0".repeat(16);
  const hash = (digit: number): string => String(digit).padStart(64, "0");
  return {
    protocol: 1,
    buildId: hash(1),
    fingerprint: hash(2),
    os: "linux",
    arch: process.arch === "arm64" ? "arm64" : "x64",
    seccompSha256: hash(3),
    seccompLength: 100,
    seccompTsync: true,
    landlockAbi: 1,
    noNewPrivs: true,
    dumpable: false,
    mdwe: true,
    threads: 1,
    uid: 65534,
    gid: 65534,
    groups: 0,
    capEffective: none,
    capPermitted: none,
    capInheritable: none,
    capAmbient: none,
    limitCore: 0,
    limitData: limits.dataBytes,
    limitCpu: limits.cpuSeconds,
    limitStack: limits.stackBytes,
    limitNofile: 3,
    limitFsize: 0,
    limitNproc: 0,
    descriptors: 7,
    environmentCount: 0,
    specStoreBypass: 0,
    specIndirectBranch: 0,
  };
}

export const honestFacts = expectedFacts(liarLimits);

export interface LiarConfinement {
  readonly liar: string;
}

/** A folder in which the liar has many names. */
export class Liars {
  readonly #binary = buildLiar();
  readonly #folder = mkdtempSync(join(tmpdir(), "flowcell-liars-"));

  /** The path of a behaviour; nothing lies at that of "missing". */
  path(behaviour: string): string {
    const path = join(this.#folder, behaviour);
    if (behaviour !== "missing" && !existsSync(path)) symlinkSync(this.#binary, path);
    return path;
  }

  /** `behaviour` is asked anew for every start: a test can have the first worker lie and the next be honest. */
  backend(
    behaviour: string | (() => string),
    limits: LaunchLimits = liarLimits,
  ): WorkerBackend<LiarConfinement> {
    const expected = expectedFacts(limits);
    let started = "";
    return {
      cpuLimitSeconds: limits.cpuSeconds,
      start: (handlers) => {
        started = typeof behaviour === "string" ? behaviour : behaviour();
        try {
          const launched = moment();
          const worker = launchWorker({ path: this.path(started), limits });
          return { process: new SystemProcess(worker, launched), pipes: openPipes(worker, handlers) };
        } catch (error) {
          if (error instanceof LaunchError) throw new StartError(error.step, error.message);
          throw error;
        }
      },
      judge: (welcome): Judgement<LiarConfinement> => {
        try {
          const facts = parseWelcome(welcome);
          for (const { name } of welcomeFields) {
            if (facts[name] === expected[name]) continue;
            const message = `${name} is ${facts[name]}, not ${expected[name]}`;
            return { ok: false, reason: "welcome_refused", fact: name, message };
          }
          return { ok: true, confinement: { liar: started } };
        } catch (error) {
          if (!(error instanceof ProtocolError)) throw error;
          return { ok: false, reason: "welcome_refused", fact: "form", message: error.message };
        }
      },
    };
  }

  remove(): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

const seed = new Uint8Array(32);
const names: readonly string[] = ["echo", "slow", "never", "boom", "big"];

export const liarBudgets: Limits = { ...profileLimits("flow"), cpuMs: 1000, wallMs: 5000 };

export function json(value: unknown): EncodedValue {
  return { text: JSON.stringify(value), devalue: false, attachments: [] };
}

/** A request whose "script" is a list of commands of liar.c. */
export function request(script: string, more: Partial<ActivationRequest> = {}): ActivationRequest {
  return {
    flow: "a",
    script,
    input: json({ n: 1 }),
    names,
    limits: liarBudgets,
    clock: { epochMs: 1_700_000_000_000, mode: "virtual" },
    seed,
    onHostCall: (call) => ({ ok: true, value: call.args }),
    ...more,
  };
}

/** The value of a completed result. */
export function resultValue(result: ActivationResult<unknown>): unknown {
  if (result.value === undefined)
    throw new Error(`no value: ${result.status}/${result.reason}: ${result.error?.message}`);
  return JSON.parse(result.value.text);
}
