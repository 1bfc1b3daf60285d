#!/usr/bin/env node
// Makes everything that is derived from profiles/linux/seccomp.json, profiles/linux/landlock.json and
// profiles/exit-codes.json, and the names of system calls from worker-native/src/base/sysno_*.h.
//
//   node scripts/generate-seccomp.mjs           writes the files that differ
//   node scripts/generate-seccomp.mjs --check   writes nothing; exits 1 and names them if any differ
//
// The tables are checked first (unknown keys, double codes, numbers out of range, arguments that no filter can
// test), because a table that was misread would become a filter that admits something else. Outputs are committed;
// the test beside the confinement tests regenerates and compares them.

import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = dirname(dirname(fileURLToPath(import.meta.url)));
const ARCHITECTURES = ["x64", "arm64"];
const PHASES = ["startup", "confinement", "running", "engine"];
const SYSTEMS = ["linux", "macos", "windows"];
const DOC = "docs/syscall-admission.md";

function fail(message) {
  throw new Error(`flowcell: ${message}`);
}

function exactKeys(value, keys, where) {
  for (const key of Object.keys(value)) if (!keys.includes(key)) fail(`${where}: unknown key "${key}"`);
  for (const key of keys) if (!(key in value)) fail(`${where}: "${key}" is missing`);
}

function text(value, where) {
  if (typeof value !== "string" || value.length === 0) fail(`${where} must be a text`);
  return value;
}

function integer(value, low, high, where) {
  if (!Number.isSafeInteger(value) || value < low || value > high)
    fail(`${where} must be an integer from ${low} to ${high}`);
  return value;
}

function word32(value, where) {
  if (typeof value !== "string" || !/^0x[0-9a-f]{1,8}$/.test(value))
    fail(`${where} must be like "0x40000000"`);
  return Number(value);
}

/** The seccomp table, checked: { architectures, rows } with numbers as numbers. */
export function readSeccompTable(source) {
  const table = JSON.parse(source);
  exactKeys(table, ["about", "architectures", "rows"], "seccomp.json");
  exactKeys(table.architectures, ARCHITECTURES, "architectures");
  const architectures = {};
  for (const arch of ARCHITECTURES) {
    const entry = table.architectures[arch];
    exactKeys(entry, ["auditArch", "refuseFrom"], `architectures.${arch}`);
    architectures[arch] = {
      auditArch: word32(entry.auditArch, `architectures.${arch}.auditArch`),
      refuseFrom:
        entry.refuseFrom === null ? null : word32(entry.refuseFrom, `architectures.${arch}.refuseFrom`),
    };
  }
  const rows = table.rows.map((row, at) => readRow(row, `rows[${at}]`));
  for (const arch of ARCHITECTURES) {
    const numbers = rows.map((row) => row.numbers[arch]);
    if (new Set(numbers).size !== numbers.length) fail(`a system call number of ${arch} appears twice`);
  }
  if (new Set(rows.map((row) => row.name)).size !== rows.length) fail("a system call name appears twice");
  return { architectures, rows };
}

function readRow(row, where) {
  exactKeys(row, ["name", "numbers", "args", "reason", "neededBy"], where);
  exactKeys(row.numbers, ARCHITECTURES, `${where}.numbers`);
  for (const arch of ARCHITECTURES) integer(row.numbers[arch], 0, 1023, `${where}.numbers.${arch}`);
  const args = row.args.map((arg, at) => {
    const place = `${where}.args[${at}]`;
    exactKeys(arg, ["index", "name", "bits", "oneOf"], place);
    integer(arg.index, 0, 5, `${place}.index`);
    text(arg.name, `${place}.name`);
    if (arg.bits !== 32 && arg.bits !== 64) fail(`${place}.bits must be 32 or 64`);
    if (!Array.isArray(arg.oneOf) || arg.oneOf.length < 1 || arg.oneOf.length > 4)
      fail(`${place}.oneOf must list one to four values`);
    for (const value of arg.oneOf) integer(value, 0, 0xffffffff, `${place}.oneOf`);
    return arg;
  });
  if (args.length > 2) fail(`${where}: a row tests at most two arguments`);
  if (!/^[a-z0-9_]+$/.test(text(row.name, `${where}.name`))) fail(`${where}.name`);
  text(row.reason, `${where}.reason`);
  if (!Array.isArray(row.neededBy) || row.neededBy.length === 0) fail(`${where}.neededBy must not be empty`);
  for (const place of row.neededBy) text(place, `${where}.neededBy`);
  return row;
}

