/** Runs of flows: the state machine, the engine that drives it, what is installed and when it runs. */
export {};
