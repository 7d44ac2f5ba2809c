"""Compile the kernels that tests and benchmarks use, once, so that no test waits for a compiler.

    python -m scripts.compile_kernels

A kernel is compiled when it is first called, and kept beside its source. Each line below plays one
small study with the compiled engine. Kernels that no line reaches are compiled by their first test.
"""

from __future__ import annotations

from hustings import lab

STUDIES: tuple[tuple[str, dict[str, object]], ...] = (
    ("le-s", {"members": 8, "loss": 0.1, "delay": 0.1}),
    ("le-s", {"members": 8, "loss": 0.1, "delay": 0.1, "settings": {"T_L": 2.0}}),
    ("le-a", {"members": 8, "loss": 0.1, "delay": 0.1}),
    ("le-m", {"members": 8, "loss": 0.1, "delay": 0.1}),
    ("sup", {"members": 8, "loss": 0.1, "delay": 0.1}),
    ("al", {"members": 8, "loss": 0.1, "delay": 0.1}),
    ("probabilistic", {"members": 100, "loss": 0.1}),
    ("committee", {"members": 1000, "settings": {"b": 0.1}}),
    ("committee-agreement", {"members": 1000, "settings": {"b": 0.1}}),
    ("committee-coin", {"members": 1000, "settings": {"b": 0.1}}),
)


def main() -> None:
    for protocol, words in STUDIES:
        # The words of a study have several types, and a table of them has one.
        lab.simulate(protocol, runs=1, seed=1, engine="fast", **words)  # type: ignore[arg-type]


if __name__ == "__main__":
    main()
