// Lets Node load @cloudflare/codemode, which imports `cloudflare:workers`:
//
//     node --import flowcell/cloudflare-node app.mjs
//
// The classes that the package extends become empty ones; nothing else of Cloudflare's runtime is there, so that what needs
// it fails where it is used. A static import of this file beside one of the package would come too late: imports are
// resolved before any of them runs.
import * as nodeModule from "node:module";

const specifier = "cloudflare:workers";
const classes = ["DurableObject", "RpcTarget", "WorkerEntrypoint"];
const source = classes.map((name) => `export class ${name} {}`).join("\n");
const url = `data:text/javascript,${encodeURIComponent(source)}`;

if (typeof nodeModule.registerHooks === "function") {
  nodeModule.registerHooks({
    resolve: (wanted, context, next) =>
      wanted === specifier ? { url, format: "module", shortCircuit: true } : next(wanted, context),
  });
} else {
  // Before Node 22.15, hooks are a module of their own, on a thread of their own.
  const answer = JSON.stringify({ url, format: "module", shortCircuit: true });
  const hooks = `export const resolve = async (wanted, context, next) =>
    wanted === ${JSON.stringify(specifier)} ? ${answer} : next(wanted, context);`;
  nodeModule.register(`data:text/javascript,${encodeURIComponent(hooks)}`);
}
