"""Runs `gpu-webhook doctor` for a minute, or until no line is failed; `helm test` runs it.

The arguments are those of doctor. A warning is no failure, unless nobody knows whether pods are
repaired.
"""

import os
import re
import subprocess
import sys
import time

SECONDS = float(os.environ.get("SECONDS_TO_WAIT", "60"))
COMMAND = [sys.executable, "-m", "webhook", "doctor", *sys.argv[1:]]
WARNED, FAILED = 2, 3  # exit codes of doctor
# With auditOnly nothing is repaired: what answered leaves no trace in the pod.
UNKNOWN = "" if "AUDIT_ONLY" in os.environ else r"^warning +dry run"


def found() -> tuple[int, str]:
    """The exit code, and what doctor printed."""
    done = subprocess.run(
        COMMAND, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if done.returncode != WARNED:
        return done.returncode, done.stdout
    is_unknown = UNKNOWN and re.search(UNKNOWN, done.stdout, re.MULTILINE)
    return FAILED if is_unknown else 0, done.stdout


def main() -> int:
    """Ask until all is well, or the time is over."""
    end = time.monotonic() + SECONDS
    while (answer := found())[0] and time.monotonic() < end:
        time.sleep(1)
    print(answer[1], end="", flush=True)
    return answer[0]


if __name__ == "__main__":
    sys.exit(main())
