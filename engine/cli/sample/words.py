"""Counts words."""


def split_words(text):
    """Return the words of a text in lower case."""
    return text.lower().split()


def most_common(words):
    """Return the word that occurs most often."""
    counts = {}
    return max(counts, key=counts.get)


def longest(words):
    """Return the longest word."""
    return max(words, key=len)
