// The way to a store that somebody holds: an owner that ends is waited for as long as it may take; one that neither answers
// nor ends is told of.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { MemoryStore, StoreHeld } from "@flowcell/journal";
import { afterAll, expect, test } from "vitest";
import { connect } from "./connect.js";
import { openDataFolder } from "./data-folder.js";
import { fakeService } from "./fake-service.js";
import { commandPatienceMs, handoverMs, type OwnerParts } from "./open.js";

const scratch = mkdtempSync(join(tmpdir(), "connect-"));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));
const folder = openDataFolder(scratch, false);

function partsWith(openStore: OwnerParts["openStore"]): OwnerParts {
  return {
    openStore,
    openPool: () => ({
      activate: async () => Promise.reject(new Error("nothing is activated")),
      health: () => ({ waiting: 0 }),
      close: async () => undefined,
    }),
    fingerprint: () => "f",
    createService: () => fakeService({ list: async () => [] }),
    deniedPaths: [],
    environment: {},
    onBug: (error) => {
      throw error;
    },
  };
}

test("a store that is let go of in the meantime is had", async () => {
  let tries = 0;
  const openStore: OwnerParts["openStore"] = async () => {
    if (tries++ < 3) throw new StoreHeld("held");
    return new MemoryStore();
  };
  const connection = await connect(folder, "nothing", partsWith(openStore));
  expect(connection.owner).not.toBeNull();
  await connection.close();
});

test("a holder that neither answers nor ends is told of, with how long it was waited for", async () => {
  const openStore: OwnerParts["openStore"] = async () => Promise.reject(new StoreHeld("held"));
  const held = connect(folder, "nothing", partsWith(openStore), 200);
  await expect(held).rejects.toThrow(/did not answer at its socket for 0\.2 s/);
  await expect(held).rejects.toBeInstanceOf(StoreHeld);
});

test("an owner that ends is given what its own end may take", () => {
  // Answers of the socket and running activations, one after the other; workers and store after that.
  expect(handoverMs).toBeGreaterThanOrEqual(2 * commandPatienceMs + 10_000);
});
