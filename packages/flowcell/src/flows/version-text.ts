/**
 * A version of a flow as a reviewer sees it: reach first, and of it what changed; then what its dry run called; then its
 * changes against the approved version, or all of its source.
 *
 * TRUST: names, sources and what a dry run called are the author's. Everything is made printable, so that no text can move
 * the cursor, hide a line or look like this file's own words; characters that turn the direction of text are shown too.
 */

import { printable, spelledOut } from "@flowcell/bundle";
import type { DryRun, Reach, VersionReport } from "@flowcell/flows";
import { limitNames, profileLimits } from "@flowcell/protocol";
import { createTwoFilesPatch, FILE_HEADERS_ONLY } from "diff";
import { bytesText } from "../cli/human.js";
import { block, plural, timeText } from "./tables.js";

/** A patch is made in this time or not at all: the sources are an author's, who may not mean well. */
const diffMsMax = 3000;

export function headText(version: VersionReport): string {
  const { flow, number, state, hash, installedAt, installedBy, decidedAt, decidedBy, decisionReason } =
    version;
  const lines = [
    `${flow}, version ${number}: ${state}`,
    `hash      ${hash}`,
    `installed ${timeText(installedAt)} by ${installedBy}`,
  ];
  if (decidedAt !== null) {
    const why = decisionReason === null ? "" : `: ${decisionReason}`;
    lines.push(`decided   ${timeText(decidedAt)} by ${decidedBy ?? "?"}${why}`);
  }
  return text(lines);
}

/** What it may reach; what differs from the approved version comes first. */
export function reachText({ reach, difference }: Pick<VersionReport, "reach" | "difference">): string {
  const changed =
    difference === null
      ? []
      : [
          `reach, compared with the approved version ${difference.approvedHash.slice(0, 12)}:`,
          ...difference.added.map((line) => `  + ${line}`),
          ...difference.removed.map((line) => `  - ${line}`),
          ...(difference.added.length + difference.removed.length === 0 ? ["  nothing changed"] : []),
          "",
        ];
  return text([...changed, "reach:", ...reachLines(reach), ...block("look at:", reach.remarks)]);
}

function reachLines(reach: Reach): readonly string[] {
  const { hosts, mounts, secrets, kvMaxBytes, flows, events, tools, trigger } = reach;
  const budgets = budgetLines(reach);
  const lines = [
    ...hosts.map((line) => `network  ${line}`),
    ...mounts.map((line) => `files    ${line}`),
    ...secrets.map((line) => `secret   ${line}`),
    ...(kvMaxBytes === 0 ? [] : [`kv       ${bytesText(kvMaxBytes)} of its own keys and values`]),
    ...flows.map((line) => `flow     starts ${line}`),
    ...events.map((line) => `event    emits ${line}`),
    ...tools.map((line) => `tool     ${line}`),
  ];
  const all = lines.length === 0 ? ["nothing outside: log and sleep only"] : lines;
  return [...all, `trigger  ${trigger}`, ...budgets].map((line) => `  ${line}`);
}

/** Only what differs from what every flow gets. */
function budgetLines({ budgets }: Reach): readonly string[] {
  const usual = profileLimits("flow");
  const named = limitNames.filter((name) => budgets[name] !== usual[name]);
  return named.map((name) => `budget   ${name} ${budgets[name]} (usual: ${usual[name]})`);
}

export function dryRunText(run: DryRun | null): string {
  if (run === null) return "";
  const { status, message, calls, logs } = run;
  const end = `${status}${message === null ? "" : `: ${message}`}`;
  return text([
    `dry run (no call was carried out): ${end}`,
    ...calls.map(({ name, args }) => `  ${name} ${args}`),
    ...(calls.length === 0 ? ["  called nothing"] : []),
    ...logs.map((line) => `  [log] ${line}`),
  ]);
}

/** Manifest and sources. */
export function sourceText({ manifestText, sources }: VersionReport): string {
  const files = [{ path: "flow.json", text: manifestText }, ...sources];
  return files.map((file) => `--- ${printable(file.path)}\n${numbered(file.text)}`).join("\n");
}

function numbered(source: string): string {
  const lines = source.replace(/\n$/, "").split("\n");
  const width = String(lines.length).length;
  return `${lines.map((line, index) => `${String(index + 1).padStart(width)} | ${visible(line)}`).join("\n")}\n`;
}

/** What changed in manifest and sources, as a patch. */
export function changesText(before: VersionReport, after: VersionReport): string {
  const one = filesOf(before);
  const other = filesOf(after);
  const paths = [...new Set([...one.keys(), ...other.keys()])].sort();
  const patches: string[] = [];
  for (const path of paths) {
    const [from, to] = [one.get(path), other.get(path)];
    if (from === to) continue;
    const name = printable(path);
    const patch = createTwoFilesPatch(
      from === undefined ? "/dev/null" : `approved/${name}`,
      to === undefined ? "/dev/null" : `new/${name}`,
      from ?? "",
      to ?? "",
      undefined,
      undefined,
      { context: 3, headerOptions: FILE_HEADERS_ONLY, timeout: diffMsMax },
    );
    patches.push(patch === undefined ? apart(name, from, to) : patch.split("\n").map(visible).join("\n"));
  }
  return patches.length === 0 ? "manifest and sources are the same\n" : patches.join("");
}

/** Texts that have too little in common for a patch in time. */
function apart(name: string, from = "", to = ""): string {
  return `--- approved/${name}\n${numbered(from)}+++ new/${name}\n${numbered(to)}`;
}

function filesOf({ manifestText, sources }: VersionReport): ReadonlyMap<string, string> {
  return new Map([["flow.json", manifestText], ...sources.map(({ path, text }) => [path, text] as const)]); // pairs
}

/** Tabs are blanks here; what a reader cannot see, or what turns the direction of text, is written as its number. */
function visible(line: string): string {
  return spelledOut(line.replaceAll("\t", "    "));
}

export function bundleLine({ bundle, sources }: VersionReport): string {
  return `bundle: ${bytesText(Buffer.byteLength(bundle))} from ${plural(sources.length, "file")}`;
}

function text(lines: readonly string[]): string {
  return `${lines.map(printable).join("\n")}\n`;
}
