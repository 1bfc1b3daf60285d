/**
 * One connection for one request: TCP to an address that was checked, then TLS for https. Nothing here is shared between
 * requests: no pool, no TLS session. Called by `exchange.ts`, which owns the socket as soon as it is returned.
 *
 * Kept true: no name is resolved here; the addresses are the target's. The peer's address is compared with them before a
 * byte is sent. The certificate is always checked, whatever NODE_TLS_REJECT_UNAUTHORIZED says; no proxy is ever used.
 */

import { connect as connectTcp, isIP, type Socket } from "node:net";
import { connect as connectTls, createSecureContext, rootCertificates, type SecureContext } from "node:tls";
import { canonicalAddress } from "./address.js";
import { FetchFailure } from "./failure.js";
import type { Target } from "./target.js";

/** Which certificates are trusted: those of Node (and NODE_EXTRA_CA_CERTS); with `ca`, those that Node brings and `ca`. */
export function trust(ca: string | undefined): SecureContext {
  const minVersion = "TLSv1.2";
  return createSecureContext(
    ca === undefined ? { minVersion } : { minVersion, ca: [...rootCertificates, ca] },
  );
}

export interface Opening {
  /** The connection is there and nothing was sent. What happens to it from now on is told by its own events. */
  readonly onOpen: (socket: Socket) => void;
  readonly onError: (error: unknown) => void;
}

/** Stops and closes what `openConnection` began. */
export type Close = () => void;

export function openConnection(target: Target, secureContext: () => SecureContext, opening: Opening): Close {
  const { host, port, addresses, url } = target;
  const tcp = connectTcp({
    host: addresses[0] ?? host,
    port,
    noDelay: true,
    ...(addresses.length > 1 ? { host, lookup: pinned(addresses), autoSelectFamily: true } : {}),
  });
  const sockets: Socket[] = [tcp];
  let isOpen = false;
  const opened = (socket: Socket): void => {
    isOpen = true;
    opening.onOpen(socket);
  };
  const failed = (error: unknown): void => {
    if (!isOpen) opening.onError(error);
  };
  tcp.on("error", failed);
  tcp.once("connect", () => {
    const peer = canonicalAddress(tcp.remoteAddress ?? "");
    if (peer === undefined || !addresses.some((address) => canonicalAddress(address) === peer)) {
      opening.onError(
        new FetchFailure("internal", "the connection went to another address than was checked"),
      );
      return;
    }
    if (url.protocol !== "https:") {
      opened(tcp);
      return;
    }
    const tls = connectTls({
      socket: tcp,
      host,
      // RFC 6066 lets no address and no dot at the end into the server's name; an address is checked by `host`.
      servername: isIP(host) === 0 ? host.replace(/\.$/, "") : "",
      ALPNProtocols: ["http/1.1"],
      rejectUnauthorized: true,
      secureContext: secureContext(),
    });
    sockets.push(tls);
    tls.on("error", failed);
    tls.once("secureConnect", () => opened(tls));
  });
  return () => {
    for (const socket of sockets) socket.destroy();
  };
}

type Found = (error: null, found: string | { address: string; family: number }[], family?: number) => void;

/** A resolver that knows one answer. */
function pinned(addresses: readonly string[]) {
  return (_host: string, { all }: { all?: boolean | undefined }, found: Found): void => {
    const list = addresses.map((address) => ({ address, family: isIP(address) }));
    const [first = { address: "", family: 0 }] = list;
    if (all === true) found(null, list);
    else found(null, first.address, first.family);
  };
}
