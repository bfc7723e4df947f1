"""Makes the environment known to Gymnasium, which calls this when it is imported."""


def register() -> None:
    """Register `Exact2048-v0`."""
    from gymnasium.envs import registration

    if "Exact2048-v0" not in registration.registry:
        registration.register(
            id="Exact2048-v0",
            entry_point="exact2048.gym:Exact2048Env",
            vector_entry_point="exact2048.gym:Exact2048VectorEnv",
        )
