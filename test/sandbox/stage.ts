// A folder that every user may enter, with the sandbox package as one file and copies of the native products, and
// scripts run in it as root and as an ordinary user: a clone may lie where user 65534 cannot go.
import { spawn } from "node:child_process";
import { chmodSync, copyFileSync, cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buildSync } from "esbuild";
import { build, nobody, product, root } from "../confinement/harness.js";

/** Who a script runs as: the user of the tests, and an ordinary one if that is root. */
export interface ScriptUser {
  readonly name: string;
  readonly isRoot: boolean;
  readonly ids: { readonly uid: number; readonly gid: number } | null;
}

export function scriptUsers(): readonly ScriptUser[] {
  const ordinary: ScriptUser = { name: "an ordinary user", isRoot: false, ids: { uid: nobody, gid: nobody } };
  if (process.getuid?.() !== 0) return [{ ...ordinary, ids: null }];
  return [{ name: "root", isRoot: true, ids: null }, ordinary];
}

/** Products by their place in the build folder. */
export class SandboxStage {
  readonly folder: string;
  #scripts = 0;

  /** `targets` are built if they are stale; `products` are copied. */
  constructor(targets: readonly string[], products: readonly string[]) {
    build(...targets);
    this.folder = mkdtempSync(join(tmpdir(), "flowcell-sandbox-"));
    chmodSync(this.folder, 0o755);
    buildSync({
      entryPoints: [join(root, "test/sandbox/entry.ts")],
      outfile: join(this.folder, "sandbox.mjs"),
      bundle: true,
      platform: "node",
      format: "esm",
      external: ["koffi"],
      alias: {
        "@flowcell/native": join(root, "packages/native/src/index.ts"),
        "@flowcell/protocol": join(root, "packages/protocol/src/index.ts"),
      },
    });
    for (const name of ["koffi", "@koromix"]) {
      cpSync(join(root, "node_modules", name), join(this.folder, "node_modules", name), { recursive: true });
    }
    for (const folder of ["build", "build/bin", "build/lib", "build/test"])
      mkdirSync(join(this.folder, folder));
    for (const path of products) copyFileSync(product(path), join(this.folder, "build", path));
  }

  /** The copy of a product. */
  product(path: string): string {
    return join(this.folder, "build", path);
  }

  /**
   * Runs the body of an async function with the exports of entry.ts in scope and `stage` = the absolute build folder;
   * resolves to what it returned, by way of JSON.
   */
  run(user: ScriptUser, body: string): Promise<unknown> {
    this.#scripts += 1;
    const file = join(this.folder, `script-${this.#scripts}.mjs`);
    const text = [
      'import * as sandbox from "./sandbox.mjs";',
      `const stage = ${JSON.stringify(join(this.folder, "build"))};`,
      `const launcherPath = ${JSON.stringify(this.product("lib/launcher.so"))};`,
      "const result = await (async () => {",
      body,
      "})();",
      "process.stdout.write(JSON.stringify(result));",
    ].join("\n");
    writeFileSync(file, text, { mode: 0o644 });
    return new Promise((resolve, reject) => {
      const child = spawn(process.execPath, [file], {
        cwd: this.folder,
        stdio: ["ignore", "pipe", "pipe"],
        ...(user.ids ?? {}),
      });
      const output: Buffer[] = [];
      const complaint: Buffer[] = [];
      child.stdout.on("data", (bytes: Buffer) => output.push(bytes));
      child.stderr.on("data", (bytes: Buffer) => complaint.push(bytes));
      child.on("error", reject);
      child.on("close", (code) => {
        if (code === 0) resolve(JSON.parse(Buffer.concat(output).toString("utf8")));
        else reject(new Error(`exit ${code}\n${Buffer.concat(complaint).toString("utf8")}`));
      });
    });
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}
