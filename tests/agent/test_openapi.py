"""The OpenAPI document is true: drawn requests get answers of the shapes that it promises."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from hustings.agent.openapi import document

ROOT = Path(__file__).parents[2]
REQUESTS = Path(__file__).with_name("openapi_requests.py")
PLUGIN = "schemathesis.pytest.plugin"
GROUPS = 2  # one with a leader, and one without


def test_answers_are_those_of_the_document() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "--hypothesis-profile=ci", "-p", PLUGIN]
    own = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(
        [*command, str(REQUESTS)], cwd=ROOT, env=own, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    paths: dict[str, dict[str, object]] = document(["billing"])["paths"]
    operations = sum(len(path) for name, path in paths.items() if name != "/openapi.json")
    passed = re.search(r"^(\d+) passed", done.stdout, re.MULTILINE)
    assert passed is not None, done.stdout
    assert int(passed[1]) == GROUPS * operations
