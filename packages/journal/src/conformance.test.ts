// Both stores against the one suite that any store must pass.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll } from "vitest";
import { storeConformance } from "../testing/conformance.js";
import { MemoryStore } from "./memory/store.js";
import { openSqliteStore } from "./sqlite/store.js";

const folder = mkdtempSync(join(tmpdir(), "flowcell-store-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

let stores = 0;
storeConformance("memory", async () => new MemoryStore());
storeConformance("sqlite", () => {
  stores += 1;
  // The suite is about rules; what survives a crash of the machine is not among them.
  return openSqliteStore({ path: join(folder, `${stores}.db`), durability: "normal" });
});
