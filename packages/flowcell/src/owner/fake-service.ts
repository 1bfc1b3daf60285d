/**
 * A service whose methods a unit test gives one by one; the others fail the test that calls them. For tests only.
 */

import type { FlowService } from "@flowcell/flows";

export function fakeService(methods: Partial<FlowService>): FlowService {
  const absent = (name: string) => (): never => {
    throw new Error(`the test gives no ${name}`);
  };
  const never = new Promise<unknown>(() => undefined);
  return {
    install: absent("install"),
    approve: absent("approve"),
    reject: absent("reject"),
    revoke: absent("revoke"),
    enable: absent("enable"),
    disable: absent("disable"),
    list: absent("list"),
    show: absent("show"),
    start: absent("start"),
    wait: absent("wait"),
    run: absent("run"),
    runs: absent("runs"),
    history: absent("history"),
    quarantined: absent("quarantined"),
    cancel: absent("cancel"),
    signal: absent("signal"),
    answer: absent("answer"),
    reconcile: absent("reconcile"),
    replay: absent("replay"),
    emit: absent("emit"),
    drain: async () => undefined,
    close: async () => undefined,
    failed: never,
    ...methods,
  };
}