const LANDLOCK_SETS = { fileSystem: "FILE_SYSTEM", network: "NETWORK", scoped: "SCOPED" };

/** The Landlock rights, checked. */
export function readLandlockTable(source) {
  const table = JSON.parse(source);
  exactKeys(table, ["about", "abiMax", "rights"], "landlock.json");
  integer(table.abiMax, 1, 64, "abiMax");
  table.rights.forEach((right, at) => {
    const where = `rights[${at}]`;
    exactKeys(right, ["abi", "set", "bit", "name"], where);
    integer(right.abi, 1, table.abiMax, `${where}.abi`);
    integer(right.bit, 0, 63, `${where}.bit`);
    text(right.name, `${where}.name`);
    if (!(right.set in LANDLOCK_SETS))
      fail(`${where}.set must be one of ${Object.keys(LANDLOCK_SETS).join(", ")}`);
  });
  const keys = table.rights.map((right) => `${right.set} ${right.bit}`);
  if (new Set(keys).size !== keys.length) fail("landlock.json: a right appears twice");
  return table;
}

/** The exit code rows, checked, in order of their codes. */
export function readExitCodes(source) {
  const table = JSON.parse(source);
  exactKeys(table, ["about", "rows"], "exit-codes.json");
  table.rows.forEach((row, at) => {
    const where = `rows[${at}]`;
    exactKeys(row, ["code", "name", "phase", "os", "when", "remedy"], where);
    integer(row.code, 64, 125, `${where}.code`);
    if (!/^[a-z0-9_]+$/.test(text(row.name, `${where}.name`))) fail(`${where}.name`);
    if (!PHASES.includes(row.phase)) fail(`${where}.phase must be one of ${PHASES.join(", ")}`);
    for (const os of row.os) if (!SYSTEMS.includes(os)) fail(`${where}.os: ${os}`);
    text(row.when, `${where}.when`);
    text(row.remedy, `${where}.remedy`);
  });
  for (const key of ["code", "name"])
    if (new Set(table.rows.map((row) => row[key])).size !== table.rows.length)
      fail(`exit-codes.json: a ${key} appears twice`);
  return [...table.rows].sort((left, right) => left.code - right.code);
}

function hex(value) {
  return `0x${value.toString(16).padStart(8, "0")}`;
}

function seccompHeader(table, arch) {
  const upper = arch.toUpperCase();
  const { auditArch, refuseFrom } = table.architectures[arch];
  const rows = table.rows.map((row) => {
    const args = row.args.map(
      (arg) =>
        `{.index = ${arg.index}, .bits = ${arg.bits}, .count = ${arg.oneOf.length}, .values = {${arg.oneOf.map((value) => `${value}u`).join(", ")}}}`,
    );
    const list = args.length > 0 ? `, .args = {${args.join(", ")}}` : "";
    return `  {.number = ${row.numbers[arch]}, .arg_count = ${args.length}${list}}, /* ${row.name} */\n`;
  });
  return `/* Generated by scripts/generate-seccomp.mjs from profiles/linux/seccomp.json. Do not edit. */
#ifndef FLOWCELL_GENERATED_SECCOMP_${upper}_H
#define FLOWCELL_GENERATED_SECCOMP_${upper}_H

#include "confine/bpf.h"

static const struct seccomp_row SECCOMP_ROWS_${upper}[] = {
${rows.join("")}};

static const struct seccomp_table SECCOMP_TABLE_${upper} = {
  .audit_arch = ${hex(auditArch)}u,
  .refuse_from = ${refuseFrom === null ? "0u" : `${hex(refuseFrom)}u`},
  .row_count = ${table.rows.length},
  .rows = SECCOMP_ROWS_${upper},
};

#endif
`;
}

