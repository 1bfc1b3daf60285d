// Parsers of what the Linux kernel says about a process in /proc/PID/{status,limits,stat,maps} and task/PID/children.
//
// Called by the observation of a worker (observe.ts) and by the probe of this host about its own process (probe.ts).
// Trust: the kernel writes these texts, but a worker chooses its own name and a mount can cover /proc. So every field
// that is used must be there exactly once and in exactly its form; whatever else is found is a ProcTextError, never a
// guess. Fields that are not used are not judged: kernels add new ones.
// Pure. Texts are bounded by the reader (proc-reader.ts) before they come here.

/** A text that is not what the kernel writes. The reader of the worker refuses the worker. */
export class ProcTextError extends Error {
  override readonly name = "ProcTextError";
}

/** Real, effective, saved and file system id. */
export type IdQuadruple = readonly [number, number, number, number];

/** The fields of /proc/PID/status that flowcell judges. */
export interface ProcStatus {
  readonly tgid: number;
  readonly pid: number;
  readonly ppid: number;
  readonly tracerPid: number;
  readonly uid: IdQuadruple;
  readonly gid: IdQuadruple;
  readonly groups: readonly number[];
  readonly threads: number;
  readonly signalsBlocked: bigint;
  readonly signalsIgnored: bigint;
  readonly signalsCaught: bigint;
  readonly capInheritable: bigint;
  readonly capPermitted: bigint;
  readonly capEffective: bigint;
  readonly capAmbient: bigint;
  readonly noNewPrivs: number;
  readonly seccompMode: number;
  readonly seccompFilters: number;
  readonly coreDumping: number;
  /** The kernel's words, such as `thread force mitigated`; undefined where the kernel has no such line. */
  readonly storeBypass: string | undefined;
  readonly indirectBranch: string | undefined;
}

/** One row of /proc/PID/limits; -1 is unlimited. */
export interface ProcLimit {
  readonly soft: number;
  readonly hard: number;
}

/** The rows of /proc/PID/limits that flowcell judges. */
export interface ProcLimits {
  readonly cpuSeconds: ProcLimit;
  readonly fileBytes: ProcLimit;
  readonly dataBytes: ProcLimit;
  readonly stackBytes: ProcLimit;
  readonly coreBytes: ProcLimit;
  readonly processes: ProcLimit;
  readonly openFiles: ProcLimit;
}

/** The fields of /proc/PID/stat that flowcell judges. */
export interface ProcStat {
  readonly pid: number;
  readonly state: string;
  readonly ppid: number;
  readonly processGroup: number;
  readonly session: number;
  readonly terminal: number;
  readonly threads: number;
}

/** What the mappings of a process amount to. */
export interface ProcMaps {
  readonly mappings: number;
  /** Mappings that are writable and executable at once. */
  readonly writableExecutable: number;
  /** Mappings shared with other processes or files. */
  readonly shared: number;
  /** Executable mappings that belong to no file and are not the kernel's own. */
  readonly executableAnonymous: number;
}

/** The text of one `Key:\tvalue` line each, by key; a key that comes twice is refused. */
function statusLines(text: string): Map<string, string> {
  const lines = new Map<string, string>();
  if (!text.endsWith("\n")) throw new ProcTextError("status: the last line is cut off");
  for (const line of text.slice(0, -1).split("\n")) {
    const colon = line.indexOf(":");
    if (colon < 1) throw new ProcTextError("status: a line has no name");
    const key = line.slice(0, colon);
    if (lines.has(key)) throw new ProcTextError(`status: ${key} comes twice`);
    lines.set(key, line.slice(colon + 1).trim());
  }
  return lines;
}

function decimal(text: string, what: string): number {
  if (!/^(?:0|[1-9][0-9]{0,14})$/.test(text)) throw new ProcTextError(`${what} is not a decimal number`);
  return Number(text);
}

function mask(text: string, what: string): bigint {
  if (!/^[0-9a-f]{16}$/.test(text)) throw new ProcTextError(`${what} is not 16 hexadecimal digits`);
  return BigInt(`0x${text}`);
}

function quadruple(text: string, what: string): IdQuadruple {
  const parts = text.split("\t").map((part) => decimal(part, what));
  const [real, effective, saved, file] = parts;
  if (
    real === undefined ||
    effective === undefined ||
    saved === undefined ||
    file === undefined ||
    parts.length !== 4
  ) {
    throw new ProcTextError(`${what} is not four numbers`);
  }
  return [real, effective, saved, file];
}

/** Reads /proc/PID/status. Needs Linux 5.9 or newer, which counts the seccomp filters. */
export function parseStatus(text: string): ProcStatus {
  const lines = statusLines(text);
  const field = (key: string): string => {
    const value = lines.get(key);
    if (value === undefined) throw new ProcTextError(`status: ${key} is missing`);
    return value;
  };
  const number = (key: string): number => decimal(field(key), `status: ${key}`);
  const bits = (key: string): bigint => mask(field(key), `status: ${key}`);
  const groups = field("Groups");
  return {
    tgid: number("Tgid"),
    pid: number("Pid"),
    ppid: number("PPid"),
    tracerPid: number("TracerPid"),
    uid: quadruple(field("Uid"), "status: Uid"),
    gid: quadruple(field("Gid"), "status: Gid"),
    groups: groups === "" ? [] : groups.split(" ").map((group) => decimal(group, "status: Groups")),
    threads: number("Threads"),
    signalsBlocked: bits("SigBlk"),
    signalsIgnored: bits("SigIgn"),
    signalsCaught: bits("SigCgt"),
    capInheritable: bits("CapInh"),
    capPermitted: bits("CapPrm"),
    capEffective: bits("CapEff"),
    capAmbient: bits("CapAmb"),
    noNewPrivs: number("NoNewPrivs"),
    seccompMode: number("Seccomp"),
    seccompFilters: number("Seccomp_filters"),
    coreDumping: number("CoreDumping"),
    storeBypass: lines.get("Speculation_Store_Bypass"),
    indirectBranch: lines.get("SpeculationIndirectBranch"),
  };
}

