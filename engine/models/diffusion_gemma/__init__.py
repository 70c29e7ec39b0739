"""The family `diffusion_gemma`: Google's DiffusionGemma over the classes of transformers.

A causal encoder fills a key-value cache with the text so far; a decoder of the same weights denoises a canvas of fixed
length on top of it, from uniform noise.
"""
