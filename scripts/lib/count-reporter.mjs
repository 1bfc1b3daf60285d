// A vitest reporter whose only output are the last lines of the run: every test that passed on its second try only, and
// `N passed, N failed` (`, N skipped`). Printed when the process exits, after every other reporter and warning, so that
// they are the last lines there are.
export default class CountReporter {
  onTestRunEnd(modules, unhandledErrors) {
    let passed = 0;
    let failed = unhandledErrors.length;
    let skipped = 0;
    const flaky = [];
    for (const module of modules) {
      // A file that cannot be loaded has no tests to fail, yet it is a failure.
      failed += module.errors().length;
      for (const test of module.children.allTests()) {
        const state = test.result().state;
        if (test.diagnostic()?.flaky === true) {
          const why = test.result().errors?.[0];
          flaky.push(`${module.relativeModuleId} > ${test.fullName}\n${why?.stack ?? why?.message ?? ""}`);
        }
        if (state === "passed") passed += 1;
        else if (state === "skipped") skipped += 1;
        else failed += 1;
      }
    }
    if (passed + failed === 0) failed = 1;
    const line = `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ""}`;
    process.once("exit", () => {
      if (failed > 0) process.exitCode = 1;
      for (const name of flaky) process.stdout.write(`flaky, passed on the second try: ${name}\n`);
      process.stdout.write(`${line}\n`);
    });
  }
}
