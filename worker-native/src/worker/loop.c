/* The worker's message loop; see loop.h. */
#include "worker/loop.h"

#include "base/sys.h"
#include "exit_codes.h"
#include "protocol.h"
#include "wire/frame.h"
#include "worker/activation.h"
#include "worker/input.h"

_Noreturn void worker_loop(void) {
  for (;;) {
    struct frame_header frame;
    input_frame(&frame, true);
    switch (frame.type) {
      case MESSAGE_ACTIVATE:
        activation_run(&frame);
        break;
      case MESSAGE_DELIVER:
        /* An outcome that crossed the end of its activation. */
        input_discard(frame.rest_length);
        break;
      default:
        sys_exit_group(EXIT_PROTOCOL);
    }
  }
}
