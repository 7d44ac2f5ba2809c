"""Renders the chart as Helm does: with Go's text/template, in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

# Go's runtime in a shared library takes over signals, so it does not come into the tests' process.
RENDER = """
import sys
from go_template import render_template
for template, result in zip(sys.argv[2::2], sys.argv[3::2]):
    render_template(template, sys.argv[1], result)
"""


def rendered(folder: Path, given: Mapping[str, Any]) -> str:
    """The templates' text, one after the other, as documents of one stream."""
    parts = "".join(each.read_text(encoding="utf-8") for each in sorted(folder.glob("_*.tpl")))
    with tempfile.TemporaryDirectory() as place:
        values = Path(place, "values.json")  # JSON is YAML
        values.write_text(json.dumps(given), encoding="utf-8")
        pairs: list[str] = []
        for each in sorted(folder.glob("*.yaml")):
            template, result = Path(place, each.name), Path(place, f"{each.name}.out")
            template.write_text(parts + each.read_text(encoding="utf-8"), encoding="utf-8")
            pairs += [str(template), str(result)]
        done = subprocess.run(
            [sys.executable, "-c", RENDER, str(values), *pairs],
            check=False,
            capture_output=True,
            text=True,
            timeout=100,
        )
        assert done.returncode == 0, done.stderr
        return "\n---\n".join(Path(each).read_text(encoding="utf-8") for each in pairs[1::2])
