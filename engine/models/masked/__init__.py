"""The `masked` family: published masked-diffusion checkpoints on stock Qwen2, Qwen3 and Llama classes."""
