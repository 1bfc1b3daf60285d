/**
 * What an activation is to every part of the runtime: its number, limits and clock, and whether it has ended. Nothing here
 * is ever reset: the worker drops the image's changed pages after each activation, so these are the initial values again.
 */

/** Limits that the runtime enforces itself, from the header of Activate. */
export interface GuestLimits {
  readonly hostCalls: number;
  readonly inFlight: number;
  readonly outputBytes: number;
  readonly resultBytes: number;
  readonly valueBytes: number;
  readonly bodyBytes: number;
}

export let activation = -1;
/** The guest's time, epoch milliseconds. Stands still but for Deliver. */
export let clock = 0;
export let startClock = 0;
export let seed = "";
export let limits: GuestLimits = {
  hostCalls: 0,
  inFlight: 0,
  outputBytes: 0,
  resultBytes: 0,
  valueBytes: 0,
  bodyBytes: 0,
};
/** After Finished or Refused nothing is sent any more. */
export let ended = true;

export interface ActivationFacts {
  readonly activation: number;
  readonly clock: number;
  readonly seed: string;
  readonly limits: GuestLimits;
}

export function beginActivation(facts: ActivationFacts): void {
  activation = facts.activation;
  clock = facts.clock;
  startClock = facts.clock;
  seed = facts.seed;
  limits = facts.limits;
  ended = false;
}

/** The clock never runs backwards, whatever the parent's does. */
export function moveClock(to: number): void {
  if (to > clock) clock = to;
}

export function endActivation(): void {
  ended = true;
}
