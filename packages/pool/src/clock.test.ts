// The system's clock, in a process in which nothing else happens: a test runner's own events would hide what is tested.
import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { buildSync } from "esbuild";
import { describe, expect, test } from "vitest";

const { outputFiles } = buildSync({
  entryPoints: [fileURLToPath(new URL("./clock.ts", import.meta.url))],
  bundle: true,
  format: "esm",
  platform: "node",
  write: false,
});
const module = `data:text/javascript;base64,${Buffer.from(outputFiles[0]?.contents ?? []).toString("base64")}`;

/** What a process prints that runs the script and ends when nothing keeps it. */
function run(script: string): string {
  const text = `const { systemClock, KeepAlive } = await import(${JSON.stringify(module)}); ${script}`;
  return execFileSync(process.execPath, ["--input-type=module", "--eval", text], { encoding: "utf8" }).trim();
}

describe("the system's clock", () => {
  test("comes to what is due soon although no other event comes", () => {
    // The process is held as by a pool with a waiter. Were the next turn to wait for an event, the test's own timer would
    // bring the first one.
    const script = `
      const alive = new KeepAlive(); alive.hold();
      const late = setTimeout(() => {}, 20_000);
      systemClock.after(5, () => systemClock.soon(() => {
        console.log(performance.now() < 10_000 ? "soon" : "late"); clearTimeout(late); alive.release();
      }));`;
    expect(run(script)).toBe("soon");
  });

  test("keeps no process alive that waits for a timer of it alone", () => {
    expect(run('systemClock.after(20_000, () => console.log("fired")); console.log("ended");')).toBe("ended");
  });

  test("keeps a process alive while somebody holds, and no longer", () => {
    const script = `
      const alive = new KeepAlive(); alive.hold();
      systemClock.after(30, () => { console.log("fired"); alive.release(); });`;
    expect(run(script)).toBe("fired");
  });
});
