"""The recipe behind the adapter in `engine.weights`: corpus, shards, training, evaluation, export.

Not used at run time.
"""
