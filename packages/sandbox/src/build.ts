// The worker build: what the native build says about the worker it made, in worker-native/build/worker.json.
//
// Written by the native build, read here, once per plan; the compiler binds it into the plan, and every Welcome is
// judged against it. Trust: the file lies beside the worker binary and is as trustworthy as that; whoever can change
// one can change the other. It is still read strictly, so that a half-written or foreign file is refused with a reason.
//
// Format 1, an object with exactly these keys:
//   format            1
//   buildId           64 hex digits: SHA-256 over everything the worker is made of; Welcome must say the same
//   fingerprint       64 hex digits: engine, prelude and codec version, for replay; Welcome must say the same
//   os, arch          "linux"; "x64" or "arm64": what the binary runs on
//   worker            {file, bytes, sha256}: the binary, relative to the folder of this file
//   seccomp           {x64: {sha256, length}, arm64: {sha256, length}}: SHA-256 over the filter's instructions as the
//                     kernel receives them (8 bytes each, little-endian), and their number
//   landlockAbiMax    the newest Landlock ABI whose rights the worker knows
//   memory            {imageBytes, engineStackBytes}: what the worker maps besides the script's heap
import { createHash } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { dirname, isAbsolute, join } from "node:path";
import { nativePaths } from "@flowcell/native";
import { object, oneOf, readShape, text, whole } from "./shape.js";

/** A system call filter as the build made it. */
export interface FilterIdentity {
  readonly sha256: string;
  /** Instructions. */
  readonly length: number;
}

/** What the native build says about the worker. */
export interface WorkerBuild {
  readonly format: 1;
  readonly buildId: string;
  readonly fingerprint: string;
  readonly os: "linux" | "macos" | "windows";
  readonly arch: "x64" | "arm64";
  readonly worker: { readonly file: string; readonly bytes: number; readonly sha256: string };
  readonly seccomp: { readonly x64: FilterIdentity; readonly arm64: FilterIdentity };
  readonly landlockAbiMax: number;
  readonly memory: { readonly imageBytes: number; readonly engineStackBytes: number };
}

/** A build that was read, with the absolute path of its worker; or why there is none. */
export type WorkerBuildResult =
  | { readonly ok: true; readonly build: WorkerBuild; readonly workerPath: string }
  | { readonly ok: false; readonly message: string; readonly remedy: string };

const BUILD_FILE = "worker.json";
const BUILD_TEXT_MAX = 16 * 1024;
const REBUILD = "run `npm run build`";

const hex64 = text(64, 64, /^[0-9a-f]{64}$/);
const count = whole(1, Number.MAX_SAFE_INTEGER);
const filterShape = object({ sha256: hex64, length: whole(1, 4096) });

const buildShape = object({
  format: oneOf(1),
  buildId: hex64,
  fingerprint: hex64,
  os: oneOf("linux", "macos", "windows"),
  arch: oneOf("x64", "arm64"),
  // One or more plain names: the binary lies below the folder of the file.
  worker: object({
    file: text(1, 4096, /^[A-Za-z0-9_-][A-Za-z0-9._-]*(?:\/[A-Za-z0-9_-][A-Za-z0-9._-]*)*$/),
    bytes: count,
    sha256: hex64,
  }),
  seccomp: object({ x64: filterShape, arm64: filterShape }),
  landlockAbiMax: whole(1, 64),
  memory: object({ imageBytes: count, engineStackBytes: count }),
});

/** Checks the text of a worker.json. */
export function parseWorkerBuild(text: string): WorkerBuild | { readonly problem: string } {
  if (text.length > BUILD_TEXT_MAX) return { problem: `it has more than ${BUILD_TEXT_MAX} characters` };
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { problem: "it is not JSON" };
  }
  const parsed = readShape(buildShape, value);
  if (parsed.ok) return parsed.value;
  const [issue] = parsed.issues;
  const where = issue === undefined ? "" : issue.path.join(".");
  const what = issue?.code === "unknown_keys" ? `unknown key ${issue.keys.join(", ")}` : (issue?.code ?? "");
  return { problem: `${where === "" ? "the whole" : where}: ${what}` };
}

/**
 * Reads the build in a folder (absolute). The binary's size is compared with what the file says; its digest is left to
 * `workerDigestMatches`, because hashing some megabytes at every start costs more than all else here.
 */
export function readWorkerBuild(folder: string): WorkerBuildResult {
  if (!isAbsolute(folder))
    return refused(`${folder} is not an absolute path`, "give the build folder's full path");
  const file = join(folder, BUILD_FILE);
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch {
    return refused(`${file} cannot be read: the worker has not been built here`, REBUILD);
  }
  const build = parseWorkerBuild(text);
  if ("problem" in build) return refused(`${file} is not usable: ${build.problem}`, REBUILD);
  const workerPath = join(folder, build.worker.file);
  const stats = statSync(workerPath, { throwIfNoEntry: false });
  if (stats === undefined || !stats.isFile()) return refused(`${workerPath} is missing`, REBUILD);
  if (stats.size !== build.worker.bytes) {
    return refused(
      `${workerPath} has ${stats.size} bytes, its build wrote ${build.worker.bytes}`,
      `${REBUILD}; the file was changed after the build`,
    );
  }
  return { ok: true, build, workerPath };
}

/** The folder that holds worker.json and the native products of this clone. */
export function defaultBuildFolder(): string {
  return dirname(dirname(nativePaths().worker));
}

/** Whether the worker binary is byte for byte the one that the build made. Reads the whole file. */
export function workerDigestMatches(build: WorkerBuild, workerPath: string): boolean {
  return createHash("sha256").update(readFileSync(workerPath)).digest("hex") === build.worker.sha256;
}

function refused(message: string, remedy: string): WorkerBuildResult {
  return { ok: false, message, remedy };
}
