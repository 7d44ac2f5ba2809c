"""`python -m bench.net.nursery`: the parent of a group's processes, in the group's own network.

It reads one JSON request per line and answers with one line. It forks members, so two hundred of
them start in seconds. Where memory is measured, it starts them as interpreters of their own. When
its input ends, it kills its children and ends.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import signal
import sys
from typing import Any

from bench.net import spaces
from bench.net.roundtrip import round_trips


class Nursery:
    def __init__(self, plan: dict[str, Any]) -> None:
        self.plan = plan
        self.own = spaces.own_network()
        self.children: dict[int, int] = {}  # process number -> pid
        self.commands: dict[int, int] = {}  # process number -> writing end of its commands
        self.module = importlib.import_module(plan["module"])
        self.module.prepare()
        gc.collect()
        gc.freeze()

    def start(self, process: int) -> int:
        """Fork process number `process`, which runs its share of the members."""
        self.drop(process)
        reading, writing = os.pipe()
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                spaces.die_with_parent(parent)
                spaces.hurry(False)
                signal.signal(signal.SIGINT, signal.SIG_IGN)
                for other in self.commands.values():
                    os.close(other)
                os.close(writing)
                self.run(process, reading)
                code = 0
            except Exception:
                # A forked child must not run inherited hooks: print, and exit.
                sys.excepthook(*sys.exc_info())
            finally:
                os._exit(code)
        os.close(reading)
        self.children[process] = pid
        self.commands[process] = writing
        return pid

    def run(self, process: int, commands: int) -> None:
        share = self.plan["per_process"]
        members = list(range(process * share, min((process + 1) * share, self.plan["n"])))
        if self.plan["exec"]:
            os.set_inheritable(commands, True)
            job = {**self.plan, "members": members, "commands": commands}
            words = [sys.executable, "-m", "bench.net.alone", json.dumps(job)]
            os.execv(sys.executable, words)
        devnull = os.open(os.devnull, os.O_RDONLY)
        os.dup2(devnull, 0)
        self.module.run(self.plan, members, self.plan["reports"], commands)

    def drop(self, process: int) -> None:
        """Reap a killed process, and close its pipes."""
        pid = self.children.pop(process, None)
        if pid is not None:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            os.close(self.commands.pop(process))

    def answer(self, request: dict[str, Any]) -> object:
        match request["do"]:
            case "start":
                return {process: self.start(process) for process in request["processes"]}
            case "tell":
                line = json.dumps(request["what"]) + "\n"
                os.write(self.commands[request["process"]], line.encode())
            case "reap":
                self.drop(request["process"])
            case "packets":
                return spaces.packets()
            case "round trips":
                return round_trips(request["count"])
            case unknown:
                raise ValueError(f"unknown request {unknown}")
        return None

    def close(self) -> None:
        for process in list(self.children):
            self.drop(process)


def main() -> None:
    plan = json.loads(sys.argv[1])
    spaces.die_with_parent(plan["driver"])
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    nursery = Nursery(plan)
    spaces.hurry(True)  # running members must not delay the start of others
    print(json.dumps({"own": nursery.own}), flush=True)
    try:
        for line in sys.stdin:
            print(json.dumps(nursery.answer(json.loads(line))), flush=True)
    finally:
        nursery.close()


if __name__ == "__main__":
    main()
