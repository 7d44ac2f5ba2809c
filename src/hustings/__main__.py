"""`python -m hustings` is `hustings`.

Modules take a while to load. Ctrl-C meanwhile ends the process with one line: as an exception it
would surface as an error of whichever module it met.
"""

import os
import signal


def _interrupted(number: int, frame: object) -> None:
    os.write(2, b"hustings: interrupted\n")
    os._exit(130)


def main() -> None:
    """Entry point of `hustings`."""
    ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if ours:
        signal.signal(signal.SIGINT, _interrupted)
    from hustings import cli  # noqa: PLC0415 (Ctrl-C has to be ours first)

    if ours:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    cli.main()


if __name__ == "__main__":
    main()
