"""The denoising loop and its parts: sampling configuration, draft sources, verification, stopping. Torch only."""