function landlockHeader(table) {
  const rows = table.rights.map(
    (right) =>
      `  {.abi = ${right.abi}, .set = LANDLOCK_${LANDLOCK_SETS[right.set]}, .bit = ${right.bit}}, /* ${right.name} */\n`,
  );
  return `/* Generated by scripts/generate-seccomp.mjs from profiles/linux/landlock.json. Do not edit. */
#ifndef FLOWCELL_GENERATED_LANDLOCK_RIGHTS_H
#define FLOWCELL_GENERATED_LANDLOCK_RIGHTS_H

#include "confine/landlock.h"

/* The newest ABI whose rights are here. A newer kernel is asked for these only. */
enum { LANDLOCK_ABI_KNOWN = ${table.abiMax} };

static const struct landlock_right LANDLOCK_RIGHTS[] = {
${rows.join("")}};

#endif
`;
}

function exitHeader(codes) {
  const width = Math.max(...codes.map((row) => row.name.length));
  const lines = codes.map((row) => `  EXIT_${row.name.toUpperCase().padEnd(width)} = ${row.code}`);
  return `/* Generated by scripts/generate-seccomp.mjs from profiles/exit-codes.json. Do not edit. */
#ifndef FLOWCELL_GENERATED_EXIT_CODES_H
#define FLOWCELL_GENERATED_EXIT_CODES_H

enum exit_code {
${lines.join(",\n")}
};

#endif
`;
}

function exitModule(codes) {
  const rows = codes.map((row) => {
    const os = row.os.map((name) => JSON.stringify(name)).join(", ");
    return [
      "  {",
      `    code: ${row.code},`,
      `    name: ${JSON.stringify(row.name)},`,
      `    phase: ${JSON.stringify(row.phase)},`,
      `    os: [${os}],`,
      `    when: ${JSON.stringify(row.when)},`,
      `    remedy: ${JSON.stringify(row.remedy)},`,
      "  },",
    ].join("\n");
  });
  return `// Generated by scripts/generate-seccomp.mjs from profiles/exit-codes.json. Do not edit.

/** When in its life a worker ends with a code. */
export type ExitPhase = ${PHASES.map((phase) => JSON.stringify(phase)).join(" | ")};

/** One exit code of a worker process. */
export interface ExitCodeRow {
  readonly code: number;
  readonly name: string;
  readonly phase: ExitPhase;
  readonly os: readonly (${SYSTEMS.map((os) => JSON.stringify(os)).join(" | ")})[];
  /** What happened, as the end of the sentence "the worker ended because …". */
  readonly when: string;
  /** What the operator can do. */
  readonly remedy: string;
}

/** Every exit code, in order. Codes that are not here mean nothing to flowcell. */
// biome-ignore format: one generated row per code, whatever its length
export const EXIT_CODES: readonly ExitCodeRow[] = [
${rows.join("\n")}
];
`;
}

/** Both architectures' calls as one text each, which is parsed only when a name is asked for. */
function callModule(headers) {
  const tables = ARCHITECTURES.map((arch) => {
    const rows = [...headers[arch].matchAll(/^ {2}X\((\w+), (\d+)\)/gm)];
    if (rows.length < 250) fail(`sysno_${arch}.h: only ${rows.length} system calls were found`);
    return `  ${arch}: "${rows.map(([, name, number]) => `${number}=${name}`).join(" ")}",`;
  });
  return `// Generated by scripts/generate-seccomp.mjs from worker-native/src/base/sysno_*.h. Do not edit.

/** NUMBER=NAME of every system call of Linux, separated by spaces. */
// biome-ignore format: generated, whatever its length
export const SYSCALLS: Readonly<Record<"x64" | "arm64", string>> = {
${tables.join("\n")}
};
`;
}

