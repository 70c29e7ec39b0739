"""`python -m engine.training STAGE`: one command per stage of the recipe."""

from __future__ import annotations

import os

from engine.runtime.environment import prepare_environment

if __name__ == "__main__":
    prepare_environment(os.environ)  # before torch is imported: its threads read it once
    from engine.training.commands import main

    main()
