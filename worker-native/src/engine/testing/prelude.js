// The prelude of the engine's own tests: it exports functions that show what reached them, and keeps no state but
// what the tests look for after a reset.
(() => {
  const native = globalThis.__flowcell_native;
  delete globalThis.__flowcell_native;
  const { send, lastFailure, cpuUs } = native;
  const rejections = [];
  return {
    activate: (text) => `activate ${text}`,
    start: (fn) => fn({ send, lastFailure, cpuUs, rejections }),
    refuse: (error) => `refuse ${error.name}: ${error.message}`,
    deliver: (text, attachments, devalue) => `deliver ${text} ${attachments?.byteLength} ${devalue}`,
    idle: () => `idle ${rejections.join()}`,
    rejection: (reason, promise, handled) => {
      rejections.push(`${reason}:${typeof promise}:${handled}`);
    },
  };
})();
