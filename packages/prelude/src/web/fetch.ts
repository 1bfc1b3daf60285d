/**
 * `fetch`, which is `host.fetch`: a host call in the words of the web. The call named "fetch" has one argument,
 *   { url, method, headers: [[name, value], …], redirect: "follow" | "error" | "manual",
 *     body?: Uint8Array, idempotencyKey?: string }
 * and its outcome is
 *   { status, statusText, headers: [[name, value], …], url, redirected, body: Uint8Array | null }.
 * What the parent refuses or cannot reach arrives as a HostError. Without the grant every fetch fails with `denied`.
 */

import { trimming } from "../boundary.js";
import { callHost } from "../calls.js";
import { denied, isGranted } from "../host-object.js";
import { bodyOf } from "./body.js";
import { Request, type RequestInit } from "./request.js";
import { type ReceivedResponse, type Response, responseFrom } from "./response.js";

export async function fetch(input: unknown, init?: RequestInit): Promise<Response> {
  if (!isGranted("fetch")) throw denied("fetch");
  const [options, signal] = trimming(() => callOf(new Request(input, init)));
  const outcome = await callHost("fetch", '"fetch"', [options, signal], new Error());
  return responseFrom(outcome as ReceivedResponse); // TRUST: the parent's own function made it
}

/** What the host function is given, and the signal. */
function callOf(request: Request): readonly [options: object, signal: AbortSignal] {
  const body = bodyOf(request);
  const options = {
    url: request.url,
    method: request.method,
    headers: [...request.headers],
    redirect: request.redirect,
    ...(body.isNull ? {} : { body: body.take("fetch") }),
    ...(request.idempotencyKey === undefined ? {} : { idempotencyKey: request.idempotencyKey }),
  };
  return [options, request.signal];
}
