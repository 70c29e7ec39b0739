"""Model families. Each implements `base.Denoiser`."""
