"""The environment is prepared without torch and without overruling anyone."""

from __future__ import annotations

import subprocess
import sys

from engine.runtime.environment import prepare_environment


def test_what_is_set_already_stays() -> None:
    environ = {"GOMP_SPINCOUNT": "7"}
    prepare_environment(environ)
    assert environ["GOMP_SPINCOUNT"] == "7"
    assert environ["MKL_CBWR"] == "AUTO,STRICT"


def test_it_can_be_prepared_before_torch_is_imported() -> None:
    program = "import sys, engine.runtime.environment; print('torch' in sys.modules)"
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert answer.stdout.strip() == "False"
