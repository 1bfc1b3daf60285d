// What /proc says about processes: who is whose child, and whether the very process that was seen is still there. For tests
// that must know what became of workers; pids are reused, so a process is named by its pid and the time it started.
import { readdirSync, readFileSync } from "node:fs";

export interface Seen {
  readonly pid: number;
  /** The file name it was executed as, cut to 15 characters. */
  readonly name: string;
  /** R, S, D, Z … */
  readonly state: string;
  readonly parent: number;
  /** Ticks of CPU time, user and system. */
  readonly cpuTicks: number;
  /** Ticks from boot to its start. */
  readonly startedAt: number;
}

/** The process as it is now; null if there is none of that pid. */
export function look(pid: number): Seen | null {
  let stat: string;
  try {
    stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  } catch {
    return null;
  }
  const end = stat.lastIndexOf(")");
  const fields = stat.slice(end + 2).split(" ");
  // Field 3 of proc(5) is the first here.
  const field = (number: number): string => fields[number - 3] ?? "";
  return {
    pid,
    name: stat.slice(stat.indexOf("(") + 1, end),
    state: field(3),
    parent: Number(field(4)),
    cpuTicks: Number(field(14)) + Number(field(15)),
    startedAt: Number(field(22)),
  };
}

/** Whether the process that was seen still is. One that is dead and not collected holds nothing and runs nothing. */
export function lives({ pid, startedAt }: Seen): boolean {
  const now = look(pid);
  return now !== null && now.startedAt === startedAt && now.state !== "Z" && now.state !== "X";
}

/** Children of a process, dead ones that it has not collected included. */
export function childrenOf(parent: number): readonly Seen[] {
  const children: Seen[] = [];
  for (const name of readdirSync("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    const seen = look(Number(name));
    if (seen?.parent === parent) children.push(seen);
  }
  return children;
}
