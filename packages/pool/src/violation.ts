/**
 * What no correct worker does, as found by those who judge its messages; whoever catches it kills the worker. Errors of the
 * form of messages are protocol's ProtocolError.
 */
export type ViolationReason = "bad_position" | "not_granted" | "too_many_calls" | "unexpected_message";

export class Violation extends Error {
  override readonly name = "Violation";
  /** A reason of the outcome table for `violation`. */
  readonly reason: ViolationReason;

  constructor(reason: ViolationReason, message: string) {
    super(message);
    this.reason = reason;
  }
}
