"""What every test may use: the rewrite switch of golden files, and hypothesis profiles.

`pytest --hypothesis-profile=NAME` chooses: `default` draws new cases each time, `ci` always the
same ones, so that a change is judged by itself, and `soak` very many.
"""

import pytest
from hypothesis import settings

# No deadlines: a case that is slow because the machine is busy has not failed.
settings.register_profile("default", deadline=None, print_blob=True)
settings.register_profile("ci", deadline=None, derandomize=True, database=None)
settings.register_profile("soak", deadline=None, print_blob=True, max_examples=5_000)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--rewrite",
        action="store_true",
        help="write what golden scripts produce now over what they expect; review the diff",
    )


@pytest.fixture(scope="session")
def rewrite(request: pytest.FixtureRequest) -> bool:
    """Whether golden files are to be rewritten rather than compared."""
    return bool(request.config.getoption("--rewrite"))
