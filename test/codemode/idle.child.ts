// A program that executes one script and has nothing else to do: it must end by itself.
import { createCodemode } from "../../packages/codemode/src/index.js";

async function main(): Promise<void> {
  const codemode = await createCodemode({ tools: { add: (a: number, b: number) => a + b } });
  const result = await codemode.execute("return await tools.add(1, 2)");
  console.log(JSON.stringify(result.ok ? result.value : result.error));
}

void main();