function argumentRule(arg) {
  const values = arg.oneOf.map((value) => `\`${value}\``).join(" or ");
  return `${arg.name} (argument ${arg.index}, ${arg.bits === 64 ? "all 64 bits" : "low 32 bits"}) is ${values}`;
}

function admissionTable(table) {
  const head = "| call | x86-64 | arm64 | arguments | why | needed by |\n|---|---|---|---|---|---|";
  const rows = table.rows.map((row) => {
    const args = row.args.length === 0 ? "any" : row.args.map(argumentRule).join("; ");
    const places = row.neededBy.map((place) => `\`${place}\``).join(", ");
    return `| \`${row.name}\` | ${row.numbers.x64} | ${row.numbers.arm64} | ${args} | ${row.reason} | ${places} |`;
  });
  return [head, ...rows].join("\n");
}

function exitTable(codes) {
  const head = "| code | name | phase | systems | when | what to do |\n|---|---|---|---|---|---|";
  const rows = codes.map(
    (row) =>
      `| ${row.code} | \`${row.name}\` | ${row.phase} | ${row.os.join(", ")} | ${row.when} | ${row.remedy} |`,
  );
  return [head, ...rows].join("\n");
}

function between(document, marker, body) {
  const begin = `<!-- generated:${marker} -->`;
  const end = `<!-- /generated:${marker} -->`;
  const from = document.indexOf(begin);
  const to = document.indexOf(end);
  if (from < 0 || to < from) fail(`${DOC} has no section between ${begin} and ${end}`);
  return `${document.slice(0, from + begin.length)}\n${body}\n${document.slice(to)}`;
}

/** Every generated file with its content, by path relative to the repository. */
export function generatedFiles(root = ROOT) {
  const read = (path) => readFileSync(join(root, path), "utf8");
  const table = readSeccompTable(read("profiles/linux/seccomp.json"));
  const codes = readExitCodes(read("profiles/exit-codes.json"));
  const admission = between(read(DOC), "seccomp-rows", admissionTable(table));
  return new Map([
    ["worker-native/generated/seccomp_x64.h", seccompHeader(table, "x64")],
    ["worker-native/generated/seccomp_arm64.h", seccompHeader(table, "arm64")],
    [
      "worker-native/generated/landlock_rights.h",
      landlockHeader(readLandlockTable(read("profiles/linux/landlock.json"))),
    ],
    ["worker-native/generated/exit_codes.h", exitHeader(codes)],
    ["packages/sandbox/src/exit-codes.generated.ts", exitModule(codes)],
    [
      "packages/sandbox/src/syscall-names.generated.ts",
      callModule(
        Object.fromEntries(
          ARCHITECTURES.map((arch) => [arch, read(`worker-native/src/base/sysno_${arch}.h`)]),
        ),
      ),
    ],
    [DOC, between(admission, "exit-codes", exitTable(codes))],
  ]);
}

/** Writes what differs, or with `check` only tells. Resolves to the paths that differ(ed). */
export function generate({ root = ROOT, check = false } = {}) {
  const stale = [];
  for (const [path, content] of generatedFiles(root)) {
    let old = null;
    try {
      old = readFileSync(join(root, path), "utf8");
    } catch {
      // Not there yet: it differs.
    }
    if (old === content) continue;
    stale.push(path);
    if (!check) writeFileSync(join(root, path), content);
  }
  return stale;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const words = process.argv.slice(2);
  if (words.some((word) => word !== "--check")) {
    process.stderr.write("flowcell: usage: generate-seccomp.mjs [--check]\n");
    process.exit(64);
  }
  const check = words.length > 0;
  const stale = generate({ check });
  for (const path of stale) process.stdout.write(`${check ? "differs" : "written"}: ${path}\n`);
  if (check && stale.length > 0) process.exitCode = 1;
}
