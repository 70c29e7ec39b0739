"""What a model family runs on: linear layers, attention and key-value caches. Knows nothing of models or requests."""
