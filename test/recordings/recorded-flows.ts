// What the recordings are of. Changing a flow here changes nothing that is recorded: recordings have scripts of their own.
import type { FlowService } from "@flowcell/flows";
import { type FlowFiles, finished, suspended } from "../flows/laboratory.js";

export interface RecordedFlow {
  readonly name: string;
  readonly flow: FlowFiles;
  readonly input: object;
  /** Until it is where it shall be recorded. */
  drive(service: FlowService, runId: string): Promise<void>;
}

const net = [{ host: "127.0.0.1", methods: ["GET", "POST"] }];

export const recorded: readonly RecordedFlow[] = [
  {
    name: "every-effect",
    flow: {
      manifest: { id: "every-effect", grants: { net, kv: { maxBytes: 1000 } } },
      script: `export default async function ({ base, values }, host) {
        await host.kv.set("count", 1);
        const count = await host.kv.get("count");
        await host.kv.compareAndSet("count", count, count + 1);
        const read = await (await fetch(base + "/")).text();
        const keyed = await (await fetch(base + "/", { method: "POST", body: read, idempotencyKey: "k" })).text();
        const once = await (await fetch(base + "/", { method: "POST", body: new Uint8Array([1, 2, 3]) })).text();
        await host.sleep(1500);
        await new Promise((resolve) => setTimeout(resolve, 5));
        const signal = await host.signal.wait("go");
        console.log("values", values);
        return { count, read, keyed, once, signal, at: new Date() };
      }`,
    },
    input: { values: { nested: [1, "two", null], text: "naïve ✓" } },
    drive: async (service, runId) => {
      await service.signal({ runId, name: "go", value: new Map([["a", 1n]]), by: "recorder" });
      await finished(service, runId);
    },
  },
  {
    name: "races",
    flow: {
      manifest: { id: "races", grants: { net, kv: { maxBytes: 1000 } } },
      script: `export default async function ({ base }, host) {
        const controller = new AbortController();
        const slow = host.sleep(60000, { signal: controller.signal }).catch((error) => error.name);
        const first = await Promise.race([fetch(base + "/").then(() => "fetch"), host.kv.get("a").then(() => "kv")]);
        controller.abort();
        const any = await Promise.any([Promise.reject(new Error("no")), host.kv.list().then((keys) => keys.length)]);
        const settled = await Promise.allSettled([host.kv.set("a", Math.random()), fetch("http://192.0.2.1/"), slow]);
        let ticks = 0;
        const timer = setInterval(() => { ticks += 1; }, 2);
        await Promise.all(Array.from({ length: 40 }, (_, n) => host.kv.set("k" + n, n)));
        while (ticks < 3) await new Promise((resolve) => setTimeout(resolve, 1));
        clearInterval(timer);
        host.kv.get("k1");
        return [first, any, settled.map(({ status }) => status), crypto.randomUUID()];
      }`,
    },
    input: {},
    drive: async (service, runId) => {
      await finished(service, runId);
    },
  },
  {
    name: "failing",
    flow: {
      manifest: { id: "failing", grants: { kv: { maxBytes: 1000 } } },
      script: `export default async function (input, host) {
        await host.kv.set("a", 1);
        const cause = new TypeError("the cause");
        throw new Error("it fails", { cause });
      }`,
    },
    input: {},
    drive: async (service, runId) => {
      await finished(service, runId);
    },
  },
  {
    name: "waiting",
    flow: {
      manifest: { id: "waiting", grants: { kv: { maxBytes: 1000 } } },
      script: `export default async function (input, host) {
        await host.kv.set("asked", Date.now());
        const { approved } = await host.approval.request("May it?", { detail: { cost: 12n } });
        return approved;
      }`,
    },
    input: {},
    drive: async (service, runId) => {
      await suspended(service, runId);
    },
  },
];
