// Two operations of the service at once: each is decided on what the other one left, whichever comes first.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test, vi } from "vitest";
import { install, openService, settle, store } from "./testing/service-stage.js";

const root = mkdtempSync(join(tmpdir(), "races-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

/** Holds up what is asked of the store until the test lets go. */
class Hold {
  readonly reached: Promise<void>;
  #reached: () => void = () => undefined;
  #go: () => void = () => undefined;
  readonly #gate: Promise<void>;

  constructor() {
    this.reached = new Promise((resolve) => {
      this.#reached = resolve;
    });
    this.#gate = new Promise((resolve) => {
      this.#go = resolve;
    });
  }

  async pass(): Promise<void> {
    this.#reached();
    await this.#gate;
  }

  letGo(): void {
    this.#go();
  }
}

function folder(id: string, script: string, manifest: object = {}): string {
  const made = mkdtempSync(join(root, "flow-"));
  writeFileSync(join(made, "flow.json"), JSON.stringify({ format: 1, id, ...manifest }));
  writeFileSync(join(made, "flow.js"), script);
  return made;
}

test("a flow that is disabled while a version is installed stays disabled, in memory and in the store", async () => {
  const { service } = await openService();
  await install(service, "f");
  const hold = new Hold();
  const versions = store.versions.bind(store);
  vi.spyOn(store, "versions").mockImplementationOnce(async (flow) => {
    const found = await versions(flow);
    await hold.pass();
    return found;
  });
  const installing = service.install({ folder: folder("f", "export default () => 2;"), by: "author" });
  await hold.reached;
  const disabling = service.disable("f", "op", "a bug");
  await settle();
  hold.letGo();
  await Promise.all([installing, disabling]);
  const [report] = await service.list();
  expect(report).toMatchObject({ enabled: false, disabledReason: "a bug" });
  expect(report?.versions).toHaveLength(2);
  expect(await store.flow("f")).toMatchObject({ enabled: false });
  await expect(service.start({ flow: "f", by: "me" })).rejects.toMatchObject({ code: "denied" });
});
