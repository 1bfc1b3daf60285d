// Runs the same scripts in the reference executor of @cloudflare/codemode and in a FlowcellExecutor, and prints as JSON how they
// differ. The reference's own worker is one that this process evaluates: its scripts are those below, nobody else's. Run
// with the loader, by cloudflare-package.test.ts.
import { inspect, isDeepStrictEqual } from "node:util";
import { DynamicWorkerExecutor } from "@cloudflare/codemode";
import { FlowcellExecutor } from "@flowcell/flowcell/cloudflare";

/** A loader of workers in this very process: the generated module, as Cloudflare's runtime would evaluate it. */
const here = {
  load: ({ mainModule, modules }) => ({
    getEntrypoint: () => ({
      async evaluate(dispatchers, connectors) {
        const kept = { ...console };
        try {
          const url = `data:text/javascript,${encodeURIComponent(modules[mainModule])}#${Math.random()}`;
          const module = await import(url);
          return structuredClone(await new module.default().evaluate(dispatchers, connectors));
        } finally {
          Object.assign(console, kept);
        }
      },
    }),
  }),
};

const fns = {
  echo: async (...args) => args,
  "kebab-name": async (argument) => ({ got: argument }),
  fails: async () => {
    throw new RangeError("no such thing");
  },
  failsWithText: () => Promise.reject("a text"),
  bytes: async () => new Uint8Array([1, 2, 3]),
  buffer: async () => new Uint8Array([4, 5]).buffer,
  date: async () => ({ at: new Date(0), gone: undefined, list: [undefined] }),
  nothing: async () => undefined,
};
const github = {
  name: "github",
  binding: { callTool: async (method, args) => ({ method, args: args ?? "none" }) },
};
const paused = { name: "paused", binding: { callTool: async () => ({ __codemode_control__: "pause" }) } };
const refused = {
  name: "refused",
  binding: { callTool: async () => ({ __codemode_control__: "error", message: "not today" }) },
};
const connectors = [github, paused, refused];
const prelude = "codemode.twice = async (f) => [await f(), await f()]; const shared = 'from the prelude';";

const codes = [
  "async () => 1 + 1",
  "return 1",
  "const x = 40; x + 2",
  "",
  "```js\nasync () => 'fenced'\n```",
  "```\nreturn 'plain fence'\n```",
  "export default async () => 'module'",
  "export default function () { return 'default function' }",
  "async function work() { return 'named' }",
  "async () => undefined",
  "async () => ({ nested: { list: [1, null, 'x'] } })",
  "async () => new Map([['k', new Date(0)]])",
  "async () => await codemode.echo(1, 'two', { three: 3 })",
  "async () => await codemode.echo()",
  "async () => await codemode.echo(undefined, null)",
  "async () => await codemode.echo(new Date(0), { u: undefined, l: [undefined] })",
  "async () => await codemode.echo({ toJSON: () => 'as JSON' })",
  "async () => await codemode.echo(new Uint8Array([1, 2]), new Uint8Array([3]).buffer, new Uint16Array([258]))",
  "async () => await codemode.kebab_name({ a: 1 })",
  "async () => [await codemode.bytes(), new Uint8Array(await codemode.buffer())]",
  "async () => await codemode.date()",
  "async () => await codemode.nothing()",
  "async () => await codemode.fails()",
  "async () => { try { await codemode.fails() } catch (e) { return [e instanceof Error, e.message] } }",
  "async () => { try { await codemode.failsWithText() } catch (e) { return e.message } }",
  "async () => await codemode.unknownTool({})",
  "async () => await codemode.echo(10n).catch((e) => e.name)",
  "async () => (await Promise.allSettled([codemode.echo(1), codemode.fails()])).map((s) => s.status)",
  "async () => await github.list({ a: 1 }, 'dropped')",
  "async () => await github.anything()",
  "async () => await paused.x({})",
  "async () => await refused.x({})",
  "async () => await codemode.twice(() => codemode.echo(7))",
  "async () => shared",
  "async () => { console.log('a', 1, true); console.warn('w'); console.error('e'); return 'logged' }",
  "async () => { console.log('before'); throw new Error('after') }",
  "async () => { codemode.echo(1); return 'late' }",
  "throw new Error('from a body')",
  "async () => typeof codemode.echo",
];
const names = [
  [{ name: "Promise", fns: {} }],
  [{ name: "__connectors", fns: {} }],
  [{ name: "not-valid", fns: {} }],
  [{ name: "", fns: {} }],
  [
    { name: "a", fns: {} },
    { name: "a", fns: {} },
  ],
  [{ name: "p", fns: { "a-b": fns.echo, a_b: fns.echo } }],
];
const connectorNames = [
  [[], [{ name: "console", binding: github.binding }]],
  [[], [{ name: "1a", binding: github.binding }]],
  [[{ name: "github", fns: {} }], [github]],
];

/** Where flowcell means to be better: thrown values without a message, which the reference takes for successes or loses. */
const better = [
  "async () => { throw 'a text' }",
  "async () => { throw new Error('') }",
  "async () => { throw null }",
];

const reference = new DynamicWorkerExecutor({ loader: here, timeout: 5000 });
const flowcell = new FlowcellExecutor({ isolation: "reset" });

async function outcome(executor, ...args) {
  try {
    return await executor.execute(...args);
  } catch (error) {
    return { threw: String(error) };
  }
}

const compared = [];
async function compare(what, ...args) {
  const [theirs, ours] = [await outcome(reference, ...args), await outcome(flowcell, ...args)];
  const equal = isDeepStrictEqual(theirs, ours);
  compared.push({ what, equal, theirs: inspect(theirs), ours: inspect(ours) });
}

const providers = [{ name: "codemode", fns, prelude }];
for (const code of codes) await compare(code, code, providers, { connectors });
for (const list of names) await compare(inspect(list), "async () => 1", list);
for (const [list, given] of connectorNames)
  await compare(inspect(given), "async () => 1", list, { connectors: given });
const apart = [];
for (const code of better) {
  const [theirs, ours] = [
    await outcome(reference, code, providers),
    await outcome(flowcell, code, providers),
  ];
  apart.push({ code, theirs: inspect(theirs), ours: inspect(ours) });
}
await flowcell.close();
console.log(JSON.stringify({ compared, apart }));
