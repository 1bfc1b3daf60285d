// Two operations of the service at once: each is decided on what the other one left, whichever comes first.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test, vi } from "vitest";
import { begin, install, openService, settle, store } from "./testing/service-stage.js";

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

test("a flow that is disabled while an event is handed out gets no run of it", async () => {
  const first = await openService();
  const trigger = { kind: "event", name: "order.created" };
  for (const id of ["a", "b"]) await install(first.service, id, { trigger });
  await first.service.close();
  // This one has read no manifest yet.
  const { service } = await openService();
  const hold = new Hold();
  const version = store.version.bind(store);
  vi.spyOn(store, "version").mockImplementation(async (flow, hash) => {
    const found = await version(flow, hash);
    if (flow === "b") await hold.pass();
    return found;
  });
  const emitting = service.emit({ name: "order.created", eventId: "e", by: "shop" });
  await hold.reached;
  await service.disable("a", "op", "a bug");
  hold.letGo();
  expect(await emitting).toHaveLength(1);
  expect((await service.runs({})).map(({ flow }) => flow)).toEqual(["b"]);
});

test("a run that waits for its turn is cancelled once, and everybody who asks is told so", async () => {
  const { service } = await openService({ activeMost: 1 });
  await install(service, "f", { concurrency: { limit: 1 } });
  await begin(service, "f");
  const waiting = await begin(service, "f");
  expect(await Promise.all(["me", "you"].map((by) => service.cancel(waiting, by)))).toEqual([true, true]);
  expect(await service.run(waiting)).toMatchObject({ status: "cancelled", error: { code: "caller" } });
  expect(await service.cancel(waiting, "me")).toBe(false);
});
