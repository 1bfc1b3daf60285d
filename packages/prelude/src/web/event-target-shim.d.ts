/** The part of the package that is used; its own declarations are not reachable under its exports map. */

declare module "event-target-shim" {
  export class Event {
    constructor(type: string, init?: { bubbles?: boolean; cancelable?: boolean; composed?: boolean });
    readonly type: string;
  }
  export class EventTarget {
    addEventListener(type: string, callback: unknown, options?: unknown): void;
    removeEventListener(type: string, callback: unknown, options?: unknown): void;
    dispatchEvent(event: Event): boolean;
  }
  export function setErrorHandler(handler: (error: unknown) => void): void;
  export function setWarningHandler(handler: (warning: unknown) => void): void;
  export function getEventAttributeValue(target: EventTarget, type: string): unknown;
  export function setEventAttributeValue(target: EventTarget, type: string, value: unknown): void;
}
