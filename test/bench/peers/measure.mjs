// One peer of codemode, measured as flowcell is: a fresh sandbox for `return 1+1`, and 100 awaited calls of a tool. Run with the
// peer's name in this folder, where the peers are installed; prints one JSON object. Isolation is the peer's own: none of
// these confines a process.
const echo = async (value) => value;

const peers = {
  /** A worker thread for each script. */
  run: async () => {
    const { run } = await import("run");
    return async (code) => {
      const result = await run({
        source: code,
        hostFunctions: { tools: { echo } },
        limits: { maxBridgeRequests: 1000 },
      });
      if (result.status !== "completed") throw new Error(JSON.stringify(result));
    };
  },
  /** QuickJS in WebAssembly, in the caller's own thread. */
  sebastianwessel: async () => {
    const { loadQuickJs } = await import("@sebastianwessel/quickjs");
    const { default: variant } = await import("@jitl/quickjs-ng-wasmfile-release-sync");
    const { runSandboxed } = await loadQuickJs(variant);
    return async (code) => {
      const source = `const tools = env.tools; export default await (async () => { ${code} })()`;
      const result = await runSandboxed(({ evalCode }) => evalCode(source), { env: { tools: { echo } } });
      if (!result.ok) throw new Error(JSON.stringify(result.error));
    };
  },
  /** A V8 isolate in the same process. */
  "isolated-vm": async () => {
    const { default: ivm } = await import("isolated-vm");
    return async (code) => {
      const isolate = new ivm.Isolate({ memoryLimit: 64 });
      try {
        const context = await isolate.createContext();
        await context.global.set("echo", new ivm.Reference(echo));
        const source = `const tools = { echo: (value) => echo.apply(undefined, [value], { result: { promise: true, copy: true } }) };
          (async () => { ${code} })()`;
        await context.eval(source, { promise: true, copy: true, timeout: 60_000 });
      } finally {
        isolate.dispose();
      }
    };
  },
};

function median(samples) {
  const sorted = [...samples].sort((a, b) => a - b);
  return sorted[Math.ceil(sorted.length / 2) - 1];
}

async function timed(work) {
  const start = process.hrtime.bigint();
  await work();
  return Number(process.hrtime.bigint() - start) / 1e6;
}

const execute = await peers[process.argv[2]]();
for (let i = 0; i < 10; i += 1) await execute("return 1+1");
const times = [];
for (let i = 0; i < 50; i += 1) {
  times.push(await timed(() => execute("return 1+1")));
  // As between two scripts of an agent.
  await new Promise((resolve) => setTimeout(resolve, 30));
}
const hundred = [];
for (let i = 0; i < 20; i += 1) {
  hundred.push(await timed(() => execute("for (let i = 0; i < 100; i++) await tools.echo(i); return 1")));
}
process.stdout.write(JSON.stringify({ warmP50: median(times), hundredCallsP50: median(hundred) }), () =>
  process.exit(0),
);
