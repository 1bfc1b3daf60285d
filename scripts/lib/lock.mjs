// A lock between processes of one clone, so that two terminals never install or build over one another.
// Called by scripts/bootstrap.mjs and the build scripts. The lock file holds the owner's pid and start time; an
// owner that died (kill -9 included) is recognised and its lock is taken over.
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { setTimeout as delay } from "node:timers/promises";

/** Start time of a process in clock ticks (proc(5), field 22), or "" when it is gone: guards against a reused pid. */
function startTime(pid) {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19] ?? "";
  } catch {
    return "";
  }
}

function ownerIsAlive(path) {
  let text;
  try {
    text = readFileSync(path, "utf8");
  } catch {
    return false;
  }
  const [pid, started] = text.split(" ");
  return started !== undefined && started !== "" && startTime(pid) === started;
}

/**
 * Runs `work` while holding the lock file at `path`; waits for as long as a living process holds it.
 * `onWait` is called once when waiting begins.
 */
export async function withLock(path, work, onWait = () => {}) {
  mkdirSync(dirname(path), { recursive: true });
  let waiting = false;
  for (;;) {
    try {
      writeFileSync(path, `${process.pid} ${startTime(process.pid)}`, { flag: "wx" });
      break;
    } catch (error) {
      if (error.code !== "EEXIST") throw error;
      if (!ownerIsAlive(path)) {
        rmSync(path, { force: true });
        continue;
      }
      if (!waiting) onWait();
      waiting = true;
      await delay(200);
    }
  }
  try {
    return await work();
  } finally {
    rmSync(path, { force: true });
  }
}
