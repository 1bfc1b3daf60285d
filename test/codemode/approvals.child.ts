// A program with a store in a file: executes a script that needs an approval, or answers one of an earlier process. What its
// tools do is appended to a file, so that the test sees what happened however often it was asked for.
import { appendFileSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { openSqliteStore } from "@flowcell/journal";
import { createCodemode, type ExecuteResult } from "../../packages/codemode/src/index.js";

const [folder = "", what, runId = "", callId = ""] = process.argv.slice(2);
const log = join(folder, "log.txt");

function effect(text: string): string {
  appendFileSync(log, `${text}\n`);
  return text;
}

function print(result: ExecuteResult): void {
  const { status } = result;
  console.log(JSON.stringify(result.ok ? { status, value: result.value } : { status, error: result.error }));
}

async function main(): Promise<void> {
  if (what === "log") {
    process.stdout.write(readFileSync(log, "utf8"));
    return;
  }
  const threadPath = fileURLToPath(new URL("../../packages/journal/dist/store-thread.cjs", import.meta.url));
  const store = await openSqliteStore({ path: join(folder, "store.sqlite"), threadPath, heldMs: 10_000 });
  const codemode = await createCodemode({
    store,
    tools: {
      before: { description: "Before.", execute: ({ n }: { n: number }) => effect(`before ${n}`) },
      pay: {
        description: "Pays.",
        inputSchema: { type: "object", properties: { cents: { type: "integer" } }, required: ["cents"] },
        needsApproval: true,
        execute: ({ cents }: { cents: number }) => effect(`paid ${cents}`),
      },
    },
  });
  if (what === "execute") {
    const result = await codemode.execute(
      "const a = await tools.before({ n: 1 }); return [a, await tools.pay({ cents: 5 })]",
    );
    console.log(JSON.stringify({ runId: result.runId, callId: result.pending[0]?.callId }));
    // Until it is killed.
    setInterval(() => undefined, 1000);
    return;
  }
  print(await codemode.resume(runId, [{ callId, approve: what === "resume" }]));
  await codemode.close();
  await store.close();
}

void main();
