/**
 * Mistakes of whoever types: one line that says what is wrong and what to do, exit code 2, no stack. Thrown inside the
 * command line, caught by `main`.
 */
export class UsageError extends Error {
  override readonly name = "UsageError";
  /** `request`, `limits` or `input`: the code in the object that `--json` prints. */
  readonly code: "request" | "limits" | "input" | "input_too_large";

  constructor(code: UsageError["code"], message: string) {
    super(message);
    this.code = code;
  }
}
