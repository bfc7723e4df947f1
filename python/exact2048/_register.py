"""Registers the environment with Gymnasium, because Gymnasium reads no entry points."""

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType


def _register() -> None:
    from gymnasium.envs import registration

    if "Exact2048-v0" not in registration.registry:
        registration.register(
            id="Exact2048-v0",
            entry_point="exact2048.gym:Exact2048Env",
            vector_entry_point="exact2048.gym:Exact2048VectorEnv",
        )


class _AtImport(MetaPathFinder):
    """Registers the environment after the first import of Gymnasium.

    An import of Gymnasium takes ten times as long as an import of this package. So this package does not import it.
    """

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != "gymnasium":
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def load_and_register(module: ModuleType) -> None:
                load(module)
                _register()

            spec.loader.exec_module = load_and_register  # type: ignore[method-assign]
        return spec


def register_where_installed() -> None:
    """Register `Exact2048-v0` now, or when a program imports Gymnasium."""
    if sys.modules.get("gymnasium") is not None:
        _register()
    else:
        sys.meta_path.insert(0, _AtImport())
