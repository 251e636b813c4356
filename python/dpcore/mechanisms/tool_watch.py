"""Watch over running tools: what a killed process leaves running is ended.

A process that gets SIGKILL cannot end its tools. A small process outlives it: it reads the groups
of running tools from a pipe, and kills them when the pipe closes. A signal at the death of the
parent (Linux) would come when the thread that started the tool ends, and would miss the processes
that the tool has started. Windows has no such watch.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import subprocess
import threading
import uuid
from typing import Final

TOOL_VARIABLE: Final = "DPCORE_TOOL"
"""The environment variable by which the watcher finds a tool that was starting at the kill."""

_MAX_WAIT_SECONDS: Final = 1.0
"""Time for which the end of the watcher is awaited."""

# A shell starts in 1 ms, an interpreter of Python in 10 ms.
_SCRIPT: Final = f"""
trap '' HUP INT TERM
starting=0 groups=' '
while read -r event group; do
    case $event in
    starting) starting=$((starting + 1)) ;;
    failed) starting=$((starting - 1)) ;;
    started) starting=$((starting - 1)) groups="$groups$group " ;;
    ended) case $groups in
        *" $group "*) groups="${{groups%% $group *}} ${{groups#* $group }}" ;;
        esac ;;
    esac
done
if [ "$starting" -gt 0 ]; then
    for file in $(grep -ls "{TOOL_VARIABLE}=$1" /proc/[0-9]*/environ); do
        group=${{file#/proc/}}
        groups="$groups${{group%/environ}} "
    done
fi
for group in $groups; do kill -s KILL -- "-$group"; done
"""


class ToolWatch:
    """The watcher of this process, which starts with its first tool."""

    def __init__(self) -> None:
        self._lock, self._pipe = threading.Lock(), -1
        self._process: subprocess.Popen[bytes] | None = None
        self._token = ""

    def announce_start(self) -> dict[str, str]:
        """Announce that a tool starts; return what its environment holds more."""
        if os.name != "posix":
            return {}
        with self._lock:
            if self._process is None or self._process.poll() is not None:
                self.close()
                self._start()
        self._report("starting")
        return {TOOL_VARIABLE: self._token}

    def report_started(self, group: int) -> None:
        """Report that a tool runs in a group of processes of its own."""
        self._report(f"started {group}")

    def report_failed(self) -> None:
        """Report that a tool which was announced did not start."""
        self._report("failed")

    def report_ended(self, group: int) -> None:
        """Report that a tool has ended."""
        self._report(f"ended {group}")

    def close(self) -> None:
        """End the watcher, and the tools that run."""
        if self._process is None:
            return
        os.close(self._pipe)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_MAX_WAIT_SECONDS)
        self._process, self._pipe = None, -1

    def forget(self) -> None:
        """Leave the watcher to the process that this one was forked from."""
        if self._process is not None:
            os.close(self._pipe)
            # It is no child of this process, which would complain that it still runs.
            self._process.returncode = 0
        self.__init__()  # type: ignore[misc]

    def _start(self) -> None:
        self._token = uuid.uuid4().hex
        read_end, self._pipe = os.pipe()
        try:
            self._process = subprocess.Popen(
                ["/bin/sh", "-c", _SCRIPT, "dpcore-watch", self._token],
                stdin=read_end,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env={"PATH": os.defpath},
                # Ctrl-C in a terminal is not meant for it.
                start_new_session=True,
            )
        except BaseException:
            os.close(self._pipe)
            raise
        finally:
            os.close(read_end)

    def _report(self, line: str) -> None:
        if self._pipe >= 0:
            # A watcher that somebody has killed is started anew with the next tool.
            with contextlib.suppress(BrokenPipeError):
                os.write(self._pipe, f"{line}\n".encode())


TOOL_WATCH: Final = ToolWatch()
"""The watcher of this process."""

atexit.register(TOOL_WATCH.close)
if os.name == "posix":
    os.register_at_fork(after_in_child=TOOL_WATCH.forget)