const LIMIT_LINE = /^(Max [a-z ]*[a-z]) +(unlimited|[0-9]{1,20}) +(unlimited|[0-9]{1,20})(?: +[a-z]+)? *$/;

function limitValue(text: string): number {
  if (text === "unlimited") return -1;
  const value = Number(text);
  // The kernel's own infinity, should a row print it as a number.
  if (text === "18446744073709551615") return -1;
  if (!Number.isSafeInteger(value))
    throw new ProcTextError("limits: a number is too large to be compared exactly");
  return value;
}

/** Reads /proc/PID/limits. */
export function parseLimits(text: string): ProcLimits {
  const rows = new Map<string, ProcLimit>();
  const [header, ...lines] = text.split("\n");
  if (
    header === undefined ||
    !/^Limit +Soft Limit +Hard Limit +Units *$/.test(header) ||
    lines.pop() !== ""
  ) {
    throw new ProcTextError("limits: the header or the end is missing");
  }
  for (const line of lines) {
    const match = LIMIT_LINE.exec(line);
    const [, name, soft, hard] = match ?? [];
    if (name === undefined || soft === undefined || hard === undefined) {
      throw new ProcTextError("limits: a line has an unknown form");
    }
    if (rows.has(name)) throw new ProcTextError(`limits: ${name} comes twice`);
    rows.set(name, { soft: limitValue(soft), hard: limitValue(hard) });
  }
  const row = (name: string): ProcLimit => {
    const value = rows.get(name);
    if (value === undefined) throw new ProcTextError(`limits: ${name} is missing`);
    return value;
  };
  return {
    cpuSeconds: row("Max cpu time"),
    fileBytes: row("Max file size"),
    dataBytes: row("Max data size"),
    stackBytes: row("Max stack size"),
    coreBytes: row("Max core file size"),
    processes: row("Max processes"),
    openFiles: row("Max open files"),
  };
}

/** Reads /proc/PID/stat. The name in it is the worker's to choose and may contain brackets and blanks. */
export function parseStat(text: string): ProcStat {
  const open = text.indexOf(" (");
  const close = text.lastIndexOf(") ");
  if (open < 1 || close < open) throw new ProcTextError("stat: the name is not in brackets");
  const fields = text
    .slice(close + 2)
    .trimEnd()
    .split(" ");
  const field = (index: number, what: string): string => {
    const value = fields[index];
    if (value === undefined) throw new ProcTextError(`stat: ${what} is missing`);
    return value;
  };
  const state = field(0, "state");
  if (!/^[A-Za-z]$/.test(state)) throw new ProcTextError("stat: state is not one letter");
  return {
    pid: decimal(text.slice(0, open), "stat: pid"),
    state,
    ppid: decimal(field(1, "ppid"), "stat: ppid"),
    processGroup: decimal(field(2, "process group"), "stat: process group"),
    session: decimal(field(3, "session"), "stat: session"),
    terminal: decimal(field(4, "terminal"), "stat: terminal"),
    threads: decimal(field(17, "threads"), "stat: threads"),
  };
}

/** Reads /proc/PID/task/PID/children: process ids with a blank after each. */
export function parseChildren(text: string): readonly number[] {
  if (text === "") return [];
  if (!text.endsWith(" ")) throw new ProcTextError("children: the list is cut off");
  return text
    .slice(0, -1)
    .split(" ")
    .map((part) => decimal(part, "children: an entry"));
}

const MAP_LINE =
  /^[0-9a-f]{1,16}-[0-9a-f]{1,16} ([r-][w-][x-][ps]) [0-9a-f]{1,16} [0-9a-f]+:[0-9a-f]+ ([0-9]+)(?: +(.*))?$/;

/** Reads /proc/PID/maps and counts what must not be there. */
export function parseMaps(text: string): ProcMaps {
  const lines = text.split("\n");
  if (lines.pop() !== "" || lines.length === 0) throw new ProcTextError("maps: the last line is cut off");
  let writableExecutable = 0;
  let shared = 0;
  let executableAnonymous = 0;
  for (const line of lines) {
    const [, permissions, inode, name] = MAP_LINE.exec(line) ?? [];
    if (permissions === undefined) throw new ProcTextError("maps: a line has an unknown form");
    const executable = permissions[2] === "x";
    if (permissions[1] === "w" && executable) writableExecutable += 1;
    if (permissions[3] === "s") shared += 1;
    // The kernel maps its own code for clocks and signal returns into every process.
    const ofKernel =
      name === "[vdso]" || name === "[vsyscall]" || name === "[vectors]" || name === "[sigpage]";
    if (executable && inode === "0" && !ofKernel) executableAnonymous += 1;
  }
  return { mappings: lines.length, writableExecutable, shared, executableAnonymous };
}
