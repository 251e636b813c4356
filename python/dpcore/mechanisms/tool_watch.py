"""A watcher process, which ends the tools (commands) of a Python process that was killed.

A process that gets SIGKILL cannot end the tools that it started. Therefore dpcore starts a small
watcher process. The watcher reads the process groups of the running tools from a pipe. When the
pipe closes, the watcher kills these groups. On Windows, dpcore starts no watcher.

The watcher is necessary although Linux can send a signal to a tool when its parent process ends.
Linux sends this signal too early, when the thread that started the tool ends. Processes that the
tool started do not get the signal.
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
"""Environment variable by which the watcher finds a tool that had just been started."""

_MAX_WAIT_SECONDS: Final = 1.0
"""Number of seconds to wait for the end of the watcher."""

# A shell starts in 1 ms, a Python interpreter in 10 ms.
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
    """Small watcher process that ends running commands if the Python process is killed.

    The commands are those that dpcore has started. The watcher starts together with the first
    command.
    """

    def __init__(self) -> None:
        self._lock, self._pipe = threading.Lock(), -1
        self._process: subprocess.Popen[bytes] | None = None
        self._token = ""

    def notify_watcher_of_coming_start(self) -> dict[str, str]:
        """Inform the watcher process that a command will start; start the watcher if needed.

        The result is a dictionary of environment variables with which the command must be started.
        """
        if os.name != "posix":
            return {}
        with self._lock:
            if self._process is None or self._process.poll() is not None:
                self.end_watcher()
                self._spawn_watcher()
        self._write_to_watcher("starting")
        return {TOOL_VARIABLE: self._token}

    def report_started_to_watcher(self, group: int) -> None:
        """Inform the watcher process that a command has started in the process group `group`."""
        self._write_to_watcher(f"started {group}")

    def report_failed_start_to_watcher(self) -> None:
        """Inform the watcher process that a command could not be started."""
        self._write_to_watcher("failed")

    def tell_watcher_command_ended(self, process_group: int) -> None:
        """Inform the watcher process that the command in `process_group` has ended."""
        self._write_to_watcher(f"ended {process_group}")

    def end_watcher(self) -> None:
        """End the watcher process. The watcher first ends all commands that still run."""
        if self._process is None:
            return
        os.close(self._pipe)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_MAX_WAIT_SECONDS)
        self._process, self._pipe = None, -1

    def disconnect_after_fork(self) -> None:
        """Disconnect this forked process from the watcher process of its parent."""
        if self._process is not None:
            os.close(self._pipe)
            # The watcher is not a child of this process; without a return code, Popen would warn.
            self._process.returncode = 0
        self.__init__()  # type: ignore[misc]

    def _spawn_watcher(self) -> None:
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
                # Ctrl-C in a terminal must not end the watcher.
                start_new_session=True,
            )
        except BaseException:
            os.close(self._pipe)
            raise
        finally:
            os.close(read_end)

    def _write_to_watcher(self, line: str) -> None:
        if self._pipe >= 0:
            # If the watcher was killed, a new one starts with the next tool.
            with contextlib.suppress(BrokenPipeError):
                os.write(self._pipe, f"{line}\n".encode())


TOOL_WATCH: Final = ToolWatch()
"""The watcher of this process."""

atexit.register(TOOL_WATCH.end_watcher)
if os.name == "posix":
    os.register_at_fork(after_in_child=TOOL_WATCH.disconnect_after_fork)
